"""Elements looked up in a sorted vector."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import INDEX, ZERO, Expr, eq, minimum, select
from weft.loop import Buffer, If, Load, Stmt, While, allocated, cell, get, let, put, seq, store
from weft.ops.nan_order import order_key
from weft.ops.registry import operator
from weft.support.errors import TypeMismatch
from weft.te import Tensor, extern


@operator("find_sorted", reads_bits=True)
def find_sorted(x: Tensor, keys: Tensor) -> Tensor:
    """The position in *keys*, a vector in ascending order, of each element of *x*; their number where an element is none of them.

    NaN is above all numbers, and is found where it is a key; of equal keys it is the first. A binary search for each element.
    """
    if keys.rank != 1 or keys.dtype is not x.dtype:
        raise TypeMismatch(
            f"find_sorted takes a vector of keys of {x.dtype}, not {keys.rank} dimensions of {keys.dtype}"
        )
    count = keys.shape[0]

    def of_element(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        low, high = cell("low"), cell("high")

        def word(b: Buffer, *at: Expr) -> Expr:
            return order_key(Load(b, at))

        def halved(e: Expr, middle: Expr) -> Stmt:
            return If(word(ins[1], middle) < e, put(low, middle + 1), put(high, middle))

        def searched(e: Expr) -> Stmt:
            loop = While(get(low) < get(high), let("middle", (get(low) + get(high)) // 2, lambda m: halved(e, m)))
            found = (get(low) < count) & eq(word(ins[1], minimum(get(low), count - 1)), e)
            return seq(put(low, ZERO), put(high, count), loop, store(outs[0], i, select(found, get(low), count)))

        return allocated([low, high], let("word", word(ins[0], *i), searched))

    return extern([x.shape], [x, keys], of_element, [INDEX], "find_sorted", along=range(x.rank))[0]
