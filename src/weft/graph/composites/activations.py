"""Activation functions made of several operators."""

from __future__ import annotations

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand


def silu(b: Builder, x: Operand, alpha: float = 1.0) -> Operand:
    """`x * sigmoid(alpha * x)`: the sigmoid linear unit, Swish (Ramachandran, Zoph and Le, 2017)."""
    scaled = x if alpha == 1.0 else b.add("mul", x, b.scalar(alpha, x.dtype))
    return b.add("mul", x, b.add("sigmoid", scaled))


def hard_swish(b: Builder, x: Operand) -> Operand:
    """`x * min(1, max(0, x / 6 + 1 / 2))` (Howard et al., 2019)."""
    return b.add("mul", x, b.add("hard_sigmoid", x, alpha=1 / 6, beta=0.5))


def mish(b: Builder, x: Operand) -> Operand:
    """`x * tanh(softplus(x))` (Misra, 2019)."""
    return b.add("mul", x, b.add("softplus_tanh", x))
