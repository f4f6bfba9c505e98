"""A matrix of a batch, as statements read and write it, and loops over its rows and columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes

from weft.ir import INDEX, Expr, ExprLike, Var, apply, as_expr, const, select
from weft.loop import Buffer, Load, LoopKind, Stmt, for_, let, seq, store
from weft.ops.shapes import same_size, show_shape
from weft.support.dtypes import DType
from weft.support.errors import TypeMismatch
from weft.te import Tensor


@dataclass(frozen=True)
class Matrix:
    """The matrix of a buffer [..., rows, columns] at the indices *lead* of a batch."""

    buffer: Buffer
    lead: tuple[Expr, ...] = ()

    def __getitem__(self, at: tuple[ExprLike, ExprLike]) -> Expr:
        return Load(self.buffer, self._place(*at))

    def put(self, row: ExprLike, column: ExprLike, value: ExprLike) -> Stmt:
        """Returns the statement that sets an element."""
        return store(self.buffer, self._place(row, column), value)

    def add(self, row: ExprLike, column: ExprLike, value: Expr) -> Stmt:
        """Returns the statement that adds to an element."""
        return self.put(row, column, self[row, column] + value)

    def filled(self, value: Callable[[Expr, Expr], ExprLike]) -> Stmt:
        """Returns the statements that set all elements."""
        rows, columns = self.buffer.shape[-2:]
        return each("r", rows, lambda r: across("c", columns, lambda c: self.put(r, c, value(r, c))))

    def rotated(self, p: Expr, q: Expr, c: Expr, s: Expr) -> Stmt:
        """Returns the statements that rotate the columns *p* and *q* by the angle of cosine *c* and sine *s*."""

        def row(r: Expr) -> Stmt:
            def turn(x: Expr, y: Expr) -> Stmt:
                return seq(self.put(r, p, c * x - s * y), self.put(r, q, s * x + c * y))

            return let("x", self[r, p], lambda x: let("y", self[r, q], lambda y: turn(x, y)))

        return each("r", self.buffer.shape[-2], row)

    def _place(self, row: ExprLike, column: ExprLike) -> tuple[Expr, ...]:
        return (*self.lead, as_expr(row, INDEX), as_expr(column, INDEX))


def each(name: str, extent: ExprLike, body: Callable[[Expr], Stmt]) -> Stmt:
    """Returns a loop over the numbers below *extent*."""
    v = Var(name)
    return for_(v, extent, body(v))


def across(name: str, extent: ExprLike, body: Callable[[Expr], Stmt]) -> Stmt:
    """Returns a loop over the numbers below *extent* by vectors: no iteration reads an element that another writes."""
    v = Var(name)
    return for_(v, extent, body(v), LoopKind.VECTORIZED)


def rotation(apart: Expr, mixed: Expr, then: Callable[[Expr, Expr, Expr], Stmt]) -> Stmt:
    """Gives *then* the tangent, the cosine and the sine of the rotation that makes [[a, mixed], [mixed, a + apart]] diagonal.

    The smaller of two angles (Golub and Van Loan, "Matrix computations", section 8.5).
    """
    one = const(1, apart.dtype)

    def turned(tau: Expr) -> Stmt:
        size = one / (apply("abs", tau) + apply("sqrt", one + tau * tau))
        return let(
            "t",
            select(tau < 0, -size, size),
            lambda t: let("c", one / apply("sqrt", one + t * t), lambda c: then(t, c, t * c)),
        )

    return let("tau", apart / (mixed + mixed), turned)


def check_matrices(name: str, x: Tensor, *, square: bool = False) -> None:
    """Raises `TypeMismatch` unless *x* is a batch of (square) matrices of floats."""
    fits = x.rank >= 2 and x.dtype.is_float and (not square or same_size(x.shape[-1], x.shape[-2]))
    if not fits:
        kind = "square matrices" if square else "matrices"
        raise TypeMismatch(f"{name} takes {kind} of floats, not {show_shape(x.shape)} of {x.dtype}")


def check_system(name: str, a: Tensor, b: Tensor) -> None:
    """Raises `TypeMismatch` unless *a* and *b* are batches of matrices of floats, [..., n, n] and [..., n, k]."""
    check_matrices(name, a, square=True)
    check_matrices(name, b)
    if a.rank != b.rank or not all(map(same_size, a.shape[:-1], b.shape[:-1])):
        raise TypeMismatch(
            f"{name} takes matrices of as many rows, not {show_shape(a.shape)} and {show_shape(b.shape)}"
        )


def epsilon(dtype: DType) -> float:
    """Returns the distance from 1 to the next number."""
    return float(ml_dtypes.finfo(dtype.numpy).eps)
