"""Tiles of a contraction in the registers of warps (tensor cores): what a block computes, and how its warps share it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.shared_tile import GLOBAL_CYCLES, LEAST_BLOCKS, SHARED_CYCLES, plain_product, shared_tile_plans
from weft.support.dtypes import DType, bf16
from weft.targets import Target
from weft.targets.instructions import (
    FRAGMENT,
    FRAGMENT_INSTRUCTIONS,
    GROUP_INSTRUCTIONS,
    PRODUCT_BYTES,
    SWIZZLED_BYTES,
    WARPS_OF_GROUP,
    intrinsics_of,
    terms_of,
)

WARPS: Final = (4, 2, 8, 1)
"""Warps of a block, each with rows of its own."""

ROWS: Final = (2, 1)
COLUMNS: Final = (8, 4, 2)
"""Fragments of sums that one warp keeps, along rows and columns."""

STEPS: Final = (2, 1, 4)
"""Products of a fragment between two fetches."""

WARP_GROUPS: Final = (2, 1, 3)
"""Groups of four warps of a block, each with 64 rows of its own."""

GROUP_FRAGMENTS: Final = (32, 24, 16, 8)
"""Fragments of sums along the columns that a group keeps."""

GROUP_STEPS: Final = SWIZZLED_BYTES // PRODUCT_BYTES
"""Products of a fragment that a row of swizzled memory is enough for."""

COPIES: Final = (4, 3, 5)
"""Parts of the factors that are in a block's memory at a time."""

GROUP_CYCLES, AHEAD_CYCLES = 1 / 16, 7.0
"""What a multiply-add by a group of warps takes, beside one of float32, and an element that is fetched ahead, where that takes
longer. On an H200 prototypes of 4096 x 4096 of bf16 reached 571 TFLOP/s in tiles of 128 x 256, 417 in those of 128 x 128, where
float32 reached 33, and cuBLAS 793 (2026-11-26)."""

PROCESSORS: Final = 132
"""The multiprocessors of an H100 or H200, each of which has memory for one such block."""

GROUPS: Final = (8, 4, 2, 1)
"""Blocks along the rows that run one after another, before those of the next columns."""

PRODUCT_CYCLES: Final = 1 / 16
"""What a multiply-add of a fragment takes, beside one of float32: NVIDIA gives 312 and 19.5 TFLOP/s for an A100, 990 and 67 for
an H100. Not measured here."""


@dataclass(frozen=True)
class FragmentTile(Decision):
    """A block of *warps*, each with *rows* by *columns* fragments of sums, fetches terms for *steps* products; all 0: none.

    Blocks run in *groups* of so many along the rows, then along the columns: those that run at a time read few rows and columns.
    With several *copies* of what is fetched, in swizzled memory, groups of warps multiply while it is fetched *ahead* for so many
    iterations. Where results are *staged*, they go through shared memory in so many parts of the columns, so that threads store
    whole vectors of them.
    """

    question = "the fragments of a block of warps"
    of_grids = True
    warps: int = 0
    rows: int = 0
    columns: int = 0
    steps: int = 0
    groups: int = 1
    copies: int = 1
    ahead: int = 0
    staged: int = 0


def fragment_tile_plans(
    rows: int, columns: int, batch: int, depth: int, terms: int, target: Target, factors: DType = bf16
) -> Iterator[Candidate[FragmentTile]]:
    """Yields tiles of whole fragments of *batch* products, whose *terms* have *depth* along one axis, and the choice of none.

    The cycles are those of `shared_tile_plans`.
    """
    yield Candidate(
        FragmentTile(), min([c.cycles for c in shared_tile_plans(plain_product(rows, columns, batch, terms), target)])
    )
    known = {i.name for i in intrinsics_of(target)}
    if GROUP_INSTRUCTIONS.get(factors) in known:
        yield from _group_plans(rows, columns, batch, depth, terms, target, factors)
    if FRAGMENT_INSTRUCTIONS.get(factors) not in known:
        return
    for warps in WARPS:
        for m in ROWS:
            for n in COLUMNS:
                for steps in STEPS:
                    tile = FragmentTile(warps, m, n, steps)
                    high, wide = _sizes(tile)
                    if rows % high or columns % wide or depth % (steps * FRAGMENT.depth):
                        continue
                    if not _fits(tile, target, factors):
                        continue
                    yield Candidate(
                        replace(tile, groups=_groups(rows // high)), _cycles(tile, rows * columns * batch, terms)
                    )


def _group_plans(
    rows: int, columns: int, batch: int, depth: int, terms: int, target: Target, factors: DType
) -> Iterator[Candidate[FragmentTile]]:
    """Yields the tiles of groups of warps."""
    for groups in WARP_GROUPS:
        for n in GROUP_FRAGMENTS:
            for copies in COPIES:
                tile = FragmentTile(WARPS_OF_GROUP * groups, 1, n, GROUP_STEPS, 1, copies, copies - 2)
                high, wide = _sizes(tile)
                if rows % high or columns % wide or depth % (GROUP_STEPS * terms_of(factors)):
                    continue
                if not _fits(tile, target, factors):
                    continue
                cycles = _group_cycles(high, wide, rows * columns * batch, terms) * factors.bytes / bf16.bytes
                yield Candidate(replace(tile, groups=_groups(rows // high)), cycles)


def _groups(blocks: int) -> int:
    """Returns how many blocks along the rows run one after another: as many as divide them, of a few."""
    return next(n for n in GROUPS if blocks % n == 0)


def _group_cycles(high: int, wide: int, results: int, terms: int) -> float:
    """Returns the cycles of all threads in rounds of blocks of so many rows and columns, the last of which may be few."""
    blocks = results // (high * wide)
    rounds = -(-blocks // PROCESSORS) * PROCESSORS
    return rounds * high * wide * terms * max(GROUP_CYCLES, AHEAD_CYCLES * (1 / high + 1 / wide))


def _sizes(tile: FragmentTile) -> tuple[int, int]:
    """Returns the rows and columns of a block's sums."""
    return tile.warps * tile.rows * FRAGMENT.rows, tile.columns * FRAGMENT.columns


def _fits(tile: FragmentTile, target: Target, factors: DType) -> bool:
    """Tells whether the parts of both factors fit shared memory, and are shared by all threads equally."""
    shared, threads = target.scope("shared" if tile.copies == 1 else "swizzled"), tile.warps * FRAGMENT.threads
    most = shared.bytes if shared is not None and shared.bytes is not None else 0
    high, wide, deep = (
        tile.warps * tile.rows * FRAGMENT.rows,
        tile.columns * FRAGMENT.columns,
        tile.steps * terms_of(factors),
    )
    is_shared = high * deep % threads == 0 and wide * deep % threads == 0
    return (
        is_shared
        and (high + wide) * deep * factors.bytes * tile.copies <= most
        and target.grid is not None
        and threads <= target.grid.block
    )


def _cycles(tile: FragmentTile, results: int, terms: int) -> float:
    """Returns the cycles of all threads: products and the loops around them, fragments read, and elements fetched."""
    high, wide = _sizes(tile)
    own = SHARED_CYCLES * (1 / (tile.rows * FRAGMENT.rows) + 1 / wide)
    fetched = GLOBAL_CYCLES * (1 / high + 1 / wide)
    idle = float(max(1.0, LEAST_BLOCKS / (results / (high * wide))) ** 0.5)
    return results * terms * (PRODUCT_CYCLES * (1 + 1 / (4 * tile.steps)) + own + fetched) * idle
