"""Complex numbers as pairs of scalar expressions, for loops over real elements."""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir import Expr, apply, maximum, select


@dataclass(frozen=True)
class ComplexScalar:
    """A real and an imaginary part of one type."""

    real: Expr
    imaginary: Expr

    def __add__(self, y: ComplexScalar) -> ComplexScalar:
        return ComplexScalar(self.real + y.real, self.imaginary + y.imaginary)

    def __sub__(self, y: ComplexScalar) -> ComplexScalar:
        return ComplexScalar(self.real - y.real, self.imaginary - y.imaginary)

    def __mul__(self, y: ComplexScalar) -> ComplexScalar:
        real = self.real * y.real - self.imaginary * y.imaginary
        return ComplexScalar(real, self.real * y.imaginary + self.imaginary * y.real)

    def __truediv__(self, y: ComplexScalar) -> ComplexScalar:
        """The quotient, scaled so that squares do not overflow."""
        by = y.size()
        p, q = y.real / by, y.imaginary / by
        square = (p * p + q * q) * by
        real = (self.real * p + self.imaginary * q) / square
        return ComplexScalar(real, (self.imaginary * p - self.real * q) / square)

    def times(self, factor: Expr) -> ComplexScalar:
        """The product with a real number."""
        return ComplexScalar(self.real * factor, self.imaginary * factor)

    def size(self) -> Expr:
        """The larger of the absolute values of the parts."""
        return maximum(apply("abs", self.real), apply("abs", self.imaginary))

    def unless_small(self, bound: Expr) -> ComplexScalar:
        """The number, or *bound* where it is smaller."""
        is_small = self.size() < bound
        return ComplexScalar(select(is_small, bound, self.real), select(is_small, bound - bound, self.imaginary))
