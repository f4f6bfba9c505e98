"""Arithmetic, comparisons, logic and elementary functions, element by element."""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import Final

from weft.frontends.tensorflow_operators.call import Call, ComplexTensor, Results
from weft.frontends.tensorflow_operators.complex_numbers import PARTS
from weft.frontends.tensorflow_operators.registry import Translation, translates
from weft.graph.builder import Operand
from weft.graph.composites.numerics import special_functions

_UNARY: Final = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "Invert": "bit_not",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Inv": "reciprocal",
    "IsInf": "is_inf",
    "IsNan": "is_nan",
    "Log": "log",
    "LogicalNot": "logical_not",
    "Neg": "neg",
    "Reciprocal": "reciprocal",
    "Rint": "round",
    "Round": "round",
    "Rsqrt": "rsqrt",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Square": "square",
    "Tan": "tan",
    "Tanh": "tanh",
}
_BINARY: Final = {
    "Add": "add",
    "AddV2": "add",
    "BitwiseAnd": "bit_and",
    "BitwiseOr": "bit_or",
    "BitwiseXor": "bit_xor",
    "Div": "div",
    "Equal": "equal",
    "FloorMod": "floor_mod",
    "LeftShift": "shift_left",
    "Less": "less",
    "LessEqual": "less_equal",
    "LogicalAnd": "logical_and",
    "LogicalOr": "logical_or",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Mul": "mul",
    "Pow": "power",
    "RealDiv": "div",
    "RightShift": "shift_right",
    "Sub": "sub",
    "TruncateDiv": "div",
}


def _unary(op: str) -> Translation:
    return lambda c: c.pointwise(partial(c.add, op), c.tensor())


def _binary(op: str) -> Translation:
    return lambda c: c.pointwise(partial(c.add, op), c.tensor(0), c.tensor(1))


for _name, _op in _UNARY.items():
    translates(_name)(_unary(_op))
for _name, _op in _BINARY.items():
    translates(_name)(_binary(_op))


@translates("Greater", "GreaterEqual")
def greater(c: Call) -> Operand:
    """A > B is B < A."""
    op = "less" if c.op == "Greater" else "less_equal"
    return c.pointwise(lambda a, b: c.add(op, b, a), c.tensor(0), c.tensor(1))


@translates("NotEqual")
def not_equal(c: Call) -> Operand:
    """Tells where two tensors differ."""
    return c.pointwise(lambda a, b: c.add("logical_not", c.add("equal", a, b)), c.tensor(0), c.tensor(1))


@translates("AddN", "AccumulateNV2")
def add_n(c: Call) -> Operand:
    """The sum of tensors of one shape."""
    return c.pointwise(lambda *v: reduce(partial(c.add, "add"), v), *c.tensors())


@translates("SquaredDifference")
def squared_difference(c: Call) -> Operand:
    """The square of the difference."""
    return c.pointwise(lambda a, b: c.add("square", c.add("sub", a, b)), c.tensor(0), c.tensor(1))


@translates("FloorDiv")
def floor_div(c: Call) -> Operand:
    """A quotient rounded down."""

    def divided(a: Operand, b: Operand) -> Operand:
        if a.dtype.is_float:
            return c.add("floor", c.add("div", a, b))
        return c.add("div", c.add("sub", a, c.add("floor_mod", a, b)), b)  # exact, so that nothing is rounded to zero

    return c.pointwise(divided, c.tensor(0), c.tensor(1))


@translates("Mod", "TruncateMod")
def truncated_mod(c: Call) -> Operand:
    """The remainder of a division rounded towards zero."""
    op = "float_mod" if c.tensor().dtype.is_float else "trunc_mod"
    return c.pointwise(partial(c.add, op), c.tensor(0), c.tensor(1))


@translates("DivNoNan", "MulNoNan", "Xdivy")
def without_nan(c: Call) -> Operand:
    """A quotient, or a product, that is 0 where the divisor, the second factor, or the dividend (Xdivy) is 0."""
    op = "mul" if c.op == "MulNoNan" else "div"

    def computed(a: Operand, b: Operand) -> Operand:
        zero = c.scalar(0, a.dtype)
        return c.add("where", c.add("equal", a if c.op == "Xdivy" else b, zero), zero, c.add(op, a, b))

    return c.pointwise(computed, c.tensor(0), c.tensor(1))


@translates("Xlogy", "Xlog1py")
def times_logarithm(c: Call) -> Operand:
    """x * log(y), or x * log(1 + y), which is 0 where x is 0."""

    def computed(a: Operand, b: Operand) -> Operand:
        zero = c.scalar(0, a.dtype)
        inner = c.add("add", b, c.scalar(1, b.dtype)) if c.op == "Xlog1py" else b
        return c.add("where", c.add("equal", a, zero), zero, c.add("mul", a, c.add("log", inner)))

    return c.pointwise(computed, c.tensor(0), c.tensor(1))


@translates("Expm1")
def expm1(c: Call) -> Operand:
    """exp(x) - 1, by 2 sinh(x / 2) exp(x / 2), which loses no digits near 0."""

    def computed(x: Operand) -> Operand:
        half = c.add("mul", x, c.scalar(0.5, x.dtype))
        small = c.add("mul", c.add("mul", c.add("sinh", half), c.add("exp", half)), c.scalar(2, x.dtype))
        near = c.add("less", c.add("abs", x), c.scalar(1, x.dtype))
        return c.add("where", near, small, c.add("sub", c.add("exp", x), c.scalar(1, x.dtype)))

    return c.pointwise(computed, c.tensor())


@translates("Log1p")
def log1p(c: Call) -> Operand:
    """log(1 + x), by 2 atanh(x / (x + 2)) near 0, which loses no digits there."""

    def computed(x: Operand) -> Operand:
        one, two = c.scalar(1, x.dtype), c.scalar(2, x.dtype)
        small = c.add("mul", c.add("atanh", c.add("div", x, c.add("add", x, two))), two)
        near = c.add("less", c.add("abs", x), c.scalar(0.5, x.dtype))
        return c.add("where", near, small, c.add("log", c.add("add", one, x)))

    return c.pointwise(computed, c.tensor())


@translates("Erfc")
def erfc(c: Call) -> Operand:
    """1 - erf(x)."""
    return c.pointwise(lambda x: c.add("sub", c.scalar(1, x.dtype), c.add("erf", x)), c.tensor())


@translates("Atan2")
def atan2(c: Call) -> Operand:
    """The angle of the point (x, y)."""

    def computed(y: Operand, x: Operand) -> Operand:
        zero, right = c.scalar(0, x.dtype), c.scalar(math.pi / 2, x.dtype)
        angle = c.add("atan", c.add("div", y, x))
        turned = c.add("where", c.add("less", y, zero), c.scalar(-math.pi, x.dtype), c.scalar(math.pi, x.dtype))
        made = c.add("where", c.add("less", x, zero), c.add("add", angle, turned), angle)
        upright = c.add("mul", c.add("sign", y), right)
        return c.add("where", c.add("equal", x, zero), upright, made)

    return c.pointwise(computed, c.tensor(0), c.tensor(1))


@translates("IsFinite")
def is_finite(c: Call) -> Operand:
    """Tells which elements are neither infinite nor NaN."""
    return c.pointwise(partial(special_functions.is_finite, c), c.tensor())


@translates("ApproximateEqual")
def approximately_equal(c: Call) -> Operand:
    """Tells where two tensors differ by less than the tolerance."""
    tolerance = c.number("tolerance", 1e-5)

    def computed(a: Operand, b: Operand) -> Operand:
        return c.add("less", c.add("abs", c.add("sub", a, b)), c.scalar(tolerance, a.dtype))

    return c.pointwise(computed, c.tensor(0), c.tensor(1))


@translates("ClipByValue")
def clip_by_value(c: Call) -> Operand:
    """Keeps elements between two bounds, which broadcast."""
    return c.pointwise(
        lambda x, low, high: c.add("minimum", c.add("maximum", x, low), high), c.tensor(0), c.tensor(1), c.tensor(2)
    )


@translates("SelectV2")
def select_v2(c: Call) -> Operand:
    """Chooses between two tensors by a condition; all broadcast."""
    return c.pointwise(partial(c.add, "where"), c.tensor(0), c.tensor(1), c.tensor(2))


@translates("Select")
def select(c: Call) -> Operand:
    """Chooses between two tensors by a condition, which may be a vector of one bool for each element of the first dimension."""
    condition, a, b = c.tensor(0), c.tensor(1), c.tensor(2)
    if condition.rank == 1 and a.rank > 1:
        condition = c.reshape(condition, [*condition.shape, *[1] * (a.rank - 1)])
        return c.add("where", condition, a, b)
    return c.pointwise(partial(c.add, "where"), condition, a, b)


@translates("Cast")
def cast(c: Call) -> Results:
    """Converts elements; floats to integers towards zero, real numbers to complex ones and these to their real parts."""
    to = c.attributes.get("DstT")
    if to in PARTS:
        return ComplexTensor(*[c.cast(v, PARTS[to]) for v in c.complex().parts])
    if isinstance(c.inputs[0], ComplexTensor):
        c.inputs = [c.inputs[0].real]
    dtype = c.dtype("DstT")
    return c.pointwise(lambda x: c.cast(x, dtype), c.tensor())


@translates("Bitcast")
def bitcast(c: Call) -> Operand:
    """Reads the bits of elements as another type of the same width."""
    dtype = c.dtype("type")
    if dtype.bits != c.tensor().dtype.bits:
        c.fail(f"reading {c.tensor()!r} as {dtype}, of another width, is not supported", "use types of one width")
    return c.add("bit_cast", c.tensor(), dtype=dtype)
