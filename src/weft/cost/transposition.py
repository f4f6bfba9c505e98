"""When strided loads are faster as loads of rows and shuffles than as gathers, and the order of tiles that are turned so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from weft.cost.plans.plan import Candidate, Decision
from weft.support.dtypes import DType
from weft.targets import Target

SHUFFLED_STRIDE: Final = 4
"""Vectors with a constant stride up to this are made of contiguous loads and shuffles; beyond it, they are gathered."""

LEAST_COLUMNS: Final = 1 / 4
"""The part of a tile's columns that must be used for its transposition to be faster than gathering them."""

_PARTS: Final = (1, 2, 4)
"""The parts of a vector that few enough shuffles bring to their places; see `Isa.shuffle_bytes`."""

OTHER_ORDER: Final = 1.5
"""The cost of another order than the best: 1.3 to 2.4 were measured (docs/design/0033)."""


@dataclass(frozen=True)
class TileOrder(Decision):
    """The tile after one: that next to it in the rows *read*, in the rows *written*, or of the *rest* of the axes."""

    question = "the order of turned tiles"
    inside: str


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


def tile_order_plans(read: int, written: int, target: Target) -> Iterator[Candidate[TileOrder]]:
    """Yields the orders for tiles whose rows are *read*, or *written*, so many bytes apart, by cost in the unit of the best.

    Rows whole pages apart compete for one set of the first level, and after some tiles for those of the second: they are best
    gone along, line after line, and most of all those written. Where both compete, lines of other sets go in between. Otherwise,
    rows on one page are gone along while those on other pages wait.
    """
    page = target.caches.page
    reads_compete, writes_compete = read > 0 and read % page == 0, written > 0 and written % page == 0
    along_read = not writes_compete and (reads_compete or read < page <= written)
    best = "rest" if reads_compete and writes_compete else "read" if along_read else "written"
    for order in ("written", "read", "rest"):
        yield Candidate(TileOrder(order), 1.0 if order == best else OTHER_ORDER)
