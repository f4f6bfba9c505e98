"""The Cholesky factor of symmetric positive definite matrices."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Expr, apply, cast, const, eq, select
from weft.loop import Buffer, If, Load, Stmt, let, seq, store
from weft.ops.linear_algebra.matrix import Matrix, check_matrices, each
from weft.ops.registry import operator
from weft.support.dtypes import i32
from weft.te import Tensor, extern


@operator("cholesky")
def cholesky(x: Tensor) -> tuple[Tensor, Tensor]:
    """The lower triangle L of which L times its transpose is each matrix [..., n, n], whose own lower triangle is read.

    The second result [...] of int32 is 0, or the number, from 1, of the first column at which a matrix is not positive definite;
    L has NaN from there on. See Golub and Van Loan, "Matrix computations", section 4.2 (by columns, to the right).
    """
    check_matrices("cholesky", x, square=True)
    n = x.shape[-1]

    def of_matrix(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        a, given, failed = Matrix(outs[0], i), Matrix(ins[0], i), Load(outs[1], i)
        zero = const(0, x.dtype)

        def column(k: Expr) -> Stmt:
            is_first = ~(zero < a[k, k]) & eq(failed, const(0, i32))
            note = If(is_first, store(outs[1], i, cast(k + 1, i32)), None)

            def divided(pivot: Expr) -> Stmt:
                return seq(
                    a.put(k, k, pivot),
                    each("row", n - 1 - k, lambda r: a.put(k + 1 + r, k, a[k + 1 + r, k] / pivot)),
                    each("row", n - 1 - k, lambda r: _row_updated(a, k, k + 1 + r)),
                )

            return seq(note, let("pivot", apply("sqrt", a[k, k]), divided))

        copied = a.filled(lambda r, c: select(c <= r, given[r, c], zero))
        return seq(copied, store(outs[1], i, const(0, i32)), each("k", n, column))

    shapes = [x.shape, x.shape[:-2]]
    lower, failed = extern(shapes, [x], of_matrix, [x.dtype, i32], "cholesky", along=range(x.rank - 2))
    return lower, failed


def _row_updated(a: Matrix, k: Expr, r: Expr) -> Stmt:
    """Takes the product of column *k* with its element in row *r* from that row, up to the diagonal."""
    return let("factor", a[r, k], lambda f: each("c", r - k, lambda c: a.add(r, k + 1 + c, -(f * a[k + 1 + c, k]))))
