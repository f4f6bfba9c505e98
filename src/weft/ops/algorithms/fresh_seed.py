"""The seed of a call, which the runtime's sequence of seeds gives."""

from __future__ import annotations

from collections.abc import Sequence

from weft.loop import Buffer, Call, Stmt
from weft.ops.registry import operator
from weft.support.dtypes import i64
from weft.te import Tensor, extern, whole


@operator("fresh_seed", on_host="weft.random")
def fresh_seed() -> Tensor:
    """A number of 64 bits, another in each call: a model has one node of it, and its results are the same in the whole call."""

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        return Call("weft.fresh_seed", (whole(outs[0]),))

    return extern([()], [], body, [i64], "fresh_seed")[0]
