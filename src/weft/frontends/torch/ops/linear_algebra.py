"""Factorisations of matrices, and solvers by them.

Matrices that have no factors (singular, not positive definite) give infinities and NaN; the numbers `info` tell of them.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes

from weft.frontends.torch.call import Call, common_shape
from weft.frontends.torch.complex_numbers import Complex, parts, translates_complex
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results
from weft.graph.composites.numerics import linear_algebra as matrices
from weft.graph.composites.slicing import split_equally
from weft.ir import Expr
from weft.support.dtypes import i32, i64


@translates("linalg_lu_factor_ex")
def lu_factor(c: Call) -> Results:
    """The factors in one, the rows exchanged, and the first column without a pivot."""
    _check_pivots(c)
    packed, rows = c.add_many("lu", c.tensor("A"))
    return packed, _from_one(c, rows), matrices.first_zero(c, packed)


@translates("linalg_lu")
def lu(c: Call) -> Results:
    """P, L and U."""
    _check_pivots(c)
    packed, rows = c.add_many("lu", c.tensor("A"))
    return _unpacked(c, packed, _order(c, rows, packed))


@translates("lu_unpack")
def lu_unpack(c: Call) -> Results:
    """P, L and U of factors in one."""
    packed = c.tensor("LU_data")
    permutation, lower, upper = _unpacked(c, packed, _order(c, _from_zero(c, c.tensor("LU_pivots")), packed))
    nothing = c.add("full", shape=(0,), value=0, dtype=packed.dtype)
    has_data, has_pivots = bool(c.value("unpack_data", True)), bool(c.value("unpack_pivots", True))
    triangles = (lower, upper) if has_data else (nothing, nothing)
    return permutation if has_pivots else nothing, *triangles


@translates("linalg_lu_solve")
def lu_solve(c: Call) -> Results:
    """The X of which A X, or X A, is B, by the factors of A."""
    packed, right, left = c.tensor("LU"), c.tensor("B"), bool(c.value("left", True))
    order = _order(c, _from_zero(c, c.tensor("pivots")), packed)
    lead = common_shape([packed.shape[:-2], right.shape[:-2]])
    packed, right = _with_batch(c, packed, lead), _with_batch(c, right, lead)
    order = c.add("expand", order, shape=(*lead, order.shape[-1]))
    adjoint = bool(c.value("adjoint", False))
    if left:
        return matrices.solved(c, packed, order, right, transposed=adjoint)
    made = matrices.solved(c, packed, order, matrices.turned(c, right), transposed=not adjoint)
    return matrices.turned(c, made)


@translates("_linalg_solve_ex")
def solve(c: Call) -> Results:
    """The X of which A X, or X A, is B, which may be a vector; and the factors."""
    return _solved(c, c.tensor("A"), c.tensor("B"))


def _solved(c: Call, a: Operand, b: Operand) -> tuple[Operand, ...]:
    left = bool(c.value("left", True))
    packed, rows = c.add_many("lu", a)
    is_vector = b.rank == 1 or (b.rank == a.rank - 1 and b.shape == a.shape[:-1])
    right = c.reshape(b, (*b.shape, 1)) if is_vector else b
    lead = common_shape([a.shape[:-2], right.shape[:-2]])
    factors, right = _with_batch(c, packed, lead), _with_batch(c, right, lead)
    order = _order(c, rows, packed)
    order = c.add("expand", order, shape=(*lead, order.shape[-1]))
    if left:
        made = matrices.solved(c, factors, order, right)
    else:
        made = matrices.turned(c, matrices.solved(c, factors, order, matrices.turned(c, right), transposed=True))
    shaped = c.reshape(made, made.shape[:-1]) if is_vector else made
    return shaped, packed, _from_one(c, rows), matrices.first_zero(c, packed)


@translates_complex("_linalg_solve_ex")
def solve_complex(c: Call) -> Any:
    """The complex X of which A X, or X A, is B, which may be a vector, from a real system of twice the size; no factors.

    [Re A, -Im A]  [Re X]     [Re B]                            [ Re A, Im A]
    [Im A,  Re A]  [Im X]  =  [Im B],      [Re X, Im X]         [-Im A, Re A]  =  [Re B, Im B]
    """
    a, b, left = parts(c, "A"), parts(c, "B"), bool(c.value("left", True))
    negative = c.add("neg", a.imaginary)
    blocks = ((a.real, negative), (a.imaginary, a.real)) if left else ((a.real, a.imaginary), (negative, a.real))
    matrix = c.add("concat", *[c.add("concat", *row, axis=a.rank - 1) for row in blocks], axis=a.rank - 2)
    is_vector = b.rank == 1 or (b.rank == a.rank - 1 and b.shape == a.shape[:-1])
    axis = b.rank - 1 if is_vector or not left else b.rank - 2
    joint = c.add("concat", b.real, b.imaginary, axis=axis)
    made, *_, info = _solved(c, matrix, joint)
    return Complex(*split_equally(c, made, axis, 2)), None, None, info


@translates("linalg_inv_ex")
def inverse(c: Call) -> Results:
    """The inverse, and the first column without a pivot."""
    a = c.tensor("A")
    packed, rows = c.add_many("lu", a)
    one = matrices.identity(c, a.shape[:-2], *matrices.sides(c, a), a.dtype)
    return matrices.solved(c, packed, _order(c, rows, packed), one), matrices.first_zero(c, packed)


@translates("linalg_solve_triangular")
def solve_triangular(c: Call) -> Results:
    """The X of which A X, or X A, is B, where one triangle of A counts."""
    upper, unit = bool(c.value("upper")), bool(c.value("unitriangular", False))
    return _triangular(c, c.tensor(), c.tensor("B"), upper=upper, unit=unit, left=bool(c.value("left", True)))


@translates("triangular_solve")
def triangular_solve(c: Call) -> Results:
    """The same, by an older name and with A beside it."""
    upper, a = bool(c.value("upper", True)), c.tensor("A")
    if c.value("transpose", False):
        a, upper = matrices.turned(c, a), not upper
    made = _triangular(c, a, c.tensor(), upper=upper, unit=bool(c.value("unitriangular", False)), left=True)
    lead = made.shape[:-2]
    return made, _with_batch(c, c.tensor("A"), lead)


@translates("linalg_cholesky_ex")
def cholesky_ex(c: Call) -> Results:
    """The Cholesky factor, and the first column at which a matrix is not positive definite."""
    return _cholesky(c, upper=bool(c.value("upper", False)))


@translates("cholesky")
def cholesky(c: Call) -> Results:
    """The Cholesky factor."""
    return _cholesky(c, upper=bool(c.value("upper", False)))[0]


@translates("cholesky_solve")
def cholesky_solve(c: Call) -> Results:
    """The X of which A X is self, by the Cholesky factor of A."""
    return _by_cholesky(c, c.tensor("input2"), c.tensor())


@translates("cholesky_inverse")
def cholesky_inverse(c: Call) -> Results:
    """The inverse of A by its Cholesky factor."""
    x = c.tensor()
    return _by_cholesky(c, x, matrices.identity(c, x.shape[:-2], *matrices.sides(c, x), x.dtype))


@translates("linalg_qr")
def qr(c: Call) -> Results:
    """An orthogonal and an upper triangular factor."""
    x, mode = c.tensor("A"), c.value("mode", "reduced")
    m, n = matrices.sides(c, x)
    packed, tau = c.add_many("householder_qr", x)
    rows = m if mode == "complete" else min(m, n)
    upper = c.add(
        "slice", c.add("trilu", packed, k=0, upper=True), starts=(0,), ends=(rows,), axes=(x.rank - 2,), steps=(1,)
    )
    nothing = c.add("full", shape=(0,), value=0, dtype=x.dtype)
    return nothing if mode == "r" else matrices.orthogonal(c, packed, tau, rows), upper


@translates("geqrf")
def geqrf(c: Call) -> Results:
    """The factors in one, and the sizes of the reflections."""
    return c.add_many("householder_qr", c.tensor())


@translates("linalg_householder_product")
def householder_product(c: Call) -> Results:
    """The orthogonal matrix that reflections make."""
    x = c.tensor("input")
    return matrices.orthogonal(c, x, c.tensor("tau"), matrices.sides(c, x)[1])


@translates("ormqr")
def ormqr(c: Call) -> Results:
    """A matrix multiplied by the product of reflections, from the left or from the right."""
    v, tau, x = c.tensor(), c.tensor("input2"), c.tensor("input3")
    left, transposed = bool(c.value("left", True)), bool(c.value("transpose", False))
    if left:
        return c.add("apply_reflectors", v, tau, x, transposed=transposed)
    made = c.add("apply_reflectors", v, tau, matrices.turned(c, x), transposed=not transposed)
    return matrices.turned(c, made)


@translates("_linalg_eigh")
def eigh(c: Call) -> Results:
    """The eigenvalues of symmetric matrices, ascending, and their vectors."""
    x = c.tensor("A")
    return matrices.symmetric_eigen(c, matrices.turned(c, x) if c.value("UPLO", "L") in "Uu" else x)


@translates("_linalg_svd")
def svd(c: Call) -> Results:
    """The singular values, descending, between the factors U and V'."""
    x = c.tensor("A")
    if c.value("compute_uv", True):
        return matrices.singular_factors(c, x, full=bool(c.value("full_matrices", False)))
    nothing = c.add("full", shape=(0,), value=0, dtype=x.dtype)
    return nothing, matrices.singular_values(c, x), nothing


@translates("linalg_pinv.atol_rtol_tensor")
def pseudoinverse(c: Call) -> Results:
    """The pseudoinverse; the bound of singular values is by default relative to the largest."""
    x, absolute, relative = c.tensor(), c.optional("atol"), c.optional("rtol")
    zero, usual = (
        c.scalar(0, c.dtype),
        c.scalar(float(ml_dtypes.finfo(c.dtype.numpy).eps) * max(matrices.sides(c, x)), c.dtype),
    )
    if relative is None:
        relative = usual if absolute is None else c.add("where", c.add("less", zero, absolute), zero, usual)
    bounds = [c.cast(v, c.dtype) for v in (zero if absolute is None else absolute, relative)]
    return matrices.pseudoinverse(c, x, *bounds, hermitian=bool(c.value("hermitian", False)))


@translates("linalg_matrix_exp")
def matrix_exp(c: Call) -> Results:
    """The exponential of square matrices."""
    return matrices.exponential(c, c.tensor())


def _check_pivots(c: Call) -> None:
    if not c.value("pivot", True):
        c.fail("factors without exchanges of rows are not supported", "use pivot=True")


def _from_one(c: Call, rows: Operand) -> Operand:
    return c.add("add", rows, c.scalar(1, i32))


def _from_zero(c: Call, rows: Operand) -> Operand:
    return c.add("sub", rows, c.scalar(1, i32))


def _order(c: Call, rows: Operand, packed: Operand) -> Operand:
    return c.add("exchanged_rows", rows, rows=matrices.sides(c, packed)[0])


def _unpacked(c: Call, packed: Operand, order: Operand) -> tuple[Operand, Operand, Operand]:
    """Returns P, L and U."""
    m, n = matrices.sides(c, packed)
    k, rank, lead = min(m, n), packed.rank, packed.shape[:-2]
    left = c.add("slice", packed, starts=(0,), ends=(k,), axes=(rank - 1,), steps=(1,))
    lower = c.add("add", c.add("trilu", left, k=-1, upper=False), matrices.identity(c, lead, m, k, packed.dtype))
    top = c.add("slice", packed, starts=(0,), ends=(k,), axes=(rank - 2,), steps=(1,))
    rows = c.reshape(c.cast(c.add("range", start=0, size=m, step=1), i64), (m, 1))
    places = c.reshape(c.cast(order, i64), (*lead, 1, m))
    permutation = c.cast(c.add("equal", rows, places), packed.dtype)
    return permutation, lower, c.add("trilu", top, k=0, upper=True)


def _with_batch(c: Call, x: Operand, lead: tuple[Expr, ...]) -> Operand:
    return c.add("expand", x, shape=(*lead, *x.shape[-2:]))


def _triangular(c: Call, a: Operand, b: Operand, *, upper: bool, unit: bool = False, left: bool) -> Operand:
    lead = common_shape([a.shape[:-2], b.shape[:-2]])
    a, b = _with_batch(c, a, lead), _with_batch(c, b, lead)
    return matrices.solved_by_triangle(c, a, b, upper=upper, unit=unit, left=left)


def _cholesky(c: Call, *, upper: bool) -> tuple[Operand, Operand]:
    x = c.tensor()
    lower, failed = c.add_many("cholesky", matrices.turned(c, x) if upper else x)
    return matrices.turned(c, lower) if upper else lower, failed


def _by_cholesky(c: Call, factor: Operand, right: Operand) -> Operand:
    upper = bool(c.value("upper", False))
    first = _triangular(c, matrices.turned(c, factor) if upper else factor, right, upper=False, left=True)
    return _triangular(c, factor if upper else matrices.turned(c, factor), first, upper=True, left=True)
