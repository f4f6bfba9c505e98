"""Ranges of indices whose ends are expressions, and the hull of two of them."""

from __future__ import annotations

from typing import TypeAlias

from weft.ir.affine.prove import prove
from weft.ir.bounds.bounds import Bounds
from weft.ir.expr.base import Expr

Ends: TypeAlias = tuple[Expr, Expr]
"""The first and the last index of a range."""


def hull(a: Ends | None, b: Ends | None, bounds: Bounds) -> Ends | None:
    """Returns the ends of the smallest range that holds both, if it is known which ends those are; None is unknown."""
    if a is None or b is None:
        return None
    low, high = smaller(a[0], b[0], bounds), smaller(b[1], a[1], bounds)
    if low is None or high is None:
        return None
    return low, (b[1] if high is a[1] else a[1])


def smaller(a: Expr, b: Expr, bounds: Bounds) -> Expr | None:
    """Returns the smaller of two indices; None where it is not known which one is smaller."""
    return a if a is b or prove(a <= b, bounds) else b if prove(b <= a, bounds) else None
