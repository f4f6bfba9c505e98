"""Determinants by elimination."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Expr, Var, apply, const, ne, select
from weft.loop import Buffer, If, Load, Stmt, allocated, cell, for_, get, let, put, seq, store
from weft.ops.registry import operator
from weft.ops.shapes import same_size, show_shape
from weft.support.errors import TypeMismatch
from weft.te import Tensor, extern


@operator("det")
def det(x: Tensor) -> Tensor:
    """The determinant of each matrix [..., n, n]: the product of the pivots of Gaussian elimination with exchanges of rows.

    See Golub and Van Loan, "Matrix computations", section 3.4: the largest element of a column is its pivot.
    """
    if x.rank < 2 or not same_size(x.shape[-1], x.shape[-2]) or not x.dtype.is_float:
        raise TypeMismatch(f"det takes square matrices of floats, not {show_shape(x.shape)} of {x.dtype}")
    n = x.shape[-1]

    def of_matrix(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        a, value, pivot = Buffer("a", (n, n), x.dtype, "local"), cell("value", x.dtype), cell("pivot")
        r, c = Var("r"), Var("c")
        copy = for_(r, n, for_(c, n, store(a, (r, c), Load(ins[0], (*i, r, c)))))
        one = const(1, x.dtype)
        steps = seq(copy, put(value, one), _eliminated(a, n, value, pivot), store(outs[0], i, get(value)))
        return allocated([a, value, pivot], steps)

    return extern([x.shape[:-2]], [x], of_matrix, [x.dtype], "det", along=range(x.rank - 2))[0]


def _eliminated(a: Buffer, n: Expr, value: Buffer, pivot: Buffer) -> Stmt:
    """Multiplies *value* by the pivot of each column, and takes its row from those below."""
    k, r, c, s = Var("k"), Var("row"), Var("column"), Var("search")

    def larger(row: Expr, than: Expr) -> Expr:
        return apply("abs", Load(a, (than, k))) < apply("abs", Load(a, (row, k)))

    find = seq(put(pivot, k), for_(s, n - 1 - k, If(larger(k + 1 + s, get(pivot)), put(pivot, k + 1 + s), None)))

    def exchanged(p: Expr) -> Stmt:
        def swap(old: Expr) -> Stmt:
            return seq(store(a, (k, c), Load(a, (p, c))), store(a, (p, c), old))

        negated = put(value, const(0, a.dtype) - get(value))
        return If(ne(p, k), seq(negated, for_(c, n, let("old", Load(a, (k, c)), swap))), None)

    def below(p: Expr) -> Stmt:
        zero = const(0, a.dtype)
        factor = select(ne(p, zero), Load(a, (k + 1 + r, k)) / p, zero)

        def row(f: Expr) -> Stmt:
            at = (k + 1 + r, k + 1 + c)
            return for_(c, n - 1 - k, store(a, at, Load(a, at) - f * Load(a, (k, k + 1 + c))))

        return seq(put(value, get(value) * p), for_(r, n - 1 - k, let("factor", factor, row)))

    return for_(k, n, seq(find, let("p", get(pivot), exchanged), let("value_of_pivot", Load(a, (k, k)), below)))
