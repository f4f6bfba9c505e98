"""Activation functions."""

from __future__ import annotations

from typing import Final

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.registry import Translation, translates
from weft.graph.composites import activations

_PLAIN: Final = {"Relu": "relu", "Sigmoid": "sigmoid", "Softplus": "softplus", "Softsign": "softsign"}
_SCALED: Final = {
    "LeakyRelu": ("leaky_relu", {"alpha": 0.01}),
    "Elu": ("elu", {"alpha": 1.0}),
    "Selu": ("selu", {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    "HardSigmoid": ("hard_sigmoid", {"alpha": 0.2, "beta": 0.5}),
    "ThresholdedRelu": ("thresholded_relu", {"alpha": 1.0}),
}
"""Operators with float attributes: Weft's operator, and ONNX's defaults."""


def _plain(op: str) -> Translation:
    return lambda c: c.add(op, c.input(0))


def _scaled(op: str, defaults: dict[str, float]) -> Translation:
    return lambda c: c.add(op, c.input(0), **{k: c.number(k, v) for k, v in defaults.items()})


for _name, _op in _PLAIN.items():
    translates(_name)(_plain(_op))
for _name, (_op, _defaults) in _SCALED.items():
    translates(_name)(_scaled(_op, _defaults))


@translates("HardSwish")
def hard_swish(c: Call) -> Results:
    """The input times its hard sigmoid."""
    return activations.hard_swish(c, c.input(0))


@translates("Gelu")
def gelu(c: Call) -> Results:
    """The Gaussian error linear unit, exact or by tanh."""
    return c.add("gelu", c.input(0), approximate=c.text("approximate", "none") == "tanh")


@translates("Mish")
def mish(c: Call) -> Results:
    """x * tanh(softplus(x))."""
    return activations.mish(c, c.input(0))


@translates("Swish")
def swish(c: Call) -> Results:
    """x * sigmoid(alpha * x)."""
    return activations.silu(c, c.input(0), c.number("alpha", 1.0))


@translates("PRelu")
def prelu(c: Call) -> Results:
    """A leaky ReLU whose slope is a tensor; before operator set 7, one slope a channel."""
    x, slope = c.input(0), c.input(1)
    if c.opset < 7 and slope.rank == 1 and x.rank > 2:
        slope = c.reshape(slope, [*slope.shape, *[1] * (x.rank - 2)])
    return c.add("prelu", x, slope)


@translates("Clip")
def clip(c: Call) -> Results:
    """Keeps the elements between two bounds: attributes before operator set 11, then optional inputs."""
    x = c.input(0)
    if c.opset < 11:
        low, high = (c.scalar(c.number(k, 0), x.dtype) if k in c.attributes else None for k in ("min", "max"))
        return c.add("clip", x, low, high)
    return c.add("clip", x, _scalar(c, c.optional(1)), _scalar(c, c.optional(2)))


def _scalar(c: Call, v: Operand | None) -> Operand | None:
    """Returns a tensor of one element as a scalar."""
    return v if v is None or v.rank == 0 else c.reshape(v, ())
