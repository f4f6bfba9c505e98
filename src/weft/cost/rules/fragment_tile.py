"""Tiles of a contraction on tensor cores: the tile of a thread block, and the fragments of its warps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd
from typing import Final

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.grid_time import FETCH_CYCLES, BlockWork, grid_cycles, traffic_cycles
from weft.cost.rules.shared_tile import GLOBAL_CYCLES, LEAST_BLOCKS, SHARED_CYCLES, plain_product, shared_tile_plans
from weft.support.dtypes import DType, bf16, f32
from weft.targets import Grid, Target
from weft.targets.instructions import (
    COPY_BYTES,
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
"""Warps of a block, each with different rows."""

ROWS: Final = (2, 1)
COLUMNS: Final = (8, 4, 2)
"""Accumulator fragments of a warp, along rows and columns."""

STEPS: Final = (2, 1, 4)
"""Fragment products along K per step of the K loop."""

WARP_GROUPS: Final = (2, 1, 3)
"""Warpgroups (four warps) of a block, each with 64 different rows."""

GROUP_FRAGMENTS: Final = (32, 24, 16, 8)
"""Accumulator fragments of a warpgroup, along columns."""

GROUP_STEPS: Final = SWIZZLED_BYTES // PRODUCT_BYTES
"""Fragment products along K that one row of swizzled shared memory provides."""

COPIES: Final = (4, 3, 5)
"""Stages of the software pipeline: parts of the factors in shared memory at a time."""

COPIES_ALONE: Final = (8, *COPIES)
"""Stages where each multiprocessor has one block at most, and no other hides its latency: of 1024 x 1024 x 1024 of bf16, 8
took 6.5 us, and 4 took 6.8; with 5 or 6, by which to divide takes longer, 7.4 (H200, 2026-11-26)."""

GROUP_CYCLES, AHEAD_CYCLES = 1 / 16, 7.0
"""The cycles of a multiply-add by a group of warps, beside one of float32, and of an element fetched ahead, where it takes
longer. On an H200 prototypes of 4096 x 4096 of bf16 reached 571 TFLOP/s in tiles of 128 x 256, 417 in those of 128 x 128, where
float32 reached 33, and cuBLAS 793 (2026-11-26)."""

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

GROUP_READ_CYCLES: Final = 2.0
"""The cycles of an element that a group reads from swizzled memory: of tiles as large, wide ones are faster. Of 1024 x 1024 of
bf16, those of 64 x 128 took 7.1 us, and of 128 x 64 8.5 us (H200, 2026-11-26)."""

SCATTERED_TIME: Final = 1.08
"""The time where results of 16 bits are stored by two, beside vectors of them: 201 us and 185 of 4096 x 4096, 1504 and 1431 of
8192 x 8192, 30.4 and 24.6 of 2048 x 2048, where cuBLAS takes 186, 1416 and 24.4 (H200, 2026-11-26, benchmarks/gpu/plans.py)."""

STAGED_PARTS: Final = (1, 2, 4)
"""Candidate numbers of parts of a tile's columns that are staged through shared memory one after another."""

PROCESSORS, LANES = 132, 128
"""The multiprocessors of an H100 or H200, each of which has memory for one such block, and the lanes of each."""

PARTS: Final = (2, 3, 4, 6, 8, 12, 16)
"""Candidate numbers of parts of the terms where multiprocessors would be idle. Of 128 rows and 768 columns of bf16, 24 blocks of
64 x 64 took 5.07 us for 768 terms, and 14.85 us for 3072 (H200, 2026-11-26): 0.27 us for each 64 terms, and 1.8 us besides."""

PATCH_PARTS: Final = (*PARTS, 9, 18, 24)
"""Candidate numbers of parts for terms that are 3 x 3 taps of some channels."""

ADDING_CYCLES: Final = 1300.0
"""Cycles of the kernel that adds partial sums, beside their traffic: of 128 x 768 it took 1.40 us for 8 parts, and 2.06 us for 16
(H200, 2026-11-26)."""

GROUPS: Final = (8, 4, 2, 1)
"""Candidate numbers of blocks along the rows that run before those of the next columns."""


ELEMENT_CYCLES, BLOCKS_AT_ONCE = 80.0, 3
"""The cycles that a thread waits for an element not fetched ahead, where a multiprocessor has so many blocks: products of bf16 of
128 x 768 x 768 by single warps took 100 us on an H200 (2026-11-26)."""

PLAIN_FETCHES: Final = 2.0
"""Elements that a thread of a plain tile fetches for each term; those that are no words one by one, as here."""


@dataclass(frozen=True)
class FragmentTile(Decision):
    """A block of *warps*, each with *rows* by *columns* accumulator fragments and *steps* products per fetch; all 0: no tile.

    *groups* is the number of blocks along the rows that run before those of the next columns (a swizzle of block indices):
    blocks that run at the same time share rows and columns in the second-level cache.

    With several *copies* (pipeline stages) of the operand tiles in swizzled shared memory, warpgroups multiply while copies
    for *ahead* later iterations are in flight. If *staged* is not 0, results go through shared memory in that many parts of
    the columns, so that threads store whole vectors.

    With several *parts* of the terms (split-K), a second kernel adds their sums; the columns may be *filled* up to whole tiles
    with zeros then, which that kernel does not read.
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
    parts: int = 1
    filled: bool = False


@dataclass(frozen=True)
class FragmentProduct:
    """*batch* products of *rows* by *columns* results, whose *terms* have *depth* along one axis, and the operands' types.

    Results take so many bytes where they are stored. Where one factor is *patches*, threads compute
    its elements as they fetch them.
    """

    rows: int
    columns: int
    batch: int
    depth: int
    terms: int
    factors: DType = bf16
    result_bytes: int = f32.bytes
    patches: bool = False

    @property
    def results(self) -> int:
        """The results of all products."""
        return self.batch * self.rows * self.columns

    def has_whole(self, tile: FragmentTile) -> bool:
        """Tells whether the sizes are multiples of the tile's."""
        high, wide, deep = _sizes(tile, self.factors)
        return self.rows % high == 0 and self.columns % wide == 0 and self.depth % deep == 0


def multiplies_together(factors: DType, target: Target) -> bool:
    """Tells whether threads of a target multiply matrices of a type together."""
    return any(_instructions(factors, target))


def _instructions(factors: DType, target: Target) -> tuple[bool, bool]:
    """Tells whether warps, and groups of warps, of a target multiply matrices of a type."""
    known = {i.name for i in intrinsics_of(target)}
    return FRAGMENT_INSTRUCTIONS.get(factors) in known, GROUP_INSTRUCTIONS.get(factors) in known


def fragment_tile_plans(p: FragmentProduct, target: Target) -> Iterator[Candidate[FragmentTile]]:
    """Yields tiles of whole fragments, and the alternative without tensor cores, with the cycles of `shared_tile_plans`."""
    plain = shared_tile_plans(plain_product(p.rows, p.columns, p.batch, p.terms), target)
    grid = target.grid or Grid()
    waits = PLAIN_FETCHES * ELEMENT_CYCLES * p.terms if p.factors.bytes < f32.bytes else 0.0
    yield Candidate(FragmentTile(), min([c.cycles for c in plain]) + waits * grid.multiprocessors * grid.lanes)
    of_warps, of_groups = _instructions(p.factors, target)
    if of_groups:
        yield from _group_plans(p, target)
    if not of_warps:
        return
    for warps in WARPS:
        for m in ROWS:
            for n in COLUMNS:
                for steps in STEPS:
                    yield from _warp_plans(FragmentTile(warps, m, n, steps), p, target)


def _warp_plans(tile: FragmentTile, given: FragmentProduct, target: Target) -> Iterator[Candidate[FragmentTile]]:
    """Yields a tile of single warps, and those that split the terms of a product with patches."""
    p, grid = _filled(given, tile), target.grid or Grid()
    if not p.has_whole(tile) or not _fits(tile, p, target):
        return
    tile = replace(tile, groups=_groups(p, tile), filled=p is not given)
    if p is given:
        yield Candidate(tile, _cycles(tile, p, grid))
    if p.patches:
        for parts, share, adding in _split(tile, p, target, PROCESSORS * BLOCKS_AT_ONCE):
            yield Candidate(replace(tile, parts=parts), _cycles(tile, share, grid) + adding)


def _group_plans(given: FragmentProduct, target: Target) -> Iterator[Candidate[FragmentTile]]:
    """Yields the tiles of warpgroups."""
    for groups in WARP_GROUPS:
        for n in GROUP_FRAGMENTS:
            tile = FragmentTile(WARPS_OF_GROUP * groups, 1, n, GROUP_STEPS)
            p = _filled(given, tile)
            for copies in COPIES_ALONE if _blocks(tile, p) <= PROCESSORS else COPIES:
                tile = replace(tile, copies=copies, ahead=copies - 2)
                if not p.has_whole(tile) or not _fits(tile, p, target):
                    continue
                own = replace(tile, groups=_groups(p, tile), filled=p is not given)
                if p is given:
                    yield from _whole_plans(own, p, target)
                for parts, share, adding in _split(own, p, target, PROCESSORS):
                    yield Candidate(
                        replace(own, parts=parts), _group_cycles(own, share, target.grid or Grid()) + adding
                    )


def _whole_plans(tile: FragmentTile, p: FragmentProduct, target: Target) -> Iterator[Candidate[FragmentTile]]:
    """Yields a tile of warpgroups that sums all terms, also with short results that go through shared memory."""
    cycles, parts = _group_cycles(tile, p, target.grid or Grid()), _parts(tile, p, target)
    if parts:
        yield Candidate(replace(tile, staged=parts), cycles)
    yield Candidate(tile, cycles * SCATTERED_TIME if p.result_bytes < f32.bytes else cycles)


def _filled(p: FragmentProduct, tile: FragmentTile) -> FragmentProduct:
    """Returns a product with patches whose columns are filled up to whole tiles; others as they are."""
    wide = _sizes(tile, p.factors)[1]
    return replace(p, columns=-(-p.columns // wide) * wide) if p.patches and p.columns % wide else p


def _blocks(tile: FragmentTile, p: FragmentProduct) -> int:
    """Returns the number of thread blocks of a tile that sums all terms."""
    high, wide, _ = _sizes(tile, p.factors)
    return p.results // (high * wide)


def _split(
    tile: FragmentTile, p: FragmentProduct, target: Target, most: int
) -> Iterator[tuple[int, FragmentProduct, float]]:
    """Yields numbers of parts (split-K) that make at most so many blocks, these as products, and the cycles of adding them."""
    lanes = 1.0 if target.grid is None else float(target.grid.lanes * target.grid.multiprocessors)
    for parts in [
        n for n in (PATCH_PARTS if p.patches else PARTS) if _blocks(tile, p) * n <= most and p.depth % n == 0
    ]:
        share = replace(p, batch=p.batch * parts, depth=p.depth // parts, terms=p.terms // parts)
        if share.has_whole(tile):
            adding = ADDING_CYCLES + traffic_cycles(p.results * (2 * parts + 1) * f32.bytes, target)
            yield parts, share, adding * lanes


def _parts(tile: FragmentTile, p: FragmentProduct, target: Target) -> int:
    """Returns in how few parts short results go through shared memory; 0 where they are long, or there is no room."""
    shared = target.scope("shared")
    most = shared.bytes if shared is not None and shared.bytes is not None else 0
    high, wide, _ = _sizes(tile, p.factors)
    vector = max(COPY_BYTES) // p.result_bytes
    for parts in STAGED_PARTS if p.result_bytes < f32.bytes else ():
        staged = high * (wide // parts + vector) * p.result_bytes
        is_shared = high * wide // parts % (tile.warps * FRAGMENT.threads * vector) == 0
        if is_shared and staged <= most and _fits(tile, p, target, staged):
            return parts
    return 0


def _groups(p: FragmentProduct, tile: FragmentTile) -> int:
    """Returns the number of blocks along the rows that run before those of the next columns: the first candidate that divides."""
    blocks = p.rows // _sizes(tile, p.factors)[0]
    return next(n for n in GROUPS if blocks % n == 0)


def _group_cycles(tile: FragmentTile, p: FragmentProduct, grid: Grid) -> float:
    """Returns the cycles of all threads, in waves of blocks of which the last may be partial."""
    high, wide, deep = _sizes(tile, p.factors)
    read = GROUP_READ_CYCLES * (1 / (WARPS_OF_GROUP * FRAGMENT.rows) + 1 / wide)
    if p.patches:
        shared, each = _operand_bytes(tile, p), (GROUP_CYCLES + read) * _wideness(p.factors) / LANES
        patches = _PatchTile(tile.warps * FRAGMENT.threads, shared, high, wide, deep, each, p.factors)
        return _patch_cycles(patches, _blocks(tile, p), p.terms, grid)
    rounds = -(-_blocks(tile, p) // PROCESSORS) * PROCESSORS
    fetched = AHEAD_CYCLES * (1 / high + 1 / wide)
    each = (max(GROUP_CYCLES, fetched) + read) * _wideness(p.factors)
    return rounds * high * wide * p.terms * each


@dataclass(frozen=True)
class _PatchTile:
    """A tile whose right factor is patches, which threads load, round and store: they wait for them in each step.

    Several blocks of a multiprocessor hide that from each other, up to what the second-level cache delivers. It is a
    block of *threads* with so many bytes of *shared* memory, whose steps have *high* rows, *wide* columns, *deep* terms.

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


def _patch_cycles(tile: _PatchTile, blocks: int, terms: int, grid: Grid) -> float:
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


def _wideness(factors: DType) -> float:
    """Returns the time of a product of a type beside one of 16 bits: each instruction takes as many bytes."""
    return factors.bytes / bf16.bytes


def _operand_bytes(tile: FragmentTile, p: FragmentProduct) -> int:
    """Returns the bytes of all copies of both operand tiles."""
    high, wide, deep = _sizes(tile, p.factors)
    return (high + wide) * deep * p.factors.bytes * tile.copies


def _sizes(tile: FragmentTile, factors: DType) -> tuple[int, int, int]:
    """Returns the rows and columns of a block's sums, and the terms of its parts of the factors."""
    return tile.warps * tile.rows * FRAGMENT.rows, tile.columns * FRAGMENT.columns, tile.steps * terms_of(factors)


def _fits(tile: FragmentTile, p: FragmentProduct, target: Target, staged: int = 0) -> bool:
    """Tells whether both operand tiles and the *staged* results fit shared memory, and divide evenly among the threads."""
    shared, threads = target.scope("shared" if tile.copies == 1 else "swizzled"), tile.warps * FRAGMENT.threads
    most = shared.bytes if shared is not None and shared.bytes is not None else 0
    high, wide, deep = _sizes(tile, p.factors)
    is_shared = high * deep % threads == 0 and wide * deep % threads == 0
    return (
        is_shared
        and _operand_bytes(tile, p) + staged <= most
        and target.grid is not None
        and threads <= target.grid.block
    )


def _cycles(tile: FragmentTile, p: FragmentProduct, grid: Grid) -> float:
    """Returns the cycles of all threads: products and the loops around them, fragments read, and elements fetched.

    Threads wait for the elements that they fetch, one after another.
    """
    high, wide, _ = _sizes(tile, p.factors)
    own = SHARED_CYCLES * (1 / (tile.rows * FRAGMENT.rows) + 1 / wide)
    fetched = GLOBAL_CYCLES * (1 / high + 1 / wide)
    idle = float(max(1.0, LEAST_BLOCKS / (p.results / (high * wide))) ** 0.5)
    waits = ELEMENT_CYCLES * p.terms * (high + wide) / (tile.warps * FRAGMENT.threads)
    rounds = max(1.0, p.results / (high * wide * BLOCKS_AT_ONCE * grid.multiprocessors))
    products = ((1 + 1 / (4 * tile.steps)) / grid.products + own) * _wideness(p.factors)
    busy = p.results * p.terms * (products + fetched) * idle
    return busy + waits * rounds * grid.multiprocessors * grid.lanes
