"""Systems of equations of a triangular matrix."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Expr
from weft.loop import Buffer, Stmt, let, seq
from weft.ops.linear_algebra.matrix import Matrix, check_system, each
from weft.ops.registry import operator
from weft.te import Tensor, extern


@operator("solve_triangular")
def solve_triangular(a: Tensor, b: Tensor, *, upper: bool, unit: bool) -> Tensor:
    """The X of which each A [..., n, n] times X is B [..., n, k]; of A the *upper* or the lower triangle counts.

    With *unit*, the diagonal counts as ones. Rows are solved one after another (Golub and Van Loan, section 3.1).
    """
    check_system("solve_triangular", a, b)
    n, columns = b.shape[-2:]

    def of_matrix(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        matrix, right, x = Matrix(ins[0], i), Matrix(ins[1], i), Matrix(outs[0], i)

        def row(k: Expr) -> Stmt:
            r = n - 1 - k if upper else k

            def less(j: Expr) -> Stmt:
                known = n - 1 - j if upper else j
                return let(
                    "f", matrix[r, known], lambda f: each("c", columns, lambda c: x.add(r, c, -(f * x[known, c])))
                )

            copied = each("c", columns, lambda c: x.put(r, c, right[r, c]))
            divided = each("c", columns, lambda c: x.put(r, c, x[r, c] / matrix[r, r]))
            return seq(copied, each("j", k, less), *([] if unit else [divided]))

        return each("k", n, row)

    return extern([b.shape], [a, b], of_matrix, [b.dtype], "solve_triangular", along=range(b.rank - 2))[0]
