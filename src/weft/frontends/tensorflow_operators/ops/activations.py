"""Activation functions, softmax among them."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from weft.frontends.tensorflow_operators.call import Call
from weft.frontends.tensorflow_operators.registry import Translation, translates
from weft.graph.builder import Operand

SELU_ALPHA: Final = 1.6732632423543772
SELU_SCALE: Final = 1.0507009873554805
"""The constants of Klambauer et al. (2017)."""

_SIMPLE: Final = {"Relu": "relu", "Softplus": "softplus", "Softsign": "softsign"}


def _simple(op: str) -> Translation:
    return lambda c: c.pointwise(partial(c.add, op), c.tensor())


for _name, _op in _SIMPLE.items():
    translates(_name)(_simple(_op))


@translates("Relu6")
def relu6(c: Call) -> Operand:
    """x between 0 and 6."""
    return c.pointwise(lambda x: c.add("clip", x, c.scalar(0, x.dtype), c.scalar(6, x.dtype)), c.tensor())


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


@translates("Softmax")
def softmax(c: Call) -> Operand:
    """Exponentials divided by their sum along the last dimension, beta times x before."""
    x, beta = c.tensor(), c.number("beta", 1.0)
    if beta != 1.0:
        x = c.add("mul", x, c.scalar(beta, x.dtype))
    return c.along(lambda d, v: c.add("softmax", v, axis=d), x.rank - 1, x)


@translates("LogSoftmax")
def log_softmax(c: Call) -> Operand:
    """The logarithm of softmax."""
    x = c.tensor()
    return c.along(lambda d, v: c.add("log_softmax", v, axis=d), x.rank - 1, x)


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
