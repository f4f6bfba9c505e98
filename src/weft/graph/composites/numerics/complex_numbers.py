"""Functions of complex numbers, which are pairs of tensors: the real and the imaginary parts."""

from __future__ import annotations

from typing import TypeAlias

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand

Pair: TypeAlias = tuple[Operand, Operand]


def product(b: Builder, x: Pair, y: Pair, op: str = "mul") -> Pair:
    """Returns the product by *op*: element by element, or of matrices."""
    real = b.add("sub", b.add(op, x[0], y[0]), b.add(op, x[1], y[1]))
    return real, b.add("add", b.add(op, x[0], y[1]), b.add(op, x[1], y[0]))


def reciprocal(b: Builder, x: Pair) -> Pair:
    """Returns one divided by each number, scaled so that squares do not overflow (Smith, 1962)."""
    wide = b.add("less", b.add("abs", x[1]), b.add("abs", x[0]))
    most, least = b.add("where", wide, *x), b.add("where", wide, x[1], x[0])
    ratio = b.add("div", least, most)
    scale = b.add("reciprocal", b.add("add", most, b.add("mul", least, ratio)))
    small = b.add("mul", ratio, scale)
    return b.add("where", wide, scale, small), b.add("neg", b.add("where", wide, small, scale))


def length(b: Builder, x: Pair) -> Operand:
    """Returns the roots of the sums of squares, which do not overflow where these do not."""
    first, second = (b.add("abs", v) for v in x)
    most, least = b.add("maximum", first, second), b.add("minimum", first, second)
    one = b.scalar(1, most.dtype)
    ratio = b.add("where", b.add("equal", most, least), one, b.add("div", least, most))
    return b.add("mul", most, b.add("sqrt", b.add("add", one, b.add("square", ratio))))


def exponential(b: Builder, x: Pair) -> Pair:
    """Returns the exponential of each number."""
    size = b.add("exp", x[0])
    cosine, sine = (b.add(op, x[1]) for op in ("cos", "sin"))
    return b.add("mul", size, cosine), b.add("mul", size, sine)


def equal(b: Builder, x: Pair, y: Pair) -> Operand:
    """Tells where both parts are equal."""
    return b.add("logical_and", b.add("equal", x[0], y[0]), b.add("equal", x[1], y[1]))
