"""Arithmetic with doubles that only a run tells, written as formulas."""

from __future__ import annotations

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.support.dtypes import f64


class Number:
    """A double, or a table of them, of which only a run knows the value, with arithmetic."""

    def __init__(self, b: Builder, x: Operand) -> None:
        self.b = b
        self.x = x

    def with_(self, op: str, other: Number | float) -> Number:
        """Returns the result of the binary operator *op*."""
        right = other.x if isinstance(other, Number) else self.b.scalar(other, f64)
        return Number(self.b, self.b.add(op, self.x, right))

    def of(self, op: str) -> Number:
        """Returns the result of the unary operator *op*."""
        return Number(self.b, self.b.add(op, self.x))

    def __add__(self, other: Number | float) -> Number:
        return self.with_("add", other)

    def __sub__(self, other: Number | float) -> Number:
        return self.with_("sub", other)

    def __mul__(self, other: Number | float) -> Number:
        return self.with_("mul", other)

    def __truediv__(self, other: Number | float) -> Number:
        return self.with_("div", other)

    def at_most(self, other: Number | float, then: Number, otherwise: Number) -> Number:
        """Returns one of two numbers: *then* where this one is at most *other*."""
        return Number(self.b, self.b.add("where", self.with_("less_equal", other).x, then.x, otherwise.x))

    def or_one(self) -> Number:
        """Returns 1 where this number is zero: a divisor that is not used."""
        is_zero = self.with_("equal", 0.0).x
        return Number(self.b, self.b.add("where", is_zero, self.b.scalar(1.0, f64), self.x))

    def as_column(self) -> Number:
        """Returns a vector as a matrix of one column."""
        return Number(self.b, self.b.reshape(self.x, (*self.x.shape, 1)))
