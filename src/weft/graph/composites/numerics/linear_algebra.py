"""Solutions, inverses, and orthogonal and singular factors of matrices [..., m, n], of the operators that factorise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.graph.builder.builder import Builder
from weft.graph.builder.constants import CompileTimeConstant
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import total
from weft.graph.composites.branches_and_loops import loop
from weft.ir import Const, Expr
from weft.support.dtypes import DType, bool_, i32, i64


def turned(b: Builder, x: Operand) -> Operand:
    """Returns matrices transposed."""
    return b.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])


def sides(b: Builder, x: Operand) -> tuple[int, int]:
    """Returns the numbers of rows and columns; raises `ModelError` for symbolic ones."""
    m, n = x.shape[-2:]
    if not isinstance(m, Const) or not isinstance(n, Const):
        b.fail(f"matrices {x!r} of symbolic size are not factorised", "give the sizes numbers in `shapes`")
    return int(m.value), int(n.value)


def identity(b: Builder, lead: Sequence[Expr], m: int, n: int, dtype: DType) -> Operand:
    """Returns a batch of matrices [*lead, m, n] with ones on the diagonal."""
    return b.add("expand", CompileTimeConstant(np.eye(m, n).astype(dtype.numpy)), shape=(*lead, m, n))


def diagonal(b: Builder, x: Operand) -> Operand:
    """Returns the diagonals [..., min(m, n)] of matrices."""
    k = min(sides(b, x))
    at = CompileTimeConstant(np.arange(k, dtype=np.int64)[:, None])
    places = b.add("expand", at, shape=(*x.shape[:-2], k, 1))
    rows = b.add("slice", x, starts=(0,), ends=(k,), axes=(x.rank - 2,), steps=(1,))
    return b.reshape(b.add("gather_elements", rows, places, axis=x.rank - 1), (*x.shape[:-2], k))


def rows_in_order(b: Builder, x: Operand, order: Operand) -> Operand:
    """Returns the rows of matrices in the *order* [..., m] of each."""
    places = b.add("expand", b.reshape(b.cast(order, i64), (*order.shape, 1)), shape=(*order.shape, x.shape[-1]))
    return b.add("gather_elements", x, places, axis=x.rank - 2)


def solved(b: Builder, packed: Operand, order: Operand, right: Operand, *, transposed: bool = False) -> Operand:
    """Returns the X of which A X, or A' X, is *right*; *packed* are the factors of A with its rows in *order*."""
    if not transposed:
        y = b.add("solve_triangular", packed, rows_in_order(b, right, order), upper=False, unit=True)
        return b.add("solve_triangular", packed, y, upper=True, unit=False)
    factors = turned(b, packed)
    y = b.add("solve_triangular", factors, right, upper=False, unit=False)
    z = b.add("solve_triangular", factors, y, upper=True, unit=True)
    return rows_in_order(b, z, b.add("argsort", order, axis=order.rank - 1, descending=False))


def solved_by_elimination(b: Builder, a: Operand, right: Operand, *, transposed: bool = False) -> Operand:
    """Returns the X of which A X, or A' X, is *right*, for square matrices *a*."""
    packed, exchanges = b.add_many("lu", a)
    order = b.add("exchanged_rows", exchanges, rows=sides(b, packed)[0])
    return solved(b, packed, order, right, transposed=transposed)


def inverted(b: Builder, a: Operand, *, transposed: bool = False) -> Operand:
    """Returns the inverses of square matrices, or of their transposes."""
    n = sides(b, a)[0]
    return solved_by_elimination(b, a, identity(b, a.shape[:-2], n, n, a.dtype), transposed=transposed)


def solved_by_triangle(b: Builder, a: Operand, right: Operand, *, upper: bool, unit: bool, left: bool) -> Operand:
    """Returns the X of which A X, or with *left* false X A, is *right*; of A one triangle counts."""
    if left:
        return b.add("solve_triangular", a, right, upper=upper, unit=unit)
    return turned(b, b.add("solve_triangular", turned(b, a), turned(b, right), upper=not upper, unit=unit))


def first_zero(b: Builder, packed: Operand) -> Operand:
    """Returns the number, from 1, of the first zero on the diagonals; 0 where there is none."""
    d = diagonal(b, packed)
    zero = b.cast(b.add("equal", d, b.scalar(0, d.dtype)), i32)
    if isinstance(d.shape[-1], Const) and not d.shape[-1].value:
        return b.add("full", shape=d.shape[:-1], value=0, dtype=i32)
    first = b.cast(b.add("argmax", zero, axis=d.rank - 1, keepdims=False, last=False), i32)
    found = b.cast(b.add("reduce_max", zero, axes=(d.rank - 1,), keepdims=False), bool_)
    return b.add("where", found, b.add("add", first, b.scalar(1, i32)), b.scalar(0, i32))


def orthogonal(b: Builder, packed: Operand, tau: Operand, columns: int) -> Operand:
    """Returns the first *columns* of the product of reflections, as `householder_qr` leaves them."""
    start = identity(b, packed.shape[:-2], sides(b, packed)[0], columns, packed.dtype)
    return b.add("apply_reflectors", packed, tau, start, transposed=False)


def symmetric_eigen(b: Builder, x: Operand) -> tuple[Operand, Operand]:
    """Returns the eigenvalues of symmetric matrices, ascending, and their vectors as columns."""
    values, vectors = b.add_many("jacobi_eigen", x)
    order = b.add("argsort", values, axis=values.rank - 1, descending=False)
    return b.add("gather_elements", values, b.cast(order, i64), axis=values.rank - 1), _columns(b, vectors, order)


def singular_factors(b: Builder, x: Operand, *, full: bool) -> tuple[Operand, Operand, Operand]:
    """Returns U, the singular values, descending, and V' of matrices; with *full*, U and V' are square.

    The columns of A V, longest first, are orthogonal: a QR factorisation of them makes U of them, for values of zero too.
    """
    m, n = sides(b, x)
    if m < n:
        u, s, vh = singular_factors(b, turned(b, x), full=full)
        return turned(b, vh), s, turned(b, u)
    made, v = b.add_many("jacobi_columns", x)
    lengths = b.add("sqrt", b.add("reduce_sum", b.add("square", made), axes=(made.rank - 2,), keepdims=False))
    order = b.add("argsort", lengths, axis=lengths.rank - 1, descending=True)
    packed, tau = b.add_many("householder_qr", _columns(b, made, order))
    u = orthogonal(b, packed, tau, m if full else n)
    return _with_signs(b, u, diagonal(b, packed)), _sorted(b, lengths, order), turned(b, _columns(b, v, order))


def singular_values(b: Builder, x: Operand) -> Operand:
    """Returns the singular values of matrices, descending."""
    m, n = sides(b, x)
    made, _ = b.add_many("jacobi_columns", turned(b, x) if m < n else x)
    lengths = b.add("sqrt", b.add("reduce_sum", b.add("square", made), axes=(made.rank - 2,), keepdims=False))
    return _sorted(b, lengths, b.add("argsort", lengths, axis=lengths.rank - 1, descending=True))


def pseudoinverse(b: Builder, x: Operand, absolute: Operand, relative: Operand, *, hermitian: bool) -> Operand:
    """Returns the pseudoinverse of matrices: singular values up to an *absolute* bound, or a *relative* one, count as zero."""
    if hermitian:
        s, u = symmetric_eigen(b, x)
        v = turned(b, u)
    else:
        u, s, v = singular_factors(b, x, full=False)
    largest = b.add("reduce_max", b.add("abs", s), axes=(s.rank - 1,), keepdims=True)
    absolute, relative = (b.reshape(y, (*y.shape, 1)) for y in (absolute, relative))
    least = b.add("maximum", absolute, b.add("mul", relative, largest))
    counts = b.add("less", least, b.add("abs", s))
    inverse = b.add(
        "where", counts, b.add("reciprocal", b.add("where", counts, s, b.scalar(1, s.dtype))), b.scalar(0, s.dtype)
    )
    scaled = b.add("mul", turned(b, v), b.reshape(inverse, (*s.shape[:-1], 1, s.shape[-1])))
    return b.add("matmul", scaled, turned(b, u))


def exponential(b: Builder, x: Operand) -> Operand:
    """Returns the exponential of square matrices: of a 2^s-th part by its series, then squared s times (Higham, 2005).

    Each matrix is squared as often as its own norm asks for.
    """
    n = sides(b, x)[0]
    columns = b.add("reduce_sum", b.add("abs", x), axes=(x.rank - 2,), keepdims=True)
    size = b.add("reduce_max", columns, axes=(x.rank - 1,), keepdims=True)
    log = b.add("mul", b.add("log", b.add("maximum", size, b.scalar(1, x.dtype))), b.scalar(1 / np.log(2), x.dtype))
    times = b.add("ceil", log)
    small = b.add("mul", x, b.add("exp", b.add("mul", times, b.scalar(-np.log(2), x.dtype))))
    one = identity(b, x.shape[:-2], n, n, x.dtype)
    series = one
    for k in range(18, 0, -1):  # of a matrix of norm 1 the next term is less than 1e-17
        series = b.add("add", one, b.add("mul", b.add("matmul", small, series), b.scalar(1 / k, x.dtype)))
    count = b.cast(times, i64)
    most = b.add("reduce_max", b.reshape(count, [total(count.shape)]), axes=(0,), keepdims=False)

    def square(r: Builder, step: Operand, states: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
        more = r.add("less", step, count)
        made = r.add("where", more, r.add("matmul", states[0], states[0]), states[0])
        return CompileTimeConstant(np.ones((), np.bool_)), [made], []

    return loop(b, most, None, [series], square)[0][0]


def _sorted(b: Builder, x: Operand, order: Operand) -> Operand:
    return b.add("gather_elements", x, b.cast(order, i64), axis=x.rank - 1)


def _columns(b: Builder, x: Operand, order: Operand) -> Operand:
    """Returns the columns of matrices in the *order* [..., n] of each."""
    lead, n = order.shape[:-1], order.shape[-1]
    places = b.add("expand", b.reshape(b.cast(order, i64), (*lead, 1, n)), shape=(*lead, x.shape[-2], n))
    return b.add("gather_elements", x, places, axis=x.rank - 1)


def _with_signs(b: Builder, u: Operand, d: Operand) -> Operand:
    """Returns matrices with the columns negated that have a negative number in *d* [..., k]; those behind k stay."""
    one = b.scalar(1, d.dtype)
    signs = b.add("where", b.add("less", d, b.scalar(0, d.dtype)), b.scalar(-1, d.dtype), one)
    more = sides(b, u)[1] - sides(b, b.reshape(d, (*d.shape, 1)))[0]
    if more:
        signs = b.add("concat", signs, b.add("expand", one, shape=(*d.shape[:-1], more)), axis=d.rank - 1)
    return b.add("mul", u, b.reshape(signs, (*signs.shape[:-1], 1, signs.shape[-1])))
