"""Rows multiplied by matrices that are chosen for each: the experts of a mixture."""

from __future__ import annotations

from weft.ir import INDEX, Expr, cast, maximum, minimum
from weft.ops.registry import operator
from weft.ops.shapes import same_size, show_shape
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute, reduce_axis, sum_


@operator("matmul_chosen")
def matmul_chosen(x: Tensor, weight: Tensor, which: Tensor) -> Tensor:
    """Returns each row of x [S, K] times the matrix of weight [E, K, N] whose number *which* [S] tells, as [S, N].

    Numbers beyond the matrices are those of the first and of the last one.
    """
    fits = x.rank == 2 and weight.rank == 3 and which.rank == 1
    if not fits or not same_size(x.shape[1], weight.shape[1]) or not same_size(x.shape[0], which.shape[0]):
        shapes = ", ".join(show_shape(t.shape) for t in (x, weight, which))
        raise TypeMismatch(f"matmul_chosen takes rows [S, K], matrices [E, K, N] and numbers [S], not {shapes}")
    k = reduce_axis(x.shape[1], "k")

    def product(s: Expr, n: Expr) -> object:
        number = maximum(minimum(cast(which[s], INDEX), weight.shape[0] - 1), 0)
        return sum_(x[s, k] * weight[number, k, n], [k])

    return compute((x.shape[0], weight.shape[2]), product, "matmul_chosen")
