"""Gaussian elimination with exchanges of rows: the factors of a matrix, and its determinant.

See Golub and Van Loan, "Matrix computations", section 3.4: the largest element of a column is its pivot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir import INDEX, Expr, apply, cast, const, minimum, ne, select
from weft.loop import Buffer, If, Load, Stmt, allocated, cell, get, let, put, seq, store
from weft.ops.linear_algebra.matrix import Matrix, across, check_matrices, each
from weft.ops.registry import operator
from weft.support.dtypes import i32
from weft.te import Tensor, extern


@operator("det")
def det(x: Tensor) -> Tensor:
    """The determinant of each matrix [..., n, n]: the product of the pivots, negated for each exchange of rows."""
    check_matrices("det", x, square=True)
    n = x.shape[-1]

    def of_matrix(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        a, value = Matrix(Buffer("a", (n, n), x.dtype, "local")), cell("value", x.dtype)
        given = Matrix(ins[0], i)

        def step(k: Expr, p: Expr) -> Stmt:
            return put(value, get(value) * select(ne(p, k), -a[k, k], a[k, k]))

        steps = seq(
            a.filled(lambda r, c: given[r, c]),
            put(value, const(1, x.dtype)),
            _eliminated(a, n, n, step),
            store(outs[0], i, get(value)),
        )
        return allocated([a.buffer, value], steps)

    return extern([x.shape[:-2]], [x], of_matrix, [x.dtype], "det", along=range(x.rank - 2))[0]


@operator("lu")
def lu(x: Tensor) -> tuple[Tensor, Tensor]:
    """The factors of each matrix [..., m, n] in one, L below the diagonal (of ones) and U; and the row each was exchanged with.

    Rows are exchanged in order, and counted from 0: [..., min(m, n)] of int32. A column without a pivot is left as it is.
    """
    check_matrices("lu", x)
    m, n = x.shape[-2:]

    def of_matrix(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        a, given = Matrix(outs[0], i), Matrix(ins[0], i)

        def note(k: Expr, p: Expr) -> Stmt:
            return store(outs[1], (*i, k), cast(p, i32))

        return seq(a.filled(lambda r, c: given[r, c]), _eliminated(a, m, n, note))

    shapes = [x.shape, (*x.shape[:-2], minimum(m, n))]
    packed, rows = extern(shapes, [x], of_matrix, [x.dtype, i32], "lu", along=range(x.rank - 2))
    return packed, rows


@operator("exchanged_rows")
def exchanged_rows(exchanges: Tensor, *, rows: int) -> Tensor:
    """The order [..., rows] of int32 that rows are in when each was exchanged in turn with another, as `lu` tells them."""
    count = exchanges.shape[-1]

    def of_matrix(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        def swap(k: Expr) -> Stmt:
            return let("p", cast(Load(ins[0], (*i, k)), INDEX), lambda p: exchange(k, p))

        def exchange(k: Expr, p: Expr) -> Stmt:
            here, there = Load(outs[0], (*i, k)), Load(outs[0], (*i, p))
            return let("old", here, lambda old: seq(store(outs[0], (*i, k), there), store(outs[0], (*i, p), old)))

        ordered = each("r", rows, lambda r: store(outs[0], (*i, r), cast(r, i32)))
        return seq(ordered, each("k", count, swap))

    lead = exchanges.shape[:-1]
    return extern([(*lead, rows)], [exchanges], of_matrix, [i32], "exchanged_rows", along=range(len(lead)))[0]


def _eliminated(a: Matrix, m: Expr, n: Expr, note: Callable[[Expr, Expr], Stmt]) -> Stmt:
    """Puts the factors of *a* [m, n] in its place; *note* is given each column, and the row of its pivot before the exchange."""
    pivot = cell("pivot")

    def column(k: Expr) -> Stmt:
        def taken(row: Expr) -> Stmt:
            larger = apply("abs", a[get(pivot), k]) < apply("abs", a[row, k])
            return If(larger, put(pivot, row), None)

        find = seq(put(pivot, k), each("search", m - 1 - k, lambda s: taken(k + 1 + s)))

        def used(p: Expr) -> Stmt:
            return seq(_exchanged(a, n, k, p), note(k, p), _below(a, m, n, k))

        return seq(find, let("p", get(pivot), used))

    return allocated([pivot], each("k", minimum(m, n), column))


def _exchanged(a: Matrix, n: Expr, k: Expr, p: Expr) -> Stmt:
    """Exchanges the rows *k* and *p*."""

    def swap(c: Expr) -> Stmt:
        return let("old", a[k, c], lambda old: seq(a.put(k, c, a[p, c]), a.put(p, c, old)))

    return If(ne(p, k), across("column", n, swap), None)


def _below(a: Matrix, m: Expr, n: Expr, k: Expr) -> Stmt:
    """Takes the row *k* from those below, as often as makes its column zero, and notes how often in that."""

    def row(r: Expr) -> Stmt:
        def taken(f: Expr) -> Stmt:
            rest = across("column", n - 1 - k, lambda c: a.add(r, k + 1 + c, -(f * a[k, k + 1 + c])))
            return seq(a.put(r, k, f), rest)

        return let("factor", a[r, k] / a[k, k], taken)

    return If(ne(a[k, k], const(0, a.buffer.dtype)), each("row", m - 1 - k, lambda r: row(k + 1 + r)), None)
