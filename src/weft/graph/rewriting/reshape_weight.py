"""A weight in another shape: a constant stays one, so that passes still see its elements."""

from __future__ import annotations

from collections.abc import Sequence

from weft.graph.core.graph import Graph
from weft.graph.core.graph_values import Constant, Value
from weft.ir import Const, Expr


def reshape_weight(new: Graph, w: Value, shape: Sequence[Expr], name: str) -> Value:
    """Returns *w* in the static *shape*, under *name*; a weight that is no constant by a node of *new*."""
    if not isinstance(w, Constant):
        return new.add("reshape", [w], shape=tuple(shape), name=name)
    return w.reshaped([_int(s) for s in shape], name)


def _int(e: Expr) -> int:
    assert isinstance(e, Const)  # a constant's shape is static
    return int(e.value)
