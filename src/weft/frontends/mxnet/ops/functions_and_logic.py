"""Functions of one number that are made of several operators, and the logic of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import Translation, translates
from weft.graph.builder import Builder, Operand
from weft.graph.composites.numerics import special_functions
from weft.support.dtypes import bool_


def _function(f: Callable[[Builder, Operand], Operand]) -> Translation:
    return lambda c: f(c, c.input())


translates("log1p", "_npi_log1p")(_function(special_functions.log1p))
translates("expm1", "_npi_expm1")(_function(special_functions.expm1))
translates("cbrt", "_npi_cbrt")(_function(special_functions.cbrt))
translates("erfinv")(_function(special_functions.erfinv))
translates("rcbrt")(lambda c: c.add("reciprocal", special_functions.cbrt(c, c.input())))


def _logarithm(base: float) -> Translation:
    return lambda c: c.add("mul", c.add("log", c.input()), c.scalar(1 / math.log(base), c.input().dtype))


translates("log2", "_npi_log2")(_logarithm(2))
translates("log10", "_npi_log10")(_logarithm(10))


def _up_from_half(c: Call, x: Operand, *, half: bool) -> Operand:
    """Returns the integer above where *x* is more than half, or with *half* half, of the way there; else the one below."""
    below, middle = c.add("floor", x), c.scalar(0.5, x.dtype)
    rest = c.add("sub", x, below)
    is_up = c.add("less_equal", middle, rest) if half else c.add("less", middle, rest)
    return c.add("add", below, c.cast(is_up, x.dtype))


@translates("rint", "_npi_rint")
def rint(c: Call) -> Operand:
    """The nearest integer, of two the one below."""
    return _up_from_half(c, c.input(), half=False)


@translates("round")
def round_(c: Call) -> Operand:
    """The nearest integer, of two the one further from zero."""
    return away_from_zero(c, c.input())


def away_from_zero(c: Call, x: Operand) -> Operand:
    """Returns the nearest integers, of two the one further from zero."""
    return c.add("mul", c.add("sign", x), _up_from_half(c, c.add("abs", x), half=True))


@translates("fix", "trunc", "_npi_fix", "_npi_trunc")
def trunc(c: Call) -> Operand:
    """The integer towards zero."""
    return towards_zero(c, c.input())


def towards_zero(c: Call, x: Operand) -> Operand:
    """Returns the integers towards zero."""
    return c.add("mul", c.add("sign", x), c.add("floor", c.add("abs", x)))


@translates("hard_sigmoid")
def hard_sigmoid(c: Call) -> Operand:
    """A line, kept between 0 and 1."""
    return c.add("hard_sigmoid", c.input(), alpha=c.number("alpha", 0.2), beta=c.number("beta", 0.5))


@translates("smooth_l1")
def smooth_l1(c: Call) -> Operand:
    """Half the square of `scalar * x` near zero, else the absolute value less a constant that joins both (Girshick, 2015)."""
    x, square = c.input(), c.number("scalar", 1.0) ** 2
    size = c.add("abs", x)
    near = c.add("mul", c.add("square", x), c.scalar(square / 2, x.dtype))
    far = c.add("sub", size, c.scalar(0.5 / square, x.dtype))
    return c.add("where", c.add("less", size, c.scalar(1 / square, x.dtype)), near, far)


@translates("softmin")
def softmin(c: Call) -> Operand:
    """The softmax of the opposite numbers."""
    x = c.input()
    temperature = c.value("temperature")
    by = c.scalar(-1.0 / float(temperature) if temperature else -1.0, x.dtype)
    return c.add("softmax", c.add("mul", x, by), axis=c.axis_of(c.integer("axis", -1), x.rank))


@translates("logical_not")
def logical_not(c: Call) -> Operand:
    """One for zeros, and zero for others."""
    x = c.input()
    return c.cast(c.add("logical_not", c.cast(x, bool_)), x.dtype)


def _logic(op: str) -> Translation:
    def translate(c: Call) -> Operand:
        a, b = c.input(0), c.input(1)
        return c.cast(c.add(op, c.cast(a, bool_), c.cast(b, bool_)), a.dtype)

    return translate


for _name in ("and", "or", "xor"):
    translates(f"broadcast_logical_{_name}", f"_logical_{_name}")(_logic(f"logical_{_name}"))


@translates("_contrib_div_sqrt_dim")
def div_sqrt_dim(c: Call) -> Operand:
    """Divided by the root of the last dimension's size."""
    x = c.input()
    size = c.cast(c.size(x.shape[-1]), x.dtype)
    return c.add("mul", x, c.add("rsqrt", size))


@translates("amp_cast")
def amp_cast(c: Call) -> Operand:
    """Elements as another type of floats."""
    name = c.text("dtype")
    if name != "float32":
        c.fail(f"elements of type {name!r} are not supported", "save the network without automatic mixed precision")
    return c.input()


@translates("amp_multicast")
def amp_multicast(c: Call) -> tuple[Operand, ...]:
    """All inputs in one type of floats, which they have already."""
    return tuple(c.all_inputs())
