"""Eigenvalues and singular values by rotations of two columns after another, until none is left to make (Jacobi).

Rotations are as exact as the type of floats, for small values too, and need no other form of the matrix first; a sweep over all
pairs takes n^3 steps, and six or so do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.ir import Expr, apply, const, eq, select
from weft.loop import Buffer, If, Stmt, While, allocated, cell, get, let, put, seq, store
from weft.ops.linear_algebra.matrix import Matrix, check_matrices, each, epsilon, rotation
from weft.ops.registry import operator
from weft.te import Tensor, extern

MOST_SWEEPS: Final = 20
"""Sweeps after which rotations end, whatever is left: matrices with NaN have no end."""

Pair = Callable[[Expr, Expr], Stmt]


@operator("jacobi_eigen")
def jacobi_eigen(x: Tensor) -> tuple[Tensor, Tensor]:
    """The eigenvalues [..., n] of symmetric matrices [..., n, n], in no order, and their vectors, the columns of [..., n, n].

    Of a matrix the lower triangle is read. See Golub and Van Loan, "Matrix computations", section 8.5 (cyclic by rows).
    """
    check_matrices("jacobi_eigen", x, square=True)
    n, zero = x.shape[-1], const(0, x.dtype)

    def of_matrix(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        given, a, v = Matrix(ins[0], i), Matrix(Buffer("a", (n, n), x.dtype, "local")), Matrix(outs[1], i)
        limit, turned = cell("limit", x.dtype), cell("turned")

        def larger(r: Expr, c: Expr) -> Stmt:
            size = apply("abs", a[r, c])
            return put(limit, select(get(limit) < size, size, get(limit)))

        def pair(p: Expr, q: Expr) -> Stmt:
            turn = rotation(a[q, q] - a[p, p], a[p, q], lambda t, c, s: _both_sides(a, v, p, q, (t, c, s)))
            return If(get(limit) < apply("abs", a[p, q]), seq(put(turned, 1), turn), None)

        steps = seq(
            a.filled(lambda r, c: select(c <= r, given[r, c], given[c, r])),
            v.filled(lambda r, c: select(eq(r, c), const(1, x.dtype), zero)),
            put(limit, zero),
            each("r", n, lambda r: each("c", n, lambda c: larger(r, c))),
            put(limit, get(limit) * epsilon(x.dtype)),
            _swept(n, turned, pair),
            each("k", n, lambda k: store(outs[0], (*i, k), a[k, k])),
        )
        return allocated([a.buffer, limit, turned], steps)

    shapes = [x.shape[:-1], x.shape]
    values, vectors = extern(shapes, [x], of_matrix, [x.dtype] * 2, "jacobi_eigen", along=range(x.rank - 2))
    return values, vectors


@operator("jacobi_columns")
def jacobi_columns(x: Tensor) -> tuple[Tensor, Tensor]:
    """Each matrix [..., m, n] times a rotation that makes its columns orthogonal to one another, and the rotation [..., n, n].

    The lengths of the columns are the singular values, in no order (Hestenes, 1958; Golub and Van Loan, section 8.6.3).
    """
    check_matrices("jacobi_columns", x)
    m, n = x.shape[-2:]

    def of_matrix(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        given, a, v, turned = Matrix(ins[0], i), Matrix(outs[0], i), Matrix(outs[1], i), cell("turned")
        sums = [cell(name, x.dtype) for name in ("pp", "qq", "pq")]

        def added(r: Expr, p: Expr, q: Expr) -> Stmt:
            terms = (a[r, p] * a[r, p], a[r, q] * a[r, q], a[r, p] * a[r, q])
            return seq(*[put(c, get(c) + e) for c, e in zip(sums, terms, strict=True)])

        def pair(p: Expr, q: Expr) -> Stmt:
            pp, qq, pq = map(get, sums)
            least = apply("sqrt", pp) * apply("sqrt", qq) * (2 * epsilon(x.dtype))
            turn = rotation(qq - pp, pq, lambda t, c, s: seq(a.rotated(p, q, c, s), v.rotated(p, q, c, s)))
            added_up = [*[put(c, 0) for c in sums], each("r", m, lambda r: added(r, p, q))]
            return seq(*added_up, If(least < apply("abs", pq), seq(put(turned, 1), turn), None))

        start = seq(
            a.filled(lambda r, c: given[r, c]),
            v.filled(lambda r, c: select(eq(r, c), const(1, x.dtype), const(0, x.dtype))),
        )
        return allocated([turned, *sums], seq(start, _swept(n, turned, pair)))

    shapes = [x.shape, (*x.shape[:-2], n, n)]
    columns, turn = extern(shapes, [x], of_matrix, [x.dtype] * 2, "jacobi_columns", along=range(x.rank - 2))
    return columns, turn


def _swept(n: Expr, turned: Buffer, pair: Pair) -> Stmt:
    """Visits all pairs of columns, and again as long as a visit sets *turned*."""
    sweeps = cell("sweeps")
    all_pairs = each("p", n, lambda p: each("q", n - 1 - p, lambda q: pair(p, p + 1 + q)))
    again = seq(put(turned, 0), put(sweeps, get(sweeps) + 1), all_pairs)
    goes_on = eq(get(turned), const(1, get(turned).dtype)) & (get(sweeps) < MOST_SWEEPS)
    return allocated([sweeps], seq(put(sweeps, 0), put(turned, 1), While(goes_on, again)))


def _both_sides(a: Matrix, v: Matrix, p: Expr, q: Expr, turn: tuple[Expr, Expr, Expr]) -> Stmt:
    """Rotates columns and rows *p* and *q* of a symmetric matrix, so that their element becomes zero, and columns of *v*."""
    t, c, s = turn
    zero = const(0, a.buffer.dtype)

    def row(r: Expr) -> Stmt:
        def others(x: Expr, y: Expr) -> Stmt:
            new_x, new_y = c * x - s * y, s * x + c * y
            return seq(a.put(r, p, new_x), a.put(p, r, new_x), a.put(r, q, new_y), a.put(q, r, new_y))

        is_other = ~(eq(r, p) | eq(r, q))
        return If(is_other, let("x", a[r, p], lambda x: let("y", a[r, q], lambda y: others(x, y))), None)

    def diagonal(shift: Expr) -> Stmt:
        return seq(a.add(p, p, -shift), a.add(q, q, shift), a.put(p, q, zero), a.put(q, p, zero))

    return seq(let("shift", t * a[p, q], diagonal), each("r", a.buffer.shape[-2], row), v.rotated(p, q, c, s))
