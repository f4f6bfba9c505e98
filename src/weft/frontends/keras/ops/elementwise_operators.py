"""Operators called on tensors, element by element: `keras.ops.exp(x)`, and Python's own between tensors and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Final

from weft.frontends.keras.call import Call
from weft.frontends.keras.layer import TYPES
from weft.frontends.keras.ops.nonlinearity import Function, activated
from weft.frontends.keras.registry import Translation, translates
from weft.graph.builder import Operand
from weft.graph.composites.numerics import special_functions
from weft.graph.composites.numerics.special_functions import atan2, cbrt, erfc, erfinv, expm1, log1p
from weft.support.dtypes import bool_, f32

_UNARY: Final[dict[str, str | Function]] = {
    "Absolute": "abs",
    "Arccos": "acos",
    "Arccosh": "acosh",
    "Arcsin": "asin",
    "Arcsinh": "asinh",
    "Arctan": "atan",
    "Arctanh": "atanh",
    "Cbrt": cbrt,
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Erfc": erfc,
    "Erfinv": erfinv,
    "Exp": "exp",
    "Exp2": lambda b, x: b.add("exp", b.add("mul", x, b.scalar(math.log(2), x.dtype))),
    "Expm1": expm1,
    "Floor": "floor",
    "Isinf": "is_inf",
    "Isnan": "is_nan",
    "Log": "log",
    "Log10": lambda b, x: b.add("mul", b.add("log", x), b.scalar(1 / math.log(10), x.dtype)),
    "Log1p": log1p,
    "Log2": lambda b, x: b.add("mul", b.add("log", x), b.scalar(1 / math.log(2), x.dtype)),
    "Negative": "neg",
    "Reciprocal": "reciprocal",
    "Rsqrt": "rsqrt",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Square": "square",
    "Tan": "tan",
}
_EXACT: Final = ("Absolute", "Negative", "Sign", "Square")
"""Operators of `_UNARY` whose result of integers is of integers."""

_ACTIVATIONS: Final = {
    "Elu": "elu",
    "HardSigmoid": "hard_sigmoid",
    "HardSilu": "hard_silu",
    "HardTanh": "hard_tanh",
    "LogSigmoid": "log_sigmoid",
    "Relu": "relu",
    "Relu6": "relu6",
    "Selu": "selu",
    "Sigmoid": "sigmoid",
    "Silu": "silu",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Tanh": "tanh",
    "TanhShrink": "tanh_shrink",
}
_ARITHMETIC: Final = {
    "Add": "add",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Mod": "floor_mod",
    "Multiply": "mul",
    "Power": "power",
    "Subtract": "sub",
}
_COMPARISONS: Final = {"Equal": "equal", "Less": "less", "LessEqual": "less_equal"}
_TURNED: Final = {"Greater": "less", "GreaterEqual": "less_equal"}
_LOGIC: Final = {"LogicalAnd": "logical_and", "LogicalOr": "logical_or", "LogicalXor": "logical_xor"}


def alike(c: Call, operands: list[Operand]) -> list[Operand]:
    """Returns tensors and numbers in one type: float32 if one of them is of floats, else that of the first tensor."""
    tensors = [x for x in operands if x.rank] or operands
    floats = any(x.dtype.is_float for x in operands)
    kinds = [x.dtype for x in tensors if x.dtype is not bool_]
    dtype = f32 if floats or not kinds else max(kinds, key=lambda t: t.bits)
    return [c.cast(x, dtype) for x in operands]


def numbers(c: Call) -> list[Operand]:
    """Returns the arguments as tensors of one type."""
    return alike(c, c.tensors())


def _of(op: str | Function) -> Function:
    return op if callable(op) else lambda b, x: b.add(op, x)


def _unary(name: str, op: Function) -> Translation:
    def translate(c: Call) -> Operand:
        x = c.tensor() if name in _EXACT and c.tensor().dtype.is_int else c.floats()
        return c.pointwise(lambda v: op(c, v), x)

    return translate


def _folded(op: str, operands: Callable[[Call], list[Operand]]) -> Translation:
    return lambda c: c.pointwise(lambda *v: reduce(lambda a, b: c.add(op, a, b), v), *operands(c))


def _bools(c: Call) -> list[Operand]:
    return [c.cast(x, bool_) for x in c.tensors()]


for _name, _op in _UNARY.items():
    translates(f"ops.{_name}")(_unary(_name, _of(_op)))
for _name, _function in _ACTIVATIONS.items():
    translates(f"ops.{_name}")(lambda c, name=_function: activated(c, c.floats(), name))  # type: ignore[misc]
for _name, _binary in {**_ARITHMETIC, **_COMPARISONS}.items():
    translates(f"ops.{_name}")(_folded(_binary, numbers))
for _name, _binary in _TURNED.items():
    translates(f"ops.{_name}")(_folded(_binary, lambda c: numbers(c)[::-1]))
for _name, _binary in _LOGIC.items():
    translates(f"ops.{_name}")(_folded(_binary, _bools))


@translates("ops.Divide", "ops.TrueDivide", "ops.FloorDivide")
def divide(c: Call) -> Operand:
    """Quotients, of floats; FloorDivide rounds them down."""
    parts = [c.cast(x, f32) for x in c.tensors()]
    floor = c.layer.kind == "ops.FloorDivide"
    kept = numbers(c)[0].dtype

    def function(*v: Operand) -> Operand:
        y = reduce(lambda a, b: c.add("div", a, b), v)
        return c.cast(c.add("floor", y), kept) if floor else y

    return c.pointwise(function, *parts)


@translates("ops.Arctan2")
def angle(c: Call) -> Operand:
    """The angles of points (x, y), of which y is first."""
    return c.pointwise(lambda y, x: atan2(c, y, x), *[c.cast(t, f32) for t in c.tensors()])


@translates("ops.Isfinite")
def is_finite(c: Call) -> Operand:
    """Whether elements are neither infinite nor NaN."""
    return c.pointwise(partial(special_functions.is_finite, c), c.floats())


@translates("ops.Round")
def rounded(c: Call) -> Operand:
    """The nearest integers, even ones in the middle of two."""
    c.refuse("decimals", 0)
    return c.pointwise(lambda x: c.add("round", x), c.floats())


@translates("ops.NotEqual")
def not_equal(c: Call) -> Operand:
    """Whether elements differ."""
    return c.pointwise(lambda *v: c.add("logical_not", c.add("equal", *v)), *numbers(c))


@translates("ops.LogicalNot")
def logical_not(c: Call) -> Operand:
    """Whether elements are zero or false."""
    return c.pointwise(lambda x: c.add("logical_not", x), c.cast(c.tensor(), bool_))


@translates("ops.Where")
def where(c: Call) -> Operand:
    """Elements of one tensor where a condition holds, of another elsewhere."""
    condition, *others = c.tensors()
    if len(others) != 2:
        c.fail(f"it is called with {len(others) + 1} tensors, not 3", "call it with what it chooses from")
    return c.pointwise(lambda *v: c.add("where", *v), c.cast(condition, bool_), *alike(c, others))


@translates("ops.Clip")
def clip(c: Call) -> Operand:
    """Elements no less than one number and no more than another."""
    x = c.floats()
    low, high = (c.scalar(c.number(name), f32) for name in ("x_min", "x_max"))
    return c.pointwise(lambda v: c.add("clip", v, low, high), x)


@translates("ops.Gelu")
def gelu(c: Call) -> Operand:
    """x P(X <= x) for a standard normal X, by the tanh formula unless it is to be exact."""
    approximate = c.flag("approximate", True)
    return c.pointwise(lambda x: c.add("gelu", x, approximate=approximate), c.floats())


@translates("ops.LeakyRelu")
def leaky_relu(c: Call) -> Operand:
    """x, or a fraction of it below 0."""
    slope = c.number("negative_slope", 0.2)
    return c.pointwise(lambda x: c.add("leaky_relu", x, alpha=slope), c.floats())


@translates("ops.Cast")
def cast(c: Call) -> Operand:
    """Elements of another type."""
    dtype = TYPES.get(c.text("dtype"))
    if dtype is None:
        c.fail(f"elements of type {c.text('dtype')} are not supported", f"use one of {', '.join(TYPES)}")
    return c.cast(c.tensor(), dtype)


@translates("ops.ZerosLike", "ops.OnesLike", "ops.FullLike")
def filled_like(c: Call) -> Operand:
    """One number in the shape of a tensor."""
    x = c.tensor()
    value = c.positional[1] if c.layer.kind == "ops.FullLike" else float(c.layer.kind == "ops.OnesLike")
    if not isinstance(value, int | float):
        c.fail(f"its number {value!r} is a tensor", "call it with a number")
    return c.add("full", shape=tuple(x.shape), value=value, dtype=x.dtype)


@translates("ops.ConvertToTensor", "ops.StopGradient", "ops.Copy", "ops.Identity")
def same(c: Call) -> Operand:
    """The tensor itself."""
    return c.tensor()


@translates("ops.Softmax", "ops.LogSoftmax")
def softmax(c: Call) -> Operand:
    """Exponentials, divided by their sum along a dimension; LogSoftmax, the logarithms of these."""
    x = c.floats()
    op = "softmax" if c.layer.kind == "ops.Softmax" else "log_softmax"
    return c.add(op, x, axis=c.axis_of(c.integer("axis", -1), x.rank))
