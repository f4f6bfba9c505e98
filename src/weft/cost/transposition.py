"""When strided loads are faster as loads of rows and shuffles than as gathers, element by element."""

from __future__ import annotations

from typing import Final

from weft.support.dtypes import DType
from weft.targets import Target

SHUFFLED_STRIDE: Final = 4
"""Vectors with a constant stride up to this are made of contiguous loads and shuffles; beyond it, they are gathered."""

LEAST_COLUMNS: Final = 1 / 4
"""The part of a tile's columns that must be used for its transposition to be faster than gathering them."""

_PARTS: Final = (1, 2, 4)
"""The parts of a vector that few enough shuffles bring to their places; see `Isa.shuffle_bytes`."""


def is_gathered(stride: int | None) -> bool:
    """Tells whether lanes so far apart, None for a distance that is not constant, are loaded one by one."""
    return stride is None or not -1 <= stride <= SHUFFLED_STRIDE


def is_transposed(dtype: DType, columns: int, target: Target) -> bool:
    """Tells whether so many neighbouring *columns*, vectors of *dtype*, are transposed rather than gathered.

    A tile is square: it has as many rows as a vector has lanes, and as many columns. Where fewer are wanted, rows are read in
    part, which takes masks.
    """
    lanes, size = dtype.lanes, dtype.lanes * dtype.element.bytes
    if dtype.is_bool or lanes & (lanes - 1) or size * 8 > target.isa.vector_bits:
        return False
    if size % target.isa.shuffle_bytes or size // target.isa.shuffle_bytes not in _PARTS:
        return False
    return columns == lanes or (target.isa.masked_memory and LEAST_COLUMNS * lanes <= columns < lanes)
