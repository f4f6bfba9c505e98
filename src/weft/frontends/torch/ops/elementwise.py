"""Arithmetic, comparison and activations, element by element."""

from __future__ import annotations

import math
from typing import Final

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import Operand, Results
from weft.graph.composites import activations
from weft.support.dtypes import bool_, i64

_UNARY: Final = {
    "abs": "abs",
    "neg": "neg",
    "exp": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "reciprocal": "reciprocal",
    "floor": "floor",
    "ceil": "ceil",
    "round": "round",
    "erf": "erf",
    "sign": "sign",
    "sin": "sin",
    "cos": "cos",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "relu": "relu",
    "acos": "acos",
    "acosh": "acosh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "sinh": "sinh",
    "cosh": "cosh",
    "tan": "tan",
    "square": "square",
}
_TOLD: Final = {"isnan": "is_nan", "isinf": "is_inf"}
_BINARY: Final = {
    "mul.Tensor": "mul",
    "mul.Scalar": "mul",
    "div.Tensor": "div",
    "div.Scalar": "div",
    "true_divide.Tensor": "div",
}
_COMPARED: Final = {"eq": "equal", "lt": "less", "le": "less_equal"}
_SIZES: Final = {"add": "add", "sub": "sub", "mul": "mul", "floordiv": "div", "mod": "floor_mod"}


def _unary(op: str) -> Translation:
    return lambda c: c.add(op, c.cast(c.tensor(), c.dtype if c.dtype is not bool_ else c.tensor().dtype))


def _told(op: str) -> Translation:
    """Tells something of each element; integers are neither infinite nor NaN."""

    def translate(c: Call) -> Results:
        x = c.tensor()
        return c.add(op, x) if x.dtype.is_float else c.add("full", shape=x.shape, value=False, dtype=bool_)

    return translate


def _extreme(op: str, of_truth: str) -> Translation:
    """The smaller or the larger of two elements; of truth values, and and or."""

    def translate(c: Call) -> Results:
        a, b = c.operand("self", c.dtype), c.operand("other", c.dtype)
        return c.add(of_truth if c.dtype is bool_ else op, a, b)

    return translate


def _binary(op: str) -> Translation:
    def translate(c: Call) -> Results:
        a, b = c.operand("self", c.dtype), c.operand("other", c.dtype)
        return c.add("logical_and" if c.dtype is bool_ else op, a, b)  # the product of truth values

    return translate


def _comparison(op: str) -> Translation:
    return lambda c: c.add(op, *_promoted(c))


def _on_sizes(op: str) -> Translation:
    """Arithmetic on symbolic sizes, which is evaluated at once."""
    return lambda c: c.add(op, c.operand("self", i64), c.operand("other", i64))


def _promoted(c: Call) -> tuple[Operand, Operand]:
    return c.operand("self", c.operand_dtype), c.operand("other", c.operand_dtype)


for _name, _op in _UNARY.items():
    translates(_name)(_unary(_op))
for _name, _op in _TOLD.items():
    translates(_name)(_told(_op))
translates("minimum", "min.other")(_extreme("minimum", "logical_and"))
translates("maximum", "max.other")(_extreme("maximum", "logical_or"))
for _name, _op in _BINARY.items():
    translates(_name)(_binary(_op))
for _name, _op in _COMPARED.items():
    translates(f"{_name}.Tensor", f"{_name}.Scalar")(_comparison(_op))
for _name, _op in _SIZES.items():
    translates(f"_operator.{_name}")(_on_sizes(_op))


@translates("add.Tensor", "add.Scalar")
def add(c: Call) -> Results:
    """self + alpha * other; or, of truth values."""
    return c.add("logical_or" if c.dtype is bool_ else "add", c.operand("self", c.dtype), _scaled(c, "other"))


@translates("sub.Tensor", "sub.Scalar")
def sub(c: Call) -> Results:
    """self - alpha * other."""
    return c.add("sub", c.operand("self", c.dtype), _scaled(c, "other"))


@translates("rsub.Scalar", "rsub.Tensor")
def rsub(c: Call) -> Results:
    """other - alpha * self."""
    return c.add("sub", c.operand("other", c.dtype), _scaled(c, "self"))


def _scaled(c: Call, name: str) -> Operand:
    x, alpha = c.operand(name, c.dtype), c.value("alpha", 1)
    return x if alpha == 1 else c.add("mul", x, c.scalar(alpha, c.dtype))


@translates("pow.Tensor_Tensor", "pow.Scalar")
def power(c: Call) -> Results:
    """self, which may be a number, to a power, element by element."""
    return c.add("power", c.operand("self", c.dtype), c.operand("exponent", c.dtype))


@translates("prims.pow.default")
def prims_pow(c: Call) -> Results:
    """The same, as decompositions have it."""
    return c.add("power", c.operand("self", c.dtype), c.operand("other", c.dtype))


@translates("isfinite")
def is_finite(c: Call) -> Results:
    """Tells of each element whether it is neither infinite nor NaN."""
    x = c.tensor()
    if not x.dtype.is_float:
        return c.add("full", shape=x.shape, value=True, dtype=bool_)
    return c.add("logical_not", c.add("logical_or", c.add("is_nan", x), c.add("is_inf", x)))


@translates("round.decimals")
def round_decimals(c: Call) -> Results:
    """The nearest number of so many decimals."""
    x, decimals = c.tensor(), c.integer("decimals")
    scale = c.scalar(10.0 ** abs(decimals), c.dtype)
    if decimals < 0:
        return c.add("mul", c.add("round", c.add("div", x, scale)), scale)
    return c.add("div", c.add("round", c.add("mul", x, scale)), scale)


@translates("angle")
def angle(c: Call) -> Results:
    """The angle of a real number as a complex one: pi where it is negative."""
    x = c.operand("self", c.dtype)
    made = c.add("where", c.add("less", x, c.scalar(0, c.dtype)), c.scalar(math.pi, c.dtype), c.scalar(0, c.dtype))
    return c.add("where", c.add("is_nan", x), x, made)


@translates("pow.Tensor_Scalar")
def power_of_number(c: Call) -> Results:
    """self to a number."""
    x, exponent = c.operand("self", c.dtype), c.value("exponent")
    if c.dtype is bool_:
        c.fail("powers of truth values are not supported", "convert them to numbers in the module")
    return c.add("square", x) if exponent == 2 else c.add("power", x, c.scalar(exponent, c.dtype))


@translates("ne.Tensor", "ne.Scalar")
def not_equal(c: Call) -> Results:
    """self != other."""
    return c.add("logical_not", c.add("equal", *_promoted(c)))


@translates("gt.Tensor", "gt.Scalar")
def greater(c: Call) -> Results:
    """self > other is other < self."""
    a, b = _promoted(c)
    return c.add("less", b, a)


@translates("ge.Tensor", "ge.Scalar")
def greater_equal(c: Call) -> Results:
    """self >= other is other <= self."""
    a, b = _promoted(c)
    return c.add("less_equal", b, a)


@translates("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(c: Call) -> Results:
    """The elements of self where the condition holds, else those of other."""
    return c.add("where", c.cast(c.tensor("condition"), bool_), c.operand("self", c.dtype), c.operand("other", c.dtype))


@translates("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(c: Call) -> Results:
    """A number where the mask holds, else self."""
    return c.add("where", c.tensor("mask"), c.operand("value", c.dtype), c.tensor())


@translates("clamp", "clamp_min", "clamp_max", "hardtanh")
def clamp(c: Call) -> Results:
    """self, kept between two bounds, either of which may be absent."""
    names = [f"{bound}_val" if f"{bound}_val" in c.arguments else bound for bound in ("min", "max")]
    bounds = [None if c.arguments.get(name) is None else c.operand(name, c.dtype) for name in names]
    return c.add("clip", c.operand("self", c.dtype), *bounds)


@translates("relu6")
def relu6(c: Call) -> Results:
    """self, kept between 0 and 6."""
    return c.add("clip", c.tensor(), c.scalar(0, c.dtype), c.scalar(6, c.dtype))


@translates("gelu")
def gelu(c: Call) -> Results:
    """The Gaussian error linear unit, exact or by tanh."""
    return c.add("gelu", c.tensor(), approximate=c.value("approximate") == "tanh")


@translates("silu")
def silu(c: Call) -> Results:
    """x * sigmoid(x)."""
    return activations.silu(c, c.tensor())


@translates("mish")
def mish(c: Call) -> Results:
    """x * tanh(softplus(x))."""
    return activations.mish(c, c.tensor())


@translates("hardswish")
def hardswish(c: Call) -> Results:
    """x times its hard sigmoid."""
    return activations.hard_swish(c, c.tensor())


@translates("hardsigmoid")
def hardsigmoid(c: Call) -> Results:
    """x / 6 + 1 / 2, kept between 0 and 1."""
    return c.add("hard_sigmoid", c.tensor(), alpha=1 / 6, beta=0.5)


@translates("elu")
def elu(c: Call) -> Results:
    """scale * x where x is positive, else scale * alpha * (exp(input_scale * x) - 1)."""
    alpha, scale, of_input = [float(c.value(name, 1)) for name in ("alpha", "scale", "input_scale")]
    x = c.tensor()
    below = c.add("elu", x if of_input == 1 else c.add("mul", x, c.scalar(of_input, c.dtype)), alpha=alpha)
    made = below if of_input == 1 else c.add("where", c.add("less", x, c.scalar(0, c.dtype)), below, x)
    return made if scale == 1 else c.add("mul", made, c.scalar(scale, c.dtype))


@translates("softplus")
def softplus(c: Call) -> Results:
    """log(1 + exp(beta * x)) / beta, which is x itself where beta * x is beyond a threshold."""
    x, beta, threshold = c.tensor(), float(c.value("beta", 1)), float(c.value("threshold", 20))
    scaled = x if beta == 1 else c.add("mul", x, c.scalar(beta, c.dtype))
    made = c.add("softplus", scaled)
    made = made if beta == 1 else c.add("div", made, c.scalar(beta, c.dtype))
    return c.add("where", c.add("less", c.scalar(threshold, c.dtype), scaled), x, made)


@translates("leaky_relu")
def leaky_relu(c: Call) -> Results:
    """x where it is positive, else a part of it."""
    return c.add("leaky_relu", c.tensor(), alpha=float(c.value("negative_slope")))
