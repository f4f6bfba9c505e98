"""Selection of elements by their order along an axis."""

from __future__ import annotations

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.ir import Const, Expr
from weft.support.dtypes import i64


def top_k(b: Builder, x: Operand, k: int | Expr, axis: int, *, largest: bool) -> tuple[Operand, Operand]:
    """The *k* largest (or smallest) elements along *axis*, sorted, and their indices; all of them where there are fewer."""
    size = x.shape[axis]
    if isinstance(k, int):
        most = min(k, int(size.value)) if isinstance(size, Const) else k
        values, indices = b.add_many("top_k", x, k=most, axis=axis, largest=largest)
        return values, b.cast(indices, i64)
    order = b.add("argsort", x, axis=axis, descending=largest)
    first: Operand = b.add("slice", order, starts=(0,), ends=(k,), axes=(axis,), steps=(1,))
    return b.add("gather_elements", x, first, axis=axis), b.cast(first, i64)
