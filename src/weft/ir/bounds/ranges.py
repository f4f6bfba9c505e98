"""Intervals of expressions of which only some variables move."""

from __future__ import annotations

from collections.abc import Mapping

from weft.ir.bounds.bounds import Bounds
from weft.ir.bounds.interval import Interval
from weft.ir.expr.base import Expr, Var


class RangesOrZero(Bounds):
    """An environment in which some variables have constant ranges; all other variables, and all loaded values, count as 0.

    It estimates how far an index moves, for cost models; it is not sound for proofs.
    """

    __slots__ = ("moving",)

    def __init__(self, moving: Mapping[Var, tuple[int, int]]) -> None:
        super().__init__()
        self.moving = moving

    def ends_of(self, e: Expr) -> tuple[int, int]:
        """Returns the least and the greatest value of *e*; an end that is not known is 0."""
        found = self.of(e)
        return found.lo or 0, found.hi or 0

    def _leaf(self, e: Expr) -> Interval:
        return Interval(*self.moving.get(e, (0, 0))) if isinstance(e, Var) else Interval(0, 0)
