"""Division that rounds, remainders, and functions of two numbers."""

from __future__ import annotations

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results
from weft.graph.composites.numerics import complex_numbers, special_functions


@translates("div.Tensor_mode", "div.Scalar_mode")
def div_mode(c: Call) -> Results:
    """The quotient as it is, or rounded towards zero or down."""
    mode = c.value("rounding_mode")
    a, b = _operands(c)
    if mode == "floor":
        return _floor_divided(c, a, b)
    quotient = c.add("div", a, b)
    return truncated(c, quotient) if mode == "trunc" else quotient


@translates("floor_divide", "floor_divide.Scalar")
def floor_divide(c: Call) -> Results:
    """The quotient, rounded down."""
    return _floor_divided(c, *_operands(c))


@translates("fmod.Tensor", "fmod.Scalar")
def fmod(c: Call) -> Results:
    """The remainder with the dividend's sign."""
    return _remainder(c, *_operands(c))


@translates("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(c: Call) -> Results:
    """The remainder with the divisor's sign."""
    a, b = _operands(c)
    if not a.dtype.is_float:
        return c.add("floor_mod", a, b)
    rest = _remainder(c, a, b)
    return c.add("where", _differ(c, rest, b), c.add("add", rest, b), rest)


@translates("trunc", "fix")
def trunc(c: Call) -> Results:
    """The integer next to each element towards zero."""
    return truncated(c, c.tensor())


@translates("atan2")
def atan2(c: Call) -> Results:
    """The angle of the point (other, self), between -pi and pi."""
    return special_functions.atan2(c, *_operands(c))


@translates("hypot")
def hypot(c: Call) -> Results:
    """The root of the sum of squares, which do not overflow where it does not."""
    return complex_numbers.length(c, _operands(c))


@translates("fmax")
def fmax(c: Call) -> Results:
    """The larger of two numbers; the other one where one is NaN."""
    return _without_nan(c, "maximum")


@translates("fmin")
def fmin(c: Call) -> Results:
    """The smaller of two numbers; the other one where one is NaN."""
    return _without_nan(c, "minimum")


@translates("bitwise_left_shift.Tensor", "__lshift__.Tensor", "__lshift__.Scalar")
def shift_left(c: Call) -> Results:
    """The bits of integers moved up."""
    return c.add("shift_left", *_operands(c))


@translates("bitwise_right_shift.Tensor", "__rshift__.Tensor", "__rshift__.Scalar")
def shift_right(c: Call) -> Results:
    """The bits of integers moved down, their signs kept."""
    return c.add("shift_right", *_operands(c))


def _operands(c: Call) -> tuple[Operand, Operand]:
    return c.operand("self", c.dtype), c.operand("other", c.dtype)


def truncated(c: Call, x: Operand) -> Operand:
    """Returns the integers next to the elements of *x* towards zero."""
    if not x.dtype.is_float:
        return x
    below = c.add("less", x, c.scalar(0, x.dtype))
    return c.add("where", below, c.add("ceil", x), c.add("floor", x))


def _remainder(c: Call, a: Operand, b: Operand) -> Operand:
    return c.add("float_mod" if a.dtype.is_float else "trunc_mod", a, b)


def _differ(c: Call, rest: Operand, b: Operand) -> Operand:
    """Tells where a remainder is not zero and has another sign than the divisor."""
    zero = c.scalar(0, rest.dtype)
    other = c.add("logical_xor", c.add("less", rest, zero), c.add("less", b, zero))
    return c.add("logical_and", other, c.add("logical_not", c.add("equal", rest, zero)))


def _floor_divided(c: Call, a: Operand, b: Operand) -> Operand:
    """Returns the quotient rounded down.

    That of floats divides the dividend less the remainder, so that no rounding carries it over an integer, as PyTorch has it.
    """
    rest = _remainder(c, a, b)
    less = c.cast(_differ(c, rest, b), a.dtype)
    if not a.dtype.is_float:
        return c.add("sub", c.add("div", a, b), less)
    exact = c.add("sub", c.add("div", c.add("sub", a, rest), b), less)
    down = c.add("floor", exact)
    more = c.cast(c.add("less", c.scalar(0.5, a.dtype), c.add("sub", exact, down)), a.dtype)
    rounded = c.add("add", down, more)
    return c.add("where", c.add("equal", b, c.scalar(0, b.dtype)), c.add("div", a, b), rounded)


def _without_nan(c: Call, op: str) -> Operand:
    a, b = _operands(c)
    if not a.dtype.is_float:
        return c.add(op, a, b)
    chosen = c.add("where", c.add("is_nan", b), a, c.add(op, a, b))
    return c.add("where", c.add("is_nan", a), b, chosen)
