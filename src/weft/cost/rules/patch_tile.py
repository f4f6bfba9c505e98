"""The time of tiles whose right factor is patches of an image, which threads load, round and store to shared memory.

Threads wait for what they load in each step, since they store it before the next barrier. Several blocks of a multiprocessor
hide that from each other, up to what the second-level cache delivers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Final

from weft.cost.rules.grid_time import FETCH_CYCLES, BlockWork, grid_cycles
from weft.support.dtypes import DType, f32
from weft.targets import Grid

PATCH_CYCLES, PLACE_CYCLES, PATCH_WAIT = 2.0, 1850.0, 2000.0
"""The cycles of a step of a block alone: for each element of a patch that a thread loads, selects, rounds and stores; for each
place that has addresses and conditions of its own; and besides. Fitted, beside the second-level cache's time, to an H200
(2026-11-27): a step took 2.3 us where a thread had 32 elements (C9 of 32 images: 82 us, in tiles of 128 x 128), 2.5 where it had
64 (C6: 44 us, 128 x 256), and 3.4 where it had 128, of two places (C2: 93 us, 64 x 256)."""

ELEMENT_INSTRUCTIONS, STEP_INSTRUCTIONS = 7.0, 60.0
"""Instructions of a thread for an element of a patch, and for a step besides: of 280 in a step of C9 for sm_90, 32 are loads."""

BATCHED_FETCHES: Final = 32
"""Elements that a thread loads before it stores the first of them, each in a register meanwhile. Beside 128 sums and 64 loads
NVRTC spills (C6 for sm_90); left to itself it has about 8 loads under way."""

ADDRESSES: Final = 8 + BATCHED_FETCHES
"""Registers of a thread beside its sums, and those reserved: C2's kernel for sm_90 takes 134, of which 64 are sums."""


@dataclass(frozen=True)
class PatchTile:
    """A block of *threads* with so many bytes of *shared* memory, whose steps have *high* rows, *wide* columns, *deep* terms.

    A multiply-add takes it *product_cycles* of a multiprocessor; the left factor's type is *factors*.
    """

    threads: int
    shared: int
    high: int
    wide: int
    deep: int
    product_cycles: float
    factors: DType

    @property
    def step(self) -> float:
        """The cycles of a step of a block that has a multiprocessor to itself."""
        places, elements = self.wide // gcd(self.wide, self.threads), self.wide * self.deep / self.threads
        return PATCH_WAIT + PLACE_CYCLES * places + PATCH_CYCLES * elements


def patch_cycles(tile: PatchTile, blocks: int, terms: int, grid: Grid) -> float:
    """Returns the cycles of all lanes for so many *blocks*, each of which sums so many *terms*."""
    steps, elements = terms // tile.deep, tile.wide * tile.deep
    warps = tile.threads / grid.warp
    work = BlockWork(
        tile.threads,
        tile.shared,
        tile.high * tile.wide // tile.threads + ADDRESSES,
        steps * (ELEMENT_INSTRUCTIONS * elements / grid.warp + STEP_INSTRUCTIONS * warps),
        steps * tile.high * elements * tile.product_cycles,
        steps * (elements * f32.bytes + tile.high * tile.deep * tile.factors.bytes),
        steps,
        tile.step - FETCH_CYCLES,
    )
    return grid_cycles(blocks, work, grid) * grid.lanes * grid.multiprocessors
