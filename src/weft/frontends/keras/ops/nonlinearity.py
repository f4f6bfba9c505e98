"""Activation functions, and the layers that are one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from weft.frontends.keras.call import Call
from weft.frontends.keras.registry import translates
from weft.graph.builder import Builder, Operand, total
from weft.graph.composites import activations
from weft.graph.composites.sequences import equal_split
from weft.support.dtypes import f32
from weft.support.registry import Registry

Function: TypeAlias = Callable[[Builder, Operand], Operand]

SELU: Final = {"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}
"""The constants of Klambauer et al. (2017)."""


def _op(name: str, **attributes: Any) -> Function:
    return lambda b, x: b.add(name, x, **attributes)


def _clipped(low: float, high: float) -> Function:
    return lambda b, x: b.add("clip", x, b.scalar(low, x.dtype), b.scalar(high, x.dtype))


def _softmax(name: str) -> Function:
    return lambda b, x: b.add(name, x, axis=x.rank - 1)


def _gated(b: Builder, x: Operand) -> Operand:
    """Returns one half of the channels times the sigmoid of the other (Dauphin et al., 2017)."""
    value, gate = equal_split(b, x, 2)
    return b.add("mul", value, b.add("sigmoid", gate))


def _beyond(bound: float, nearer: float) -> Function:
    """Returns the function that makes 0 of what lies within *bound* of it, and brings the rest *nearer*."""

    def function(b: Builder, x: Operand) -> Operand:
        moved = x if nearer == 0 else b.add("sub", x, b.add("mul", b.add("sign", x), b.scalar(nearer, x.dtype)))
        return b.add("where", b.add("less", b.scalar(bound, x.dtype), b.add("abs", x)), moved, b.scalar(0, x.dtype))

    return function


def _sparse_plus(b: Builder, x: Operand) -> Operand:
    """Returns 0 below -1, x above 1, and between them a parabola."""
    one = b.scalar(1, x.dtype)
    bent = b.add(
        "mul", b.add("square", b.add("add", b.add("maximum", x, b.scalar(-1, x.dtype)), one)), b.scalar(0.25, x.dtype)
    )
    return b.add("where", b.add("less", x, one), bent, x)


def _squareplus(b: Builder, x: Operand) -> Operand:
    """Returns (x + sqrt(x^2 + 4)) / 2 (Barron, 2021)."""
    root = b.add("sqrt", b.add("add", b.add("square", x), b.scalar(4, x.dtype)))
    return b.add("mul", b.add("add", x, root), b.scalar(0.5, x.dtype))


FUNCTIONS: Final = Registry[str, Function]("Keras activation function")
"""Activation functions by Keras's names."""

FUNCTIONS.update(
    {
        "linear": lambda b, x: x,
        "relu": _op("relu"),
        "relu6": _clipped(0, 6),
        "sigmoid": _op("sigmoid"),
        "hard_sigmoid": _op("hard_sigmoid", alpha=1 / 6, beta=0.5),
        "tanh": _op("tanh"),
        "hard_tanh": _clipped(-1, 1),
        "tanh_shrink": lambda b, x: b.add("sub", x, b.add("tanh", x)),
        "softplus": _op("softplus"),
        "softsign": _op("softsign"),
        "exponential": _op("exp"),
        "elu": _op("elu"),
        "selu": _op("selu", **SELU),
        "gelu": _op("gelu"),
        "leaky_relu": _op("leaky_relu", alpha=0.2),
        "silu": activations.silu,
        "swish": activations.silu,
        "hard_silu": activations.hard_swish,
        "hard_swish": activations.hard_swish,
        "mish": activations.mish,
        "log_sigmoid": lambda b, x: b.add("neg", b.add("softplus", b.add("neg", x))),
        "celu": lambda b, x: b.add("elu", x, alpha=1.0),
        "glu": _gated,
        "hard_shrink": _beyond(0.5, 0.0),
        "soft_shrink": _beyond(0.5, 0.5),
        "sparse_plus": _sparse_plus,
        "sparse_sigmoid": _op("hard_sigmoid", alpha=0.5, beta=0.5),
        "squareplus": _squareplus,
        "softmax": _softmax("softmax"),
        "log_softmax": _softmax("log_softmax"),
    }
)
FUNCTIONS.seal()


def activation_of(c: Call, setting: str = "activation") -> str:
    """Returns the name of the activation function in a setting; raises `ModelError` for one that Weft does not have."""
    found = c.layer.config.get(setting)
    if isinstance(found, dict):  # a function, or a layer, written as an object
        found = found.get("config") if isinstance(found.get("config"), str) else found.get("class_name")
        found = {"ReLU": "relu", "Softmax": "softmax"}.get(str(found), found)
    if found is None:
        return "linear"
    if not isinstance(found, str) or found not in FUNCTIONS:
        c.fail(f"the activation function {found!r} is not supported", f"use one of {', '.join(FUNCTIONS)}")
    return found


def activated(c: Call, x: Operand, name: str) -> Operand:
    """Applies an activation function; images keep their order of dimensions in memory, unless it halves the channels."""
    if name == "glu":
        return FUNCTIONS[name](c, x)
    if name in ("softmax", "log_softmax"):
        return c.along(lambda d, v: c.add(name, v, axis=d), x.rank - 1, x)
    return c.pointwise(lambda v: FUNCTIONS[name](c, v), x)


@translates("Activation")
def activation(c: Call) -> Operand:
    """A function by its name."""
    return activated(c, c.floats(), activation_of(c))


@translates("ReLU")
def relu(c: Call) -> Operand:
    """max(x, 0), with a slope below the threshold, and a largest value."""
    slope, threshold = c.number("negative_slope", 0.0), c.number("threshold", 0.0)
    largest = c.number("max_value") if c.has("max_value") else math.inf

    def function(x: Operand) -> Operand:
        zero = c.scalar(0, x.dtype)
        if threshold:
            low = c.scalar(threshold, x.dtype)
            below = c.add("mul", c.add("sub", x, low), c.scalar(slope, x.dtype)) if slope else zero
            y = c.add("where", c.add("less", x, low), below, x)
        else:
            y = c.add("leaky_relu", x, alpha=slope) if slope else c.add("relu", x)
        return y if largest == math.inf else c.add("minimum", y, c.scalar(largest, x.dtype))

    return c.pointwise(function, c.floats())


@translates("LeakyReLU")
def leaky_relu(c: Call) -> Operand:
    """x, or a fraction of it below 0."""
    alpha = c.number("negative_slope", c.number("alpha", 0.3))
    return c.pointwise(lambda x: c.add("leaky_relu", x, alpha=alpha), c.floats())


@translates("ELU")
def elu(c: Call) -> Operand:
    """x, or alpha * (exp(x) - 1) below 0."""
    alpha = c.number("alpha", 1.0)
    return c.pointwise(lambda x: c.add("elu", x, alpha=alpha), c.floats())


@translates("PReLU")
def prelu(c: Call) -> Operand:
    """x, or a learned fraction of it below 0."""
    x = c.floats()
    return c.pointwise(partial(c.add, "prelu"), x, c.variable(0, x.rank - 1))


@translates("Softmax")
def softmax(c: Call) -> Operand:
    """Exponentials, divided by their sum along a dimension; masked elements are zero."""
    x, mask = c.floats(), c.mask()
    found = c.layer.config.get("axis", -1)
    axes = [c.axis_of(d, x.rank) for d in (found if isinstance(found, list) else [c.integer("axis", -1)])]
    if mask is None:
        return _along(c, x, axes)
    kept = c.add("where", mask, x, c.scalar(-1e9, x.dtype))
    return c.add("where", mask, _along(c, kept, axes), c.scalar(0, x.dtype))


def _along(c: Call, x: Operand, axes: Sequence[int]) -> Operand:
    """Returns the softmax along all of several dimensions."""
    if len(axes) == 1:
        return c.along(lambda d, v: c.add("softmax", v, axis=d), axes[0], x)
    order = [*[d for d in range(x.rank) if d not in axes], *axes]
    moved = c.transpose(x, order)
    kept = moved.shape[: x.rank - len(axes)]
    y = c.add("softmax", c.reshape(moved, [*kept, total(moved.shape[len(kept) :])]), axis=len(kept))
    return c.transpose(c.reshape(y, moved.shape), [order.index(d) for d in range(x.rank)])


@translates("Rescaling")
def rescaling(c: Call) -> Operand:
    """x * scale + offset; lists have one for each channel."""
    x = c.floats()
    scale, offset = (np.asarray(c.layer.config.get(n, d), np.float32) for n, d in (("scale", 1.0), ("offset", 0.0)))
    factors = [c.vector_of(v) if v.ndim else c.scalar(float(v), f32) for v in (scale, offset)]
    return c.pointwise(lambda v, s, o: c.add("add", c.add("mul", v, s), o), x, *factors)
