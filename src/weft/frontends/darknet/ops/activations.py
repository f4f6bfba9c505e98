"""Darknet's activation functions, by the names that the option `activation` has for them (its activations.h)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from weft.graph.builder import Builder, Operand
from weft.graph.composites import activations

Function: TypeAlias = Callable[[Builder, Operand], Operand]


def _scaled(b: Builder, x: Operand, scale: float, shift: float = 0.0) -> Operand:
    y = b.add("mul", x, b.scalar(scale, x.dtype))
    return y if shift == 0.0 else b.add("add", y, b.scalar(shift, x.dtype))


def _above(b: Builder, x: Operand, bound: float) -> Operand:
    return b.add("less", b.scalar(bound, x.dtype), x)


def _ramp(b: Builder, x: Operand) -> Operand:
    return b.add("add", b.add("relu", x), _scaled(b, x, 0.1))


def _loggy(b: Builder, x: Operand) -> Operand:
    return _scaled(b, b.add("sigmoid", x), 2.0, -1.0)


def _plse(b: Builder, x: Operand) -> Operand:
    """Pieces of straight lines near the logistic function."""
    middle = _scaled(b, x, 0.125, 0.5)
    high = _scaled(b, x, 0.01, 0.96)
    low = _scaled(b, x, 0.01, 0.04)
    below = b.add("less", x, b.scalar(-4.0, x.dtype))
    return b.add("where", below, low, b.add("where", _above(b, x, 4.0), high, middle))


def _lhtan(b: Builder, x: Operand) -> Operand:
    below = b.add("less", x, b.scalar(0.0, x.dtype))
    high = b.add("where", _above(b, x, 1.0), _scaled(b, x, 0.001, 0.999), x)
    return b.add("where", below, _scaled(b, x, 0.001), high)


def _hard_mish(b: Builder, x: Operand) -> Operand:
    curve = b.add("add", _scaled(b, b.add("mul", x, x), 0.5), x)
    middle = b.add("where", _above(b, x, -2.0), curve, b.scalar(0.0, x.dtype))
    return b.add("where", _above(b, x, 0.0), x, middle)


def _stair(b: Builder, x: Operand) -> Operand:
    """Steps at even numbers, and slopes after odd ones."""
    n, half = b.add("floor", x), b.add("floor", _scaled(b, x, 0.5))
    even = b.add("equal", n, _scaled(b, b.add("floor", _scaled(b, n, 0.5)), 2.0))
    return b.add("where", even, half, b.add("add", b.add("sub", x, n), half))


ACTIVATIONS: Final[dict[str, Function]] = {
    "linear": lambda b, x: x,
    "logistic": lambda b, x: b.add("sigmoid", x),
    "loggy": _loggy,
    "relu": lambda b, x: b.add("relu", x),
    "relu6": lambda b, x: b.add("clip", x, b.scalar(0.0, x.dtype), b.scalar(6.0, x.dtype)),
    "relie": lambda b, x: b.add("leaky_relu", x, alpha=0.01),
    "leaky": lambda b, x: b.add("leaky_relu", x, alpha=0.1),
    "ramp": _ramp,
    "elu": lambda b, x: b.add("elu", x),
    "selu": lambda b, x: b.add("selu", x, alpha=1.6732, gamma=1.0507),
    "gelu": lambda b, x: b.add("gelu", x, approximate=True),
    "tanh": lambda b, x: b.add("tanh", x),
    "hardtan": lambda b, x: b.add("clip", x, b.scalar(-1.0, x.dtype), b.scalar(1.0, x.dtype)),
    "lhtan": _lhtan,
    "plse": _plse,
    "stair": _stair,
    "swish": activations.silu,
    "mish": activations.mish,
    "hard_mish": _hard_mish,
}
