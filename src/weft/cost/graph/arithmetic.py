"""The time of multiply-adds that are bound by arithmetic alone."""

from __future__ import annotations

from weft.cost.demand import fma_cycles
from weft.targets import Target


def multiply_cycles(products: float, bits: int, target: Target) -> float:
    """Returns the cycles of *products* multiply-adds of elements of *bits* bits, in full vectors, on one core."""
    return fma_cycles(products / target.lanes(bits), target)


def filled_part(size: int, lanes: int) -> float:
    """Returns the part of the lanes that *size* elements fill of as many vectors as they take."""
    return size / (-(-size // lanes) * lanes)
