"""Factors L D L' of symmetric matrices that need not be definite, D of blocks of one or of two rows (Bunch and Kaufman, 1977).

See Golub and Van Loan, "Matrix computations", section 4.4.4. Rows and columns are exchanged, and exchanges told, as by LAPACK's
`sytf2` for the lower triangle: row k was exchanged with p where its number is p, counted from 1, and, of a block, the second row
where the numbers of both are -p.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from weft.ir import INDEX, ZERO, Expr, apply, cast, const, eq, maximum, ne, select
from weft.loop import Buffer, If, Load, Stmt, While, allocated, cell, get, let, put, seq, store
from weft.ops.linear_algebra.matrix import Matrix, check_matrices, check_system, each
from weft.ops.registry import operator
from weft.support.dtypes import i32
from weft.te import Tensor, extern

GROWTH: Final = (1 + math.sqrt(17)) / 8
"""By which part of the largest element of its column a pivot may be, so that elements grow as little in either kind of step."""


@operator("ldl")
def ldl(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The factors of each matrix [..., n, n] in one, D on the diagonal and L, of ones there, below; and what was exchanged.

    Of a matrix the lower triangle is read. The exchanges are [..., n] of int32; the third result [...] is 0, or the number, from
    1, of the last pivot that is zero.
    """
    check_matrices("ldl", x, square=True)
    n = x.shape[-1]

    def of_matrix(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        a, given, at = Matrix(outs[0], i), Matrix(ins[0], i), cell("at")

        def exchanged(k: Expr, p: Expr, two: Expr) -> Stmt:
            number = cast(p + 1, i32)
            single = seq(store(outs[1], (*i, k), number), _one_taken(a, k), put(at, k + 1))
            both = [store(outs[1], (*i, row), -number) for row in (k, k + 1)]
            block = seq(*both, _two_taken(a, k), put(at, k + 2))
            return seq(_exchange(a, k, p, two), If(two, block, single))

        def step(k: Expr, largest: Expr, row: Expr) -> Stmt:
            is_zero = eq(maximum(apply("abs", a[k, k]), largest), const(0, x.dtype))
            skipped = seq(
                store(outs[2], i, cast(k + 1, i32)), store(outs[1], (*i, k), cast(k + 1, i32)), put(at, k + 1)
            )
            return If(is_zero, skipped, _chosen(a, k, largest, row, lambda p, two: exchanged(k, p, two)))

        copied = a.filled(lambda r, c: select(c <= r, given[r, c], const(0, x.dtype)))
        body = let("k", get(at), lambda k: _largest_below(a, k, lambda largest, row: step(k, largest, row)))
        begin = seq(copied, store(outs[2], i, const(0, i32)), put(at, 0))
        return seq(allocated([at], seq(begin, While(get(at) < n, body))))

    shapes = [x.shape, x.shape[:-1], x.shape[:-2]]
    made = extern(shapes, [x], of_matrix, [x.dtype, i32, i32], "ldl", along=range(x.rank - 2))
    return made[0], made[1], made[2]


def _largest_below(a: Matrix, k: Expr, then: Callable[[Expr, Expr], Stmt]) -> Stmt:
    """Gives *then* the largest absolute value of column *k* below the diagonal, and its row."""
    largest, row = cell("largest", a.buffer.dtype), cell("row")

    def seen(r: Expr) -> Stmt:
        return let(
            "size", apply("abs", a[r, k]), lambda s: If(get(largest) < s, seq(put(largest, s), put(row, r)), None)
        )

    find = seq(put(largest, 0), put(row, k), each("r", a.buffer.shape[-1] - 1 - k, lambda r: seen(k + 1 + r)))
    chosen = let("largest", get(largest), lambda s: let("row", get(row), lambda r: then(s, r)))
    return allocated([largest, row], seq(find, chosen))


def _chosen(a: Matrix, k: Expr, largest: Expr, row: Expr, then: Callable[[Expr, Expr], Stmt]) -> Stmt:
    """Gives *then* the row that becomes the pivot of step *k*, and whether it is the second of a block.

    *row* is that of the *largest* element of column k, below the diagonal.
    """
    other, n = cell("other", a.buffer.dtype), a.buffer.shape[-1]
    growth = const(GROWTH, a.buffer.dtype)

    def seen(r: Expr, c: Expr) -> Stmt:
        return let("size", apply("abs", a[r, c]), lambda s: put(other, select(get(other) < s, s, get(other))))

    left = each("c", row - k, lambda c: seen(row, k + c))
    below = each("r", n - 1 - row, lambda r: seen(row + 1 + r, row))
    here, there = apply("abs", a[k, k]), apply("abs", a[row, row])
    is_here = growth * largest <= here
    stays = is_here | (growth * largest * (largest / get(other)) <= here)
    two = ~stays & ~(growth * get(other) <= there)
    found = let("stays", stays, lambda s: let("two", two, lambda t: let("p", select(s, k, row), lambda p: then(p, t))))
    return allocated([other], seq(put(other, 0), left, below, found))


def _exchange(a: Matrix, k: Expr, p: Expr, two: Expr) -> Stmt:
    """Exchanges rows and columns *k*, or with *two* k + 1, and *p* of what is left of the lower triangle."""
    n = a.buffer.shape[-1]

    def swapped(first: tuple[Expr, Expr], second: tuple[Expr, Expr]) -> Stmt:
        return let("old", a[first], lambda old: seq(a.put(*first, a[second]), a.put(*second, old)))

    def of(k: Expr, j: Expr) -> Stmt:
        inside = each("r", p - 1 - j, lambda r: swapped((j + 1 + r, j), (p, j + 1 + r)))
        below = each("r", n - 1 - p, lambda r: swapped((p + 1 + r, j), (p + 1 + r, p)))
        return If(ne(p, j), seq(below, inside, swapped((j, j), (p, p)), If(two, swapped((j, k), (p, k)), None)), None)

    return let("j", select(two, k + 1, k), lambda j: of(k, j))


def _one_taken(a: Matrix, k: Expr) -> Stmt:
    """Takes the square of column *k* from what is left, and divides it by its pivot."""
    count = a.buffer.shape[-1] - 1 - k

    def row(r: Expr, f: Expr) -> Stmt:
        return each("c", r - k, lambda c: a.add(r, k + 1 + c, -(f * a[k + 1 + c, k])))

    def taken(by: Expr) -> Stmt:
        rest = each("r", count, lambda r: let("f", a[k + 1 + r, k] * by, lambda f: row(k + 1 + r, f)))
        return seq(rest, each("r", count, lambda r: a.put(k + 1 + r, k, a[k + 1 + r, k] * by)))

    return let("by", const(1, a.buffer.dtype) / a[k, k], taken)


def _two_taken(a: Matrix, k: Expr) -> Stmt:
    """Does so with the columns *k* and k + 1, whose pivot is a block."""
    n, one = a.buffer.shape[-1], const(1, a.buffer.dtype)
    mixed = a[k + 1, k]

    def column(j: Expr, d: Expr, u: Expr, v: Expr) -> Stmt:
        first, second = d * (u * a[j, k] - a[j, k + 1]), d * (v * a[j, k + 1] - a[j, k])
        return let("first", first, lambda w: let("second", second, lambda z: updated(j, w, z)))

    def updated(j: Expr, w: Expr, z: Expr) -> Stmt:
        rest = each("r", n - j, lambda r: a.add(j + r, j, -(a[j + r, k] * w + a[j + r, k + 1] * z)))
        return seq(rest, a.put(j, k, w), a.put(j, k + 1, z))

    def taken(u: Expr, v: Expr) -> Stmt:
        by = one / (u * v - one) / mixed
        return let("d", by, lambda d: each("j", n - 2 - k, lambda j: column(k + 2 + j, d, u, v)))

    return let("u", a[k + 1, k + 1] / mixed, lambda u: let("v", a[k, k] / mixed, lambda v: taken(u, v)))


@operator("ldl_solve")
def ldl_solve(factors: Tensor, exchanges: Tensor, b: Tensor) -> Tensor:
    """The X of which each A [..., n, n] times X is B [..., n, k]; of A the factors and exchanges of `ldl` are given."""
    check_system("ldl_solve", factors, b)
    n = b.shape[-2]

    def of_matrix(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        a, right, x, at = Matrix(ins[0], i), Matrix(ins[2], i), Matrix(outs[0], i), cell("at")

        def number(k: Expr) -> Expr:
            return cast(Load(ins[1], (*i, k)), INDEX)

        def down(k: Expr, p: Expr) -> Stmt:
            one = seq(_rows_exchanged(x, k, p - 1), _down(a, x, k, k + 1), _divided(a, x, k), put(at, k + 1))
            two = seq(
                _rows_exchanged(x, k + 1, -p - 1),
                _down(a, x, k, k + 2),
                _down(a, x, k + 1, k + 2),
                _block_divided(a, x, k),
                put(at, k + 2),
            )
            return If(p < ZERO, two, one)

        def up(k: Expr, p: Expr) -> Stmt:
            one = seq(_up(a, x, k, k + 1), _rows_exchanged(x, k, p - 1), put(at, k))
            first = maximum(k - 1, 0)
            two = seq(_up(a, x, k, k + 1), _up(a, x, first, k + 1), _rows_exchanged(x, k, -p - 1), put(at, first))
            return If(p < ZERO, two, one)

        def numbered(k: Expr, step: Callable[[Expr, Expr], Stmt]) -> Stmt:
            return let("k", k, lambda k: let("p", number(k), lambda p: step(k, p)))

        forward = seq(put(at, 0), While(get(at) < n, numbered(get(at), down)))
        backward = While(get(at) > ZERO, numbered(get(at) - 1, up))
        return allocated([at], seq(x.filled(lambda r, c: right[r, c]), forward, backward))

    return extern([b.shape], [factors, exchanges, b], of_matrix, [b.dtype], "ldl_solve", along=range(b.rank - 2))[0]


def _rows_exchanged(x: Matrix, k: Expr, p: Expr) -> Stmt:
    def swapped(c: Expr) -> Stmt:
        return let("old", x[k, c], lambda old: seq(x.put(k, c, x[p, c]), x.put(p, c, old)))

    return If(ne(k, p), each("c", x.buffer.shape[-1], swapped), None)


def _down(a: Matrix, x: Matrix, k: Expr, first: Expr) -> Stmt:
    """Takes row *k* of X, as often as L says, from those from *first* on."""
    rows, columns = x.buffer.shape[-2:]

    def taken(r: Expr) -> Stmt:
        return let("f", a[r, k], lambda f: each("c", columns, lambda c: x.add(r, c, -(f * x[k, c]))))

    return each("r", rows - first, lambda r: taken(first + r))


def _up(a: Matrix, x: Matrix, k: Expr, first: Expr) -> Stmt:
    """Takes the rows of X from *first* on, as often as L says, from row *k*."""
    rows, columns = x.buffer.shape[-2:]

    def taken(r: Expr) -> Stmt:
        return let("f", a[r, k], lambda f: each("c", columns, lambda c: x.add(k, c, -(f * x[r, c]))))

    return each("r", rows - first, lambda r: taken(first + r))


def _divided(a: Matrix, x: Matrix, k: Expr) -> Stmt:
    return each("c", x.buffer.shape[-1], lambda c: x.put(k, c, x[k, c] / a[k, k]))


def _block_divided(a: Matrix, x: Matrix, k: Expr) -> Stmt:
    """Solves the block of D of the rows *k* and k + 1."""
    mixed, one = a[k + 1, k], const(1, a.buffer.dtype)

    def column(c: Expr, u: Expr, v: Expr) -> Stmt:
        first, second = x[k, c] / mixed, x[k + 1, c] / mixed
        by = one / (u * v - one)

        def put(p: Expr, q: Expr) -> Stmt:
            return seq(x.put(k, c, (v * p - q) * by), x.put(k + 1, c, (u * q - p) * by))

        return let("p", first, lambda p: let("q", second, lambda q: put(p, q)))

    u, v = a[k, k] / mixed, a[k + 1, k + 1] / mixed
    columns = x.buffer.shape[-1]
    return let("u", u, lambda u: let("v", v, lambda v: each("c", columns, lambda c: column(c, u, v))))
