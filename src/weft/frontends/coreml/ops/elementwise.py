"""Operations on each element: arithmetic, comparison, logic and activations."""

from __future__ import annotations

from weft.frontends.coreml.call import AGAIN, Call
from weft.frontends.coreml.registry import Translation, translates
from weft.graph.builder import Operand
from weft.graph.composites.activations import silu as silu_of
from weft.graph.composites.normalization import per_channel
from weft.support.dtypes import SCALARS, bool_


def _unary(op: str) -> Translation:
    return lambda c: c.add(op, c.operand())


for _name, _op in {
    **{
        n: n
        for n in (
            "abs",
            "acos",
            "asin",
            "atan",
            "ceil",
            "cos",
            "cosh",
            "erf",
            "exp",
            "floor",
            "identity",
            "logical_not",
        )
    },
    **{
        n: n
        for n in (
            "relu",
            "round",
            "sigmoid",
            "sign",
            "sin",
            "sinh",
            "softplus",
            "softsign",
            "sqrt",
            "square",
            "tan",
            "tanh",
        )
    },
    "atanh": "atanh",
}.items():
    translates(_name)(_unary(_op))


def _epsilon(op: str, default: float) -> Translation:
    """A function of the element and a small number that is added to it."""

    def translate(c: Call) -> Operand:
        return c.add(op, c.add("add", c.operand(), c.scalar(c.number("epsilon", default), c.operand().dtype)))

    return translate


translates("rsqrt")(_epsilon("rsqrt", 1e-12))
translates("inverse")(_epsilon("reciprocal", 1e-4))
translates("log")(_epsilon("log", 1e-45))


def operands(c: Call) -> tuple[Operand, Operand]:
    """Returns both operands, a number among them in the type of the other."""
    x, y = c.operand("x"), c.operand("y")
    return (c.cast(x, y.dtype), y) if x.rank == 0 and y.rank else (x, c.cast(y, x.dtype))


def _binary(op: str, *, negated: bool = False, swapped: bool = False) -> Translation:
    def translate(c: Call) -> Operand:
        x, y = operands(c)
        made = c.add(op, *((y, x) if swapped else (x, y)))
        return c.add("logical_not", made) if negated else made

    return translate


for _name in (
    "add",
    "sub",
    "mul",
    "maximum",
    "minimum",
    "equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
):
    translates(_name)(_binary(_name))
translates("not_equal")(_binary("equal", negated=True))
translates("greater")(_binary("less", swapped=True))
translates("greater_equal")(_binary("less_equal", swapped=True))
translates("pow")(_binary("power"))
translates("mod")(_binary("floor_mod"))
translates("real_div")(_binary("div"))


@translates("floor_div")
def floor_div(c: Call) -> Operand:
    """The quotient, rounded down."""
    x, y = operands(c)
    if not x.dtype.is_int:
        return c.add("floor", c.add("div", x, y))
    return c.add("div", c.add("sub", x, c.add("floor_mod", x, y)), y)


@translates("exp2")
def exp2(c: Call) -> Operand:
    """Two to a power."""
    return c.add("power", c.scalar(2, c.operand().dtype), c.operand())


@translates("cast")
def cast(c: Call) -> Operand:
    """Elements as another type."""
    names = {"fp16": "f16", "fp32": "f32", "fp64": "f64", "bool": "bool"}
    name = c.text("dtype")
    found = SCALARS.get(names.get(name, name.replace("uint", "u").replace("int", "i")))
    if found is None:
        c.fail(f"elements of type {name!r} are not supported", AGAIN)
    return c.cast(c.operand(), found)


@translates("select")
def select(c: Call) -> Operand:
    """Chooses between two tensors, element by element."""
    a = c.operand("a")
    return c.add("where", c.cast(c.operand("cond"), bool_), a, c.cast(c.operand("b"), a.dtype))


@translates("clip")
def clip(c: Call) -> Operand:
    """Elements kept between two numbers."""
    return bounded(c, c.operand(), c.number("alpha"), c.number("beta"))


def bounded(c: Call, x: Operand, low: float, high: float) -> Operand:
    """Returns elements kept between two numbers."""
    return c.add("clip", x, c.scalar(low, x.dtype), c.scalar(high, x.dtype))


@translates("relu6")
def relu6(c: Call) -> Operand:
    """Elements kept between 0 and 6."""
    return bounded(c, c.operand(), 0, 6)


@translates("threshold")
def threshold(c: Call) -> Operand:
    """Elements, but not below a number."""
    x = c.operand()
    return c.add("maximum", x, c.scalar(c.number("alpha"), x.dtype))


@translates("thresholded_relu")
def thresholded_relu(c: Call) -> Operand:
    """Elements that are a number or more; zero for others."""
    x = c.operand()
    is_below = c.add("less", x, c.scalar(c.number("alpha", 1.0), x.dtype))
    return c.add("where", is_below, c.scalar(0, x.dtype), x)


@translates("clamped_relu")
def clamped_relu(c: Call) -> Operand:
    """Elements above zero up to beta, and alpha times those below."""
    x = c.operand()
    kept = c.add("leaky_relu", x, alpha=c.number("alpha"))
    return c.add("minimum", kept, c.scalar(c.number("beta"), x.dtype))


@translates("leaky_relu")
def leaky_relu(c: Call) -> Operand:
    """Elements above zero, and alpha times those below."""
    return c.add("leaky_relu", c.operand(), alpha=c.number("alpha", 0.01))


@translates("elu")
def elu(c: Call) -> Operand:
    """Elements above zero, and alpha times exp(x) - 1 below."""
    return c.add("elu", c.operand(), alpha=c.number("alpha", 1.0))


@translates("gelu")
def gelu(c: Call) -> Operand:
    """The element times the normal distribution's function, or an approximation of it."""
    mode = c.text("mode", "EXACT")
    if mode == "SIGMOID_APPROXIMATION":
        return silu_of(c, c.operand(), 1.702)
    return c.add("gelu", c.operand(), approximate=mode == "TANH_APPROXIMATION")


@translates("silu")
def silu(c: Call) -> Operand:
    """The element times its sigmoid."""
    return silu_of(c, c.operand())


@translates("prelu")
def prelu(c: Call) -> Operand:
    """Elements above zero, and those below times a number for each channel."""
    x = c.operand()
    return c.add("prelu", x, per_channel(c, c.operand("alpha"), x.rank))


@translates("sigmoid_hard")
def sigmoid_hard(c: Call) -> Operand:
    """A line, kept between 0 and 1."""
    return c.add("hard_sigmoid", c.operand(), alpha=c.number("alpha", 0.2), beta=c.number("beta", 0.5))


def affine(c: Call, x: Operand, scale: float, shift: float) -> Operand:
    """Returns `scale * x + shift`."""
    return c.add("add", c.add("mul", x, c.scalar(scale, x.dtype)), c.scalar(shift, x.dtype))


@translates("linear_activation")
def linear_activation(c: Call) -> Operand:
    """A line."""
    return affine(c, c.operand(), c.number("alpha", 1.0), c.number("beta", 0.0))


@translates("scaled_tanh")
def scaled_tanh(c: Call) -> Operand:
    """alpha * tanh(beta * x)."""
    x = c.operand()
    inner = c.add("tanh", c.add("mul", x, c.scalar(c.number("beta", 1.0), x.dtype)))
    return c.add("mul", inner, c.scalar(c.number("alpha", 1.0), x.dtype))


@translates("softplus_parametric")
def softplus_parametric(c: Call) -> Operand:
    """alpha * log(1 + exp(beta * x)), with numbers for each channel."""
    x = c.operand()
    alpha, beta = (per_channel(c, c.operand(n), x.rank) for n in ("alpha", "beta"))
    return c.add("mul", alpha, c.add("softplus", c.add("mul", beta, x)))


@translates("softmax")
def softmax(c: Call) -> Operand:
    """Exponentials along an axis, divided by their sum."""
    x = c.operand()
    return c.add("softmax", x, axis=c.axis_of(c.integer("axis", -1), x.rank))
