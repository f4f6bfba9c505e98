"""Factorisations of matrices, and solvers by them: StableHLO's operations, and the calls of LAPACK that JAX makes for a CPU.

A call of LAPACK has letters for options, as its code, and overwrites its operand, which is its first result here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.numerics import linear_algebra as matrices
from weft.support.dtypes import i32

_TURNS: Final = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


def _lapack(name: str) -> Callable[[Any], Any]:
    """Enters a translation for both sizes of real numbers."""
    return translates(*[f"custom_call @lapack_{kind}{name}_ffi" for kind in "sd"])


def _option(c: Call, name: str, known: str) -> str:
    """Returns the letter of an option."""
    held = c.value("mhlo.backend_config")
    found = held.get(name) if isinstance(held, dict) else None
    letter = chr(found) if isinstance(found, int) and 0 < found < 128 else ""
    if not letter or letter not in known:
        c.fail(f"its option {name} is {found!r}; it should be one of {', '.join(known)}", AGAIN)
    return letter


def _flag(c: Call, name: str) -> bool:
    found = c.value(name)
    if not isinstance(found, bool):
        c.fail(f"its attribute {name} is {found!r}, not true or false", AGAIN)
    return found


def _succeeded(c: Call, x: Operand) -> Operand:
    """Returns the status 0 of each matrix."""
    return c.add("full", shape=x.shape[:-2], value=0, dtype=i32)


def _factor(c: Call, *, lower: bool) -> tuple[Operand, Operand]:
    x = c.operand(0)
    made, failed = c.add_many("cholesky", x if lower else matrices.turned(c, x))
    return made if lower else matrices.turned(c, made), failed


@translates("cholesky")
def cholesky(c: Call) -> Operand:
    """The Cholesky factor, as a lower or an upper triangle."""
    return _factor(c, lower=_flag(c, "lower"))[0]


@_lapack("potrf")
def potrf(c: Call) -> Sequence[Operand]:
    """The Cholesky factor, and the first column at which a matrix is not positive definite."""
    return _factor(c, lower=_option(c, "uplo", "LU") == "L")


@translates("triangular_solve")
def triangular_solve(c: Call) -> Operand:
    """The X of which A X, or X A, is B, where one triangle of A counts."""
    turn = c.word("transpose_a", 0, _TURNS) != "NO_TRANSPOSE"
    return _solved(c, lower=_flag(c, "lower"), turn=turn, unit=_flag(c, "unit_diagonal"), left=_flag(c, "left_side"))


@_lapack("trsm")
def trsm(c: Call) -> Operand:
    """The same, of LAPACK."""
    lower, turn = _option(c, "uplo", "LU") == "L", _option(c, "trans_x", "NTC") != "N"
    return _solved(
        c, lower=lower, turn=turn, unit=_option(c, "diag", "NU") == "U", left=_option(c, "side", "LR") == "L"
    )


def _solved(c: Call, *, lower: bool, turn: bool, unit: bool, left: bool) -> Operand:
    a, b = c.operand(0), c.operand(1)
    if turn:
        a, lower = matrices.turned(c, a), not lower
    return matrices.solved_by_triangle(c, a, b, upper=not lower, unit=unit, left=left)


@_lapack("geqrf")
def geqrf(c: Call) -> Sequence[Operand]:
    """The orthogonal and the upper triangular factor in one, and the sizes of the reflections."""
    return c.add_many("householder_qr", c.operand(0))


@_lapack("orgqr")
def orgqr(c: Call) -> Operand:
    """The orthogonal matrix that reflections make."""
    packed = c.operand(0)
    return matrices.orthogonal(c, packed, c.operand(1), matrices.sides(c, packed)[1])


@_lapack("getrf")
def getrf(c: Call) -> Sequence[Operand]:
    """The factors L and U in one, the rows exchanged, counted from 1, and the first column without a pivot."""
    packed, rows = c.add_many("lu", c.operand(0))
    return packed, c.add("add", rows, c.scalar(1, i32)), matrices.first_zero(c, packed)


@_lapack("syevd")
def syevd(c: Call) -> Sequence[Operand]:
    """The vectors and the eigenvalues, ascending, of symmetric matrices, of which one triangle counts."""
    x = c.operand(0)
    values, vectors = matrices.symmetric_eigen(c, x if _option(c, "uplo", "LU") == "L" else matrices.turned(c, x))
    return vectors, values, _succeeded(c, x)


@_lapack("gesdd")
def gesdd(c: Call) -> Sequence[Operand]:
    """The overwritten matrix, the singular values, descending, and the factors U and V'."""
    x, mode = c.operand(0), _option(c, "mode", "ASN")
    if mode == "N":
        nothing = [c.add("full", shape=c.result_shape(k), value=0, dtype=x.dtype) for k in (2, 3)]
        return x, matrices.singular_values(c, x), *nothing, _succeeded(c, x)
    u, s, vh = matrices.singular_factors(c, x, full=mode == "A")
    return x, s, u, vh, _succeeded(c, x)
