"""Matrices [..., m, n]: products, factors, inverses and determinants of MXNet's `linalg`, and diagonals and triangles of them."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import translates
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.composites.numerics import linear_algebra as matrices
from weft.graph.composites.sequences import concat
from weft.support.dtypes import i32

Places: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_ROWS: Final = -2


@translates("_linalg_gemm", "linalg_gemm")
def gemm(c: Call) -> Operand:
    """A product of two matrices, and a third one added to it."""
    made = _scaled(c, _by_rows(c, c.add("matmul", *_factors(c))), "alpha")
    return c.add("add", made, _scaled(c, c.input(2), "beta"))


@translates("_linalg_gemm2", "linalg_gemm2")
def gemm2(c: Call) -> Operand:
    """A product of two matrices."""
    return _scaled(c, _by_rows(c, c.add("matmul", *_factors(c))), "alpha")


def _by_rows(c: Call, x: Operand) -> Operand:
    """Returns matrices whose rows are along `axis`, or takes such ones to [..., m, n] and back: the same exchange."""
    axis = c.axis_of(c.integer("axis", _ROWS), x.rank)
    order = [d for d in range(x.rank) if d != x.rank - 2]
    order.insert(axis, x.rank - 2)
    return x if axis == x.rank - 2 else c.transpose(x, order)


def _factors(c: Call) -> list[Operand]:
    made: list[Operand] = []
    for k, side in enumerate("ab"):
        x = c.input(k)
        axis = c.axis_of(c.integer("axis", _ROWS), x.rank)
        if axis != x.rank - 2:
            order = [d for d in range(x.rank) if d != axis]
            order.insert(x.rank - 2, axis)
            x = c.transpose(x, order)
        made.append(matrices.turned(c, x) if c.flag(f"transpose_{side}") else x)
    return made


def _scaled(c: Call, x: Operand, name: str) -> Operand:
    by = c.number(name, 1.0)
    return x if by == 1.0 else c.add("mul", x, c.scalar(by, x.dtype))


@translates("_linalg_syrk", "linalg_syrk")
def syrk(c: Call) -> Operand:
    """Matrices times their own transposes."""
    a = c.input()
    other = matrices.turned(c, a)
    return _scaled(c, c.add("matmul", other, a) if c.flag("transpose") else c.add("matmul", a, other), "alpha")


@translates("_linalg_potrf", "linalg_potrf", "_npi_cholesky")
def potrf(c: Call) -> Operand:
    """The Cholesky factor, a lower triangle."""
    return c.add_many("cholesky", c.input())[0]


@translates("_linalg_potri", "linalg_potri")
def potri(c: Call) -> Operand:
    """The inverse of the matrix of which a lower triangle is the Cholesky factor."""
    a = c.input()
    n = matrices.sides(c, a)[0]
    one = matrices.identity(c, a.shape[:-2], n, n, a.dtype)
    inverse = matrices.solved_by_triangle(c, a, one, upper=False, unit=False, left=True)
    return c.add("matmul", matrices.turned(c, inverse), inverse)


@translates("_linalg_trmm", "linalg_trmm")
def trmm(c: Call) -> Operand:
    """A product of a triangle and a matrix."""
    a, b = _triangle(c, c.input(0), lower=c.flag("lower", True)), c.input(1)
    a = matrices.turned(c, a) if c.flag("transpose") else a
    return _scaled(c, c.add("matmul", b, a) if c.flag("rightside") else c.add("matmul", a, b), "alpha")


@translates("_linalg_trsm", "linalg_trsm")
def trsm(c: Call) -> Operand:
    """The matrix whose product with a triangle is known."""
    a, upper = c.input(0), not c.flag("lower", True)
    if c.flag("transpose"):
        a, upper = matrices.turned(c, a), not upper
    right = _scaled(c, c.input(1), "alpha")
    return matrices.solved_by_triangle(c, a, right, upper=upper, unit=False, left=not c.flag("rightside"))


def _triangle(c: Call, a: Operand, *, lower: bool) -> Operand:
    """Returns matrices with zeros in the other triangle."""
    ones = np.ones(matrices.sides(c, a), np.bool_)
    kept = CompileTimeConstant(np.tril(ones) if lower else np.triu(ones))
    return c.add("where", kept, a, c.scalar(0, a.dtype))


@translates("_linalg_inverse", "linalg_inverse")
def inverse(c: Call) -> Operand:
    """Inverses of square matrices."""
    return matrices.inverted(c, c.input())


@translates("_npi_solve")
def solve(c: Call) -> Operand:
    """The X of which A X is B; B may be vectors."""
    a, b = c.input(0), c.input(1)
    if b.rank == a.rank:
        return matrices.solved_by_elimination(c, a, b)
    return c.reshape(matrices.solved_by_elimination(c, a, c.reshape(b, [*b.shape, 1])), b.shape)


@translates("_linalg_det", "linalg_det")
def det(c: Call) -> Operand:
    """Determinants."""
    return c.add("det", c.input())


@translates("_linalg_slogdet", "linalg_slogdet")
def slogdet(c: Call) -> tuple[Operand, Operand]:
    """The signs of determinants, and the logarithms of their sizes."""
    x = c.input()
    packed, rows = c.add_many("lu", x)
    diagonal = matrices.diagonal(c, packed)
    own = CompileTimeConstant(np.arange(matrices.sides(c, x)[0], dtype=np.int32))
    stays = c.add("equal", c.cast(rows, i32), own)
    turns = c.add("where", stays, c.scalar(1, x.dtype), c.scalar(-1, x.dtype))
    signs, axis = c.add("mul", c.add("sign", diagonal), turns), (x.rank - 2,)
    logs = c.add("reduce_sum", c.add("log", c.add("abs", diagonal)), axes=axis, keepdims=False)
    return c.add("reduce_prod", signs, axes=axis, keepdims=False), logs


@translates("_linalg_sumlogdiag", "linalg_sumlogdiag")
def sumlogdiag(c: Call) -> Operand:
    """The sum of the logarithms of the diagonal."""
    x = c.input()
    made = c.add("reduce_sum", c.add("log", matrices.diagonal(c, x)), axes=(x.rank - 2,), keepdims=False)
    return made if x.rank > 2 else c.reshape(made, [1])


@translates("_linalg_gelqf", "linalg_gelqf")
def gelqf(c: Call) -> tuple[Operand, Operand]:
    """The factors Q, whose rows are orthogonal, and L, a lower triangle, of matrices that are L Q."""
    m, n = matrices.sides(c, c.input())
    if m > n:
        c.fail(f"it has more rows than columns: {c.input()!r}", "factorise its transpose")
    packed, tau = c.add_many("householder_qr", matrices.turned(c, c.input()))
    square = c.add("slice", packed, starts=(0,), ends=(m,), axes=(packed.rank - 2,), steps=(1,))
    q = matrices.orthogonal(c, packed, tau, m)
    return matrices.turned(c, q), matrices.turned(c, _triangle(c, square, lower=False))


@translates("_linalg_syevd")
def syevd(c: Call) -> tuple[Operand, Operand]:
    """The eigenvectors of symmetric matrices, as rows whose number of the greatest size is positive, and the eigenvalues."""
    values, columns = matrices.symmetric_eigen(c, c.input())
    rows = matrices.turned(c, columns)
    axis = (rows.rank - 1,)
    most, least = (c.add(f"reduce_{op}", rows, axes=axis, keepdims=True) for op in ("max", "min"))
    turns = c.add("less", most, c.add("neg", least))
    return c.add("where", turns, c.add("neg", rows), rows), values


@translates("_linalg_extractdiag", "linalg_extractdiag")
def extractdiag(c: Call) -> Operand:
    """One diagonal of each matrix."""
    return _extracted(c, _diagonal_at(c, matrices.sides(c, c.input())[0]))


@translates("_linalg_makediag", "linalg_makediag")
def makediag(c: Call) -> Operand:
    """Matrices of which one diagonal is given."""
    n = _length(c) + abs(c.integer("offset", 0))
    return _spread(c, n, _diagonal_at(c, n))


@translates("_linalg_extracttrian", "linalg_extracttrian")
def extracttrian(c: Call) -> Operand:
    """One triangle of each matrix: a lower one row by row, an upper one column by column."""
    return _extracted(c, _triangle_at(c, matrices.sides(c, c.input())[0]))


@translates("_linalg_maketrian", "linalg_maketrian")
def maketrian(c: Call) -> Operand:
    """Matrices of which one triangle is given, in the order of `extracttrian`."""
    count = _length(c)
    side = int(((8 * count + 1) ** 0.5 - 1) / 2)
    if side * (side + 1) // 2 != count:
        c.fail(f"{c.input()!r} is no triangle of a matrix", "give it 1, 3, 6, 10 ... numbers of each matrix")
    n = side + abs(c.integer("offset", 0))
    return _spread(c, n, _triangle_at(c, n))


def _length(c: Call) -> int:
    x = c.input()
    return matrices.sides(c, c.reshape(x, [*x.shape, 1]))[0]


def _offset(c: Call, n: int) -> int:
    found = c.integer("offset", 0)
    if not -n < found < n or n > 1 << 12:
        c.wrong("offset", f"a diagonal of a matrix of {n} rows")
    return found


def _diagonal_at(c: Call, n: int) -> Places:
    """Returns where the diagonal is among the elements of a matrix of *n* rows, which are in a row."""
    offset = _offset(c, n)
    first = offset if offset >= 0 else -offset * n
    return first + (n + 1) * np.arange(n - abs(offset), dtype=np.int64)


def _triangle_at(c: Call, n: int) -> Places:
    offset = _offset(c, n)
    if offset < 0 or (offset == 0 and c.flag("lower", True)):
        rows, columns = np.tril_indices(n, offset)
    else:
        columns, rows = np.tril_indices(n, -offset)
    found: Places = rows * n + columns
    return found


def _extracted(c: Call, places: Places) -> Operand:
    """Returns the elements at *places* of each matrix, whose elements are counted row by row."""
    x = c.input()
    m, n = matrices.sides(c, x)
    if m != n:
        c.fail(f"its matrices are not square: {x!r}", "give it square ones")
    return c.add("gather", c.reshape(x, [*x.shape[:-2], n * n]), CompileTimeConstant(places), axis=x.rank - 2)


def _spread(c: Call, n: int, places: Places) -> Operand:
    """Returns matrices of *n* rows whose elements at *places* are given, and the others zero."""
    x = c.input()
    with_zero = concat(c, [x, c.add("full", shape=(*x.shape[:-1], 1), value=0, dtype=x.dtype)], x.rank - 1)
    table = np.full(n * n, len(places), np.int64)
    table[places] = np.arange(len(places))
    made = c.add("gather", with_zero, CompileTimeConstant(table), axis=x.rank - 1)
    return c.reshape(made, [*x.shape[:-1], n, n])
