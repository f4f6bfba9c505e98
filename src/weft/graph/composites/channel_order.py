"""Images with their channels last ([N, ..., C]) and first ([N, C, ...])."""

from __future__ import annotations

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand


def channels_first(b: Builder, x: Operand) -> Operand:
    """Moves the last dimension behind the first."""
    return b.transpose(x, [0, x.rank - 1, *range(1, x.rank - 1)])


def channels_last(b: Builder, x: Operand) -> Operand:
    """Moves the second dimension to the end."""
    return b.transpose(x, [0, *range(2, x.rank), 1])
