"""A shape of other formulas for a tensor, of sizes that are checked to be equal when the model is called."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import ZERO, Expr, ExprLike, eq, select
from weft.ops.registry import operator
from weft.ops.shapes import normalize_axes, show_shape, sized
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute


@operator("tie_shape")
def tie_shape(x: Tensor, *, shape: Sequence[ExprLike], repeated: tuple[int, ...] = ()) -> Tensor:
    """*x* itself, whose sizes *shape* has as other formulas (IREE's `flow.tensor.tie_shape`).

    That they are equal is a requirement of the graph's, or a check of late sizes. Along the dimensions *repeated*, *x* may be of
    size 1 instead, and is then repeated.
    """
    target, along = sized(*shape), normalize_axes(repeated, x.rank)
    if len(target) != x.rank:
        raise TypeMismatch(f"tie_shape: {show_shape(target)} is no shape for {show_shape(x.shape)}")

    def tied(*index: Expr) -> Expr:
        return x[tuple([select(eq(x.shape[d], 1), ZERO, i) if d in along else i for d, i in enumerate(index)])]

    return compute(target, tied, "tie_shape", dtype=x.dtype)
