"""Axes that only a run tells: how often each dimension is named."""

from __future__ import annotations

from weft.ir import Expr, as_expr, cast, eq
from weft.ops.index_ranges import IndexRange, Shaped, either_way, takes_indices
from weft.ops.registry import operator
from weft.support.dtypes import i64
from weft.te import Tensor, compute, reduce_axis, sum_


@operator("count_axes")
def count_axes(axes: Tensor, *, rank: int, what: str = "axis") -> Tensor:
    """How often each of *rank* dimensions is named by *axes*, a vector or one number, counted from the end where negative.

    One that is out of range is *what* in the message.
    """

    def names(axis: Expr, d: Expr) -> Expr:
        return cast(eq(axis, cast(d, axis.dtype)) | eq(axis, cast(d - rank, axis.dtype)), i64)

    if not axes.rank:
        return compute((as_expr(rank),), lambda d: names(axes[()], d), "count_axes", dtype=i64)
    k = reduce_axis(axes.shape[0], "k")
    return compute((as_expr(rank),), lambda d: sum_(names(axes[(k,)], d), [k]), "count_axes", dtype=i64)


@takes_indices("count_axes")
def _axes_range(axes: Shaped, *, rank: int, what: str = "axis") -> IndexRange:
    return IndexRange(0, (either_way(as_expr(rank)),), what)
