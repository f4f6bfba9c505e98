"""Activation functions, softmax among them."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from weft.frontends.tensorflow_operators.call import Call
from weft.frontends.tensorflow_operators.registry import Translation, translates
from weft.graph.builder import Operand
from weft.graph.composites.activations import hard_swish
from weft.graph.composites.normalization import lp_normalize

SELU_ALPHA: Final = 1.6732632423543772
SELU_SCALE: Final = 1.0507009873554805
"""The constants of Klambauer et al. (2017)."""

_SIMPLE: Final = {"Relu": "relu", "Softplus": "softplus", "Softsign": "softsign"}


def _simple(op: str) -> Translation:
    return lambda c: c.pointwise(partial(c.add, op), c.tensor())


for _name, _op in _SIMPLE.items():
    translates(_name)(_simple(_op))


@translates("Relu6", "ReluN1To1", "Relu0To1")
def clipped(c: Call) -> Operand:
    """x between two numbers."""
    low, high = {"Relu6": (0, 6), "ReluN1To1": (-1, 1), "Relu0To1": (0, 1)}[c.op]
    return c.pointwise(lambda x: c.add("clip", x, c.scalar(low, x.dtype), c.scalar(high, x.dtype)), c.tensor())


@translates("Elu")
def elu(c: Call) -> Operand:
    """x, or exp(x) - 1 below 0."""
    return c.pointwise(partial(c.add, "elu", alpha=1.0), c.tensor())


@translates("Selu")
def selu(c: Call) -> Operand:
    """A scaled `elu`."""
    return c.pointwise(partial(c.add, "selu", alpha=SELU_ALPHA, gamma=SELU_SCALE), c.tensor())


@translates("LeakyRelu")
def leaky_relu(c: Call) -> Operand:
    """x, or a fraction of it below 0."""
    return c.pointwise(partial(c.add, "leaky_relu", alpha=c.number("alpha", 0.2)), c.tensor())


@translates("PRelu")
def prelu(c: Call) -> Operand:
    """x, or a learned fraction of it below 0."""
    return c.pointwise(partial(c.add, "prelu"), c.tensor(0), c.tensor(1))


@translates("Gelu")
def gelu(c: Call) -> Operand:
    """x P(X <= x) for a standard normal X (Hendrycks and Gimpel, 2016), exactly or by their tanh formula."""
    return c.pointwise(partial(c.add, "gelu", approximate=c.flag("approximate")), c.tensor())


@translates("HardSwish")
def hard_swish_(c: Call) -> Operand:
    """x times a piecewise linear sigmoid."""
    return c.pointwise(partial(hard_swish, c), c.tensor())


@translates("Softmax")
def softmax(c: Call) -> Operand:
    """Exponentials divided by their sum along the last dimension, beta times x before."""
    x, beta = c.tensor(), c.number("beta", 1.0)
    if beta != 1.0:
        x = c.add("mul", x, c.scalar(beta, x.dtype))
    return c.by_place(lambda d, v: c.add("softmax", v, axis=d), x.rank - 1, 1, x)


@translates("LogSoftmax")
def log_softmax(c: Call) -> Operand:
    """The logarithm of softmax."""
    x = c.tensor()
    return c.by_place(lambda d, v: c.add("log_softmax", v, axis=d), x.rank - 1, 1, x)


@translates("L2Normalization")
def l2_normalization(c: Call) -> Operand:
    """Divides by the 2-norm along the last dimension."""
    x = c.tensor()
    return lp_normalize(c, x, x.rank - 1, 2)


@translates("LRN")
def lrn(c: Call) -> Operand:
    """Divides by a power of the squares' sum over channels around each (Krizhevsky et al., 2012)."""
    radius, alpha = c.integer("depth_radius", 5), c.number("alpha", 1.0)
    size = 2 * radius + 1
    x = c.first(c.tensor(0, 4))
    if size < 1 or not math.isfinite(alpha):
        c.fail(f"its radius is {radius} and its alpha {alpha}", "save the model again")
    y = c.add("lrn", x, size=size, alpha=alpha * size, beta=c.number("beta", 0.5), bias=c.number("bias", 1.0))
    return c.last(y)
