"""Layers on each element: arithmetic and activations."""

from __future__ import annotations

from functools import reduce
from typing import Final

from weft.frontends.coreml.call import AGAIN
from weft.frontends.coreml.layer_table import Layer, layer
from weft.frontends.coreml.network_call import EPSILON, NetworkCall
from weft.frontends.protobuf_message import Message
from weft.graph.builder import Operand
from weft.graph.composites.activations import silu
from weft.graph.composites.normalization import per_channel

_PLAIN: Final = {10: "relu", 30: "tanh", 40: "sigmoid", 60: "softsign", 70: "softplus"}
_OF_ALPHA: Final = {15: "leaky_relu", 50: "elu"}


@layer(130, "activation")
def activation(c: NetworkCall) -> Operand:
    """A function, whose parameters' field says which."""
    x = c.input()
    kind = next(iter(c.params.field_numbers), 0)
    m = c.params.inner(kind)
    if kind in _PLAIN:
        return c.add(_PLAIN[kind], x)
    if kind in _OF_ALPHA:
        return c.add(_OF_ALPHA[kind], x, alpha=m.number(1))
    if kind == 25:
        return c.add("prelu", x, _slopes(c, x, m))
    if kind == 71:
        alpha, beta = (_slopes(c, x, m, number) for number in (1, 2))
        return c.add("mul", alpha, c.add("softplus", c.add("mul", beta, x)))
    if kind not in (5, 20, 31, 41):
        c.fail(f"its kind {kind} is not supported", "use another activation")
    return _of_two_numbers(c, x, kind, m.number(1), m.number(2))


def _of_two_numbers(c: NetworkCall, x: Operand, kind: int, alpha: float, beta: float) -> Operand:
    """Returns a line, a threshold, a scaled tanh or a hard sigmoid."""
    a, b = c.scalar(alpha, x.dtype), c.scalar(beta, x.dtype)
    if kind == 5:
        return c.add("add", c.add("mul", x, a), b)
    if kind == 20:
        return c.add("where", c.add("less", x, a), c.scalar(0, x.dtype), x)
    if kind == 31:
        return c.add("mul", c.add("tanh", c.add("mul", x, b)), a)
    return c.add("hard_sigmoid", x, alpha=alpha, beta=beta)


def _slopes(c: NetworkCall, x: Operand, m: Message, number: int = 1) -> Operand:
    """Returns numbers for each channel, or one for all."""
    count = m.inner(number).numbers(1).size or len(m.inner(number).raw(2) or b"") // 2
    slope = c.weight(number, (count,), m)
    return per_channel(c, slope, x.rank) if count > 1 else c.reshape(slope, ())


@layer(220, "unary")
def unary(c: NetworkCall) -> Operand:
    """A function of `scale * x + shift`."""
    x, p = c.input(), c.params
    scale, shift = p.number(5, 1.0), p.number(4)
    if (scale, shift) != (1.0, 0.0):
        x = c.add("add", c.add("mul", x, c.scalar(scale, x.dtype)), c.scalar(shift, x.dtype))
    kind = p.integer(1)
    if kind in (1, 2, 5):  # functions without a value at zero
        x = c.add("add", x, c.scalar(p.number(3) or EPSILON, x.dtype))
    if kind in (3, 7):
        number = c.scalar(p.number(2), x.dtype)
        return c.add("power" if kind == 3 else "maximum", x, number)
    plain = {0: "sqrt", 1: "rsqrt", 2: "reciprocal", 4: "exp", 5: "log", 6: "abs"}
    if kind not in plain:
        c.fail(f"its type {kind} is not supported", AGAIN)
    return c.add(plain[kind], x)


def _of_all(operator: str, *, with_alpha: bool = False) -> Layer:
    """Combines all inputs; or the one, with a number."""

    def translate(c: NetworkCall) -> Operand:
        given = list(c.inputs)
        if with_alpha and len(given) == 1:
            given.append(c.scalar(c.params.number(1), given[0].dtype))
        return reduce(lambda a, b: c.add(operator, a, b), given)

    return translate


layer(230, "add")(_of_all("add", with_alpha=True))
layer(231, "multiply")(_of_all("mul", with_alpha=True))
layer(260, "max")(_of_all("maximum"))
layer(261, "min")(_of_all("minimum"))
layer(870, "minBroadcastable")(_of_all("minimum"))
layer(875, "maxBroadcastable")(_of_all("maximum"))
layer(880, "addBroadcastable")(_of_all("add"))
layer(885, "powBroadcastable")(_of_all("power"))
layer(890, "divideBroadcastable")(_of_all("div"))
layer(900, "multiplyBroadcastable")(_of_all("mul"))
layer(905, "subtractBroadcastable")(_of_all("sub"))


@layer(240, "average")
def average(c: NetworkCall) -> Operand:
    """The mean of all inputs."""
    total = reduce(lambda a, b: c.add("add", a, b), c.inputs)
    return c.add("mul", total, c.scalar(1 / len(c.inputs), total.dtype))


def _one(operator: str) -> Layer:
    return lambda c: c.add(operator, c.input())


for _number, _name in {
    665: "ceil",
    670: "floor",
    680: "sign",
    685: "round",
    710: "sin",
    715: "cos",
    720: "tan",
    730: "asin",
    735: "acos",
    740: "atan",
    750: "sinh",
    755: "cosh",
    760: "tanh",
    770: "asinh",
    775: "acosh",
    780: "atanh",
    790: "erf",
}.items():
    layer(_number, _name)(_one(_name))
layer(600, "copy")(_one("identity"))


@layer(795, "gelu")
def gelu(c: NetworkCall) -> Operand:
    """The element times the normal distribution's function, or an approximation of it."""
    mode = c.params.integer(1)
    return silu(c, c.input(), 1.702) if mode == 2 else c.add("gelu", c.input(), approximate=mode == 1)


@layer(660, "clip")
def clip(c: NetworkCall) -> Operand:
    """Elements kept between two numbers."""
    dtype = c.input().dtype
    return c.add("clip", c.input(), c.scalar(c.params.number(1), dtype), c.scalar(c.params.number(2), dtype))


@layer(1460, "clampedReLU")
def clamped_relu(c: NetworkCall) -> Operand:
    """Elements above zero up to beta, and alpha times those below."""
    kept = c.add("leaky_relu", c.input(), alpha=c.params.number(1))
    return c.add("minimum", kept, c.scalar(c.params.number(2), kept.dtype))


@layer(245, "scale")
def scale(c: NetworkCall) -> Operand:
    """Elements times numbers, and others added."""
    made = c.add("mul", c.input(), _spread(c, 1, 2))
    return c.add("add", made, _spread(c, 4, 5)) if c.params.flag(3) else made


@layer(250, "bias")
def bias(c: NetworkCall) -> Operand:
    """Numbers added."""
    return c.add("add", c.input(), _spread(c, 1, 2))


def _spread(c: NetworkCall, shape: int, number: int) -> Operand:
    """Returns weights of a shape of the last dimensions, those of one number for each channel among them."""
    sizes = c.ints(shape)
    return c.weight(number, [*sizes, 1, 1] if len(sizes) == 1 and sizes[0] > 1 else sizes)
