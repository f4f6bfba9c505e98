"""Sizes for cost estimates: a symbolic extent counts as a guess."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Const, Expr
from weft.loop import Axis

FALLBACK_SIZE = 64
"""The number of iterations that a symbolic extent is taken to stand for."""


def size_of(e: Expr) -> int:
    """Returns a constant extent, or a guess for a symbolic one."""
    return int(e.value) if isinstance(e, Const) else FALLBACK_SIZE


def elements(axes: Sequence[Axis]) -> int:
    """Returns the number of instances along *axes*."""
    total = 1
    for a in axes:
        total *= size_of(a.extent)
    return total
