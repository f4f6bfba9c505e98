"""Arithmetic, comparison, logic and elementary functions."""

from __future__ import annotations

from functools import reduce
from typing import Final

from weft.frontends.onnx.call import Call, HeldResults, Operand, Results
from weft.frontends.onnx.file.tensors import element_type
from weft.frontends.onnx.registry import Translation, translates
from weft.ops import ROUNDINGS
from weft.support.dtypes import DType, bool_

_UNARY: Final = {
    "Abs": "abs", "Neg": "neg", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Reciprocal": "reciprocal", "Floor": "floor",
    "Ceil": "ceil", "Round": "round", "Erf": "erf", "Sign": "sign", "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "asin",
    "Acos": "acos", "Atan": "atan", "Sinh": "sinh", "Cosh": "cosh", "Tanh": "tanh", "Asinh": "asinh", "Acosh": "acosh",
    "Atanh": "atanh", "Not": "logical_not", "BitwiseNot": "bit_not", "IsNaN": "is_nan",
}  # fmt: skip

_BINARY: Final = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Pow": "power", "And": "logical_and", "Or": "logical_or",
    "Xor": "logical_xor", "BitwiseAnd": "bit_and", "BitwiseOr": "bit_or", "BitwiseXor": "bit_xor", "Equal": "equal",
    "Less": "less", "LessOrEqual": "less_equal",
}  # fmt: skip

_VARIADIC: Final = {"Max": "maximum", "Min": "minimum", "Sum": "add"}


def _unary(op: str) -> Translation:
    return lambda c: c.add(op, c.input(0))


def _binary(op: str) -> Translation:
    return lambda c: c.add(op, *operands(c))


def _variadic(op: str) -> Translation:
    return lambda c: reduce(lambda a, b: c.add(op, a, b), _all_inputs(c))


for _name, _op in _UNARY.items():
    translates(_name)(_unary(_op))
for _name, _op in _BINARY.items():
    translates(_name)(_binary(_op))
for _name, _op in _VARIADIC.items():
    translates(_name)(_variadic(_op))


def _all_inputs(c: Call) -> list[Operand]:
    return [c.input(i) for i in range(len(c.inputs))]


def operands(c: Call) -> tuple[Operand, Operand]:
    """Returns both operands; before operator set 7, `axis` says where the second one's dimensions lie in the first's."""
    a, b = c.input(0), c.input(1)
    if c.opset < 7 and c.flag("broadcast", False) and "axis" in c.attributes:
        trailing = a.rank - c.axis(0, a.rank) - b.rank
        b = c.reshape(b, [*b.shape, *[1] * trailing])
    return a, b


@translates("Greater")
def greater(c: Call) -> Results:
    """A > B is B < A."""
    a, b = operands(c)
    return c.add("less", b, a)


@translates("GreaterOrEqual")
def greater_or_equal(c: Call) -> Results:
    """A >= B is B <= A."""
    a, b = operands(c)
    return c.add("less_equal", b, a)


@translates("Mean")
def mean(c: Call) -> Results:
    """The element-wise mean of any number of tensors."""
    given = _all_inputs(c)
    added = reduce(lambda a, b: c.add("add", a, b), given)
    return c.add("div", added, c.scalar(len(given), added.dtype))


@translates("Mod")
def mod(c: Call) -> Results:
    """The remainder with the divisor's sign, or with the dividend's where `fmod` is set."""
    a, b = operands(c)
    if c.flag("fmod", False):
        return c.add("float_mod" if a.dtype.is_float else "trunc_mod", a, b)
    return c.add("floor_mod", a, b)


@translates("BitShift")
def bit_shift(c: Call) -> Results:
    """Shifts bits to the left or the right."""
    return c.add("shift_left" if c.text("direction", "LEFT") == "LEFT" else "shift_right", c.input(0), c.input(1))


@translates("IsInf")
def is_inf(c: Call) -> Results:
    """Tells which elements are infinite, of the signs asked for."""
    x = c.input(0)
    wanted = (c.flag("detect_negative", True), c.flag("detect_positive", True))
    found = c.add("is_inf", x)
    if all(wanted):
        return found
    if not any(wanted):
        return c.add("logical_and", found, c.scalar(False, bool_))
    zero = c.scalar(0, x.dtype)
    return c.add("logical_and", found, c.add("less", *((x, zero) if wanted[0] else (zero, x))))


@translates("Where")
def where(c: Call) -> Results:
    """Chooses between two tensors by a condition."""
    return c.add("where", c.input(0), c.input(1), c.input(2))


@translates("Cast", limits="complex numbers, 6-bit floats, bool and 16-bit floats to strings")
def cast(c: Call) -> Results:
    """Converts the elements."""
    return _converted(c, element_type(c.integer("to", 0), c.source))


@translates("BitCast", limits="types that Weft lacks")
def bit_cast(c: Call) -> Results:
    """Reads the elements' bits as another type of the same width."""
    return c.add("bit_cast", c.input(0), dtype=element_type(c.integer("to", 0), c.source))


@translates("CastLike", limits="as Cast")
def cast_like(c: Call) -> Results:
    """Converts the elements to the type of another tensor's."""
    return _converted(c, c.input(1).dtype)


def _converted(c: Call, dtype: DType) -> Operand:
    rounding = c.text("round_mode", "up")
    if rounding not in ROUNDINGS:
        c.fail(f"its attribute 'round_mode' is {rounding!r}", f"use one of {', '.join(ROUNDINGS)}")
    return c.cast(c.input(0), dtype, saturate=c.flag("saturate", True), rounding=rounding)


@translates("Identity", holds=True)
def identity(c: Call) -> HeldResults:
    """The value itself, whatever it is."""
    found = c.held[0]
    return c.input(0) if found is None else found
