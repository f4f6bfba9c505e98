"""Tiles of fused attention on a grid (FlashAttention): the query rows of a thread block, and its keys per step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.cost.rules.grid_time import (
    FETCH_CYCLES,
    LAUNCH_CYCLES,
    BlockWork,
    blocks_at_once,
    grid_cycles,
    traffic_cycles,
)
from weft.cost.rules.shared_tile import BANKS
from weft.support.dtypes import bf16, f16
from weft.targets import Grid, Target
from weft.targets.instructions import (
    FRAGMENT,
    FRAGMENT_INSTRUCTIONS,
    GROUP_COLUMNS,
    REGISTER_GROUP_INSTRUCTIONS,
    SWIZZLED_BYTES,
    WARPS_OF_GROUP,
    intrinsics_of,
)

WARP_PRODUCTS = frozenset([FRAGMENT_INSTRUCTIONS[t] for t in (f16, bf16)])
"""The products that tiles of single warps need: which of these types the factors have is not told."""

SHAPES = ((16, 16), (8, 16), (16, 8), (8, 8), (8, 32), (4, 16), (4, 32), (2, 32))
"""The shapes of a thread block: threads along rows, and along keys and columns."""

ROWS, KEYS = (1, 2, 4, 8), (1, 2, 4, 8)
"""Rows per thread, and keys per thread and step."""

WARPS, FRAGMENTS = (4, 2, 8, 1), (8, 4)
"""Warps of a block with fragments (tensor cores), and fragments of keys per step."""

COPIES = 2
"""Stages of the software pipeline of a warpgroup: tiles of keys and values in shared memory. Two warpgroups in a block took a
quarter longer on an H200."""

PRODUCT_CYCLES = 8.0
"""Cycles of a warp for one fragment product (`mma`), loads of its operands included."""

SPLIT_STEPS = (1, 2, 4, 8, 16)
"""Steps of a split of the keys, where splits give no more blocks than the device has multiprocessors."""

MERGE_THREADS = 64
"""Threads of a block that merges the splits, one for each column."""

MERGE_CYCLES = 3000.0
"""Cycles of the kernel that merges the splits, beside its launch: two loads, one after the other, and arithmetic."""

WORD_BYTES, NARROW_BYTES = 4, 2

VECTOR_WORDS = 4
"""The words of a vector load from shared memory, used where rows are whole vectors."""

MOST_FETCHES = 8
"""Loads from global memory, of elements or vectors, that a thread has in flight at once."""

MOST_REGISTERS = 160
"""The largest number of scores and accumulators that a thread keeps in registers."""

EXPONENTIAL_CYCLES = 8.0, 30.0
"""Cycles of the softmax for each score, where `exp2` is an instruction, and where it is a polynomial."""

ELEMENT_CYCLES = 3.0
"""Cycles of a thread to fetch an element, address arithmetic included."""

WAIT_CYCLES = 500.0
"""Cycles that a thread waits for each batch of loads of a step after the first, which costs `grid_time.FETCH_CYCLES`."""

STEP_CYCLES = 300.0
"""Cycles that the threads of a block wait at the barriers of a step."""

TENSOR_PRODUCTS = 2048.0
"""Multiply-adds per cycle of a multiprocessor's tensor cores, by NVIDIA's figures for an H100."""

KERNELS_APART = 9
"""The number of kernels of an attention that is not fused."""

SCORE_ACCESSES, PRODUCTS_APART = 8, 1.5
"""For unfused attention: the reads and writes of each score, and the cycles of a multiply-add."""


@dataclass(frozen=True)
class AttentionTile(Decision):
    """A block of *y* by *x* threads, each with *rows* rows and *keys* keys per step; all 0: attention is not fused.

    If *warps* is not 0, the block has *warps* of these thread tiles, each a warp that multiplies in fragments
    (`FragmentTile`). If *copies* is not 0, that many tiles of keys and values are in dynamic shared memory, fetched ahead if
    there are several; warps then multiply as warpgroups. The keys are split over *splits* blocks, and merged by a second kernel.
    """

    question = "the tile of an attention"
    of_grids = True
    y: int
    x: int
    rows: int
    keys: int
    warps: int = 0
    copies: int = 0
    splits: int = 1

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return max(1, self.warps) * self.y * self.x

    @property
    def height(self) -> int:
        """Rows of a block."""
        return max(1, self.warps) * self.y * self.rows

    @property
    def width(self) -> int:
        """Keys of a block per step."""
        return self.x * self.keys

    @property
    def weight_stride(self) -> int:
        """The row stride of the softmax weights in shared memory, in words, padded against bank conflicts."""
        return self.width if self.x >= BANKS else -(-(self.width - self.x) // BANKS) * BANKS + self.x

    def columns_of(self, columns: int) -> int:
        """Returns the number of columns per thread."""
        return -(-columns // self.x)

    def shared_words(self, depth: int, columns: int) -> int:
        """Returns the words of shared memory that a block takes."""
        factors = (self.height + self.width) * row_stride(depth) + self.width * self.x * self.columns_of(columns)
        return factors + self.height * (self.weight_stride + self.x)

    def fragment_bytes(self, sizes: AttentionSizes) -> int:
        """Returns the bytes of shared memory that a block of warps takes, each row with a gap to the next."""
        gap = FRAGMENT.quads
        rows = (self.height + self.width) * (sizes.depth + gap) + (self.height + sizes.columns) * (self.width + gap)
        return rows * NARROW_BYTES + self.height * self.x * WORD_BYTES

    def group_bytes(self, sizes: AttentionSizes) -> int:
        """Returns the bytes of dynamic shared memory of a block of warpgroups."""
        return self.copies * self.width * (sizes.depth + sizes.columns) * NARROW_BYTES

    def group_registers(self, sizes: AttentionSizes) -> int:
        """Returns the registers of a warpgroup's thread for scores, accumulators, weights and queries."""
        return self.rows * (self.keys + sizes.columns // self.x) + self.keys + sizes.depth // self.x


WHOLE_SOFTMAX = AttentionTile(0, 0, 0, 0)


@dataclass(frozen=True)
class JoinAttention(Decision):
    """Whether both matrix products of an attention, and the softmax between them, are fused into one kernel."""

    question = "joining an attention in one kernel"
    of_grids = True
    join: bool


@dataclass(frozen=True)
class AttentionSizes:
    """The sizes of an attention: per batch, *rows* queries and *keys* keys of *depth* elements, values of *columns* elements.

    *narrow* says that the elements have 16 bits, so that fragments can multiply them.
    """

    batch: int
    rows: int
    keys: int
    depth: int
    columns: int
    narrow: bool = False


def row_stride(length: int) -> int:
    """Returns a row stride, in words, that keeps vector loads of neighbouring rows free of bank conflicts."""
    return (length // VECTOR_WORDS | 1) * VECTOR_WORDS if length % VECTOR_WORDS == 0 else length | 1


def attention_tile_plans(sizes: AttentionSizes, target: Target) -> Iterator[Candidate[AttentionTile]]:
    """Yields the unfused alternative, and the tiles that fit a thread block, with the cycles until the last thread is done.

    Only tiles of warpgroups use dynamic shared memory. A written-out plan may give it to others, none of which has been timed.
    """
    yield Candidate(WHOLE_SOFTMAX, _cycles_apart(sizes, target))
    grid = target.grid or Grid()
    exponential = EXPONENTIAL_CYCLES["exp2_flushed" not in target.isa.native]
    room, most = [_bytes_of(target, name) for name in ("shared", "dynamic")]
    for y, x in SHAPES:
        for rows in ROWS:
            for keys in KEYS:
                tile = AttentionTile(y, x, rows, keys)
                own = rows * (keys + tile.columns_of(sizes.columns) + 3)
                size = tile.shared_words(sizes.depth, sizes.columns) * WORD_BYTES
                if own <= MOST_REGISTERS and y * x <= grid.block and size <= room:
                    yield from _thread_tile(tile, sizes, exponential, size, grid)
    known = {i.name for i in intrinsics_of(target)} if sizes.narrow else set()
    if known >= WARP_PRODUCTS:
        yield from [t for t in _fragment_tiles(sizes, exponential, grid) if t.decision.fragment_bytes(sizes) <= room]
    if not known.isdisjoint(REGISTER_GROUP_INSTRUCTIONS.values()):
        yield from [t for t in _group_tiles(sizes, exponential, grid) if t.decision.group_bytes(sizes) <= most]


def _bytes_of(target: Target, name: str) -> int:
    scope = target.scope(name)
    return 0 if scope is None or scope.bytes is None else scope.bytes


def _thread_tile(
    tile: AttentionTile, sizes: AttentionSizes, exponential: float, size: int, grid: Grid
) -> Iterator[Candidate[AttentionTile]]:
    """Yields a tile whose threads multiply for themselves, if a multiprocessor has room for a block of it."""
    work = _work(tile, sizes, exponential, size, grid)
    if not blocks_at_once(work, grid):
        return
    blocks = -(-sizes.rows // tile.height) * sizes.batch
    yield Candidate(tile, grid_cycles(blocks, work, grid))
    steps = -(-sizes.keys // tile.width)
    for of_split in [n for n in SPLIT_STEPS if n < steps]:
        splits, part = -(-steps // of_split), replace(sizes, keys=of_split * tile.width)
        if splits * blocks <= grid.multiprocessors:
            cycles = grid_cycles(blocks * splits, _work(tile, part, exponential, size, grid), grid)
            yield Candidate(replace(tile, splits=splits), cycles + LAUNCH_CYCLES + MERGE_CYCLES)


def _fragment_tiles(sizes: AttentionSizes, exponential: float, grid: Grid) -> Iterator[Candidate[AttentionTile]]:
    """Yields the tiles of whole fragments."""
    f = FRAGMENT
    if sizes.depth % f.depth or sizes.columns % f.columns:
        return
    for warps in WARPS:
        for fragments in FRAGMENTS:
            tile = AttentionTile(f.groups, f.quads, f.halves, fragments * f.pairs, warps)
            products = (sizes.depth + sizes.columns) * tile.width // (f.depth * f.columns)
            fetched = ELEMENT_CYCLES * tile.width * (sizes.depth + sizes.columns) / tile.threads
            own = PRODUCT_CYCLES * products + _softmax(tile, sizes, exponential) + fetched
            words = products * (f.pairs + 1) + tile.rows * tile.keys
            yield Candidate(tile, _in_steps(tile, sizes, own, words, tile.fragment_bytes(sizes), grid))


def _group_tiles(sizes: AttentionSizes, exponential: float, grid: Grid) -> Iterator[Candidate[AttentionTile]]:
    """Yields the tiles of warpgroups, whose tensor instructions overlap with the arithmetic of other warps."""
    f = FRAGMENT
    if sizes.depth % (SWIZZLED_BYTES // NARROW_BYTES) or sizes.columns not in GROUP_COLUMNS:
        return
    for width in GROUP_COLUMNS:
        tile = AttentionTile(f.groups, f.quads, f.halves, width // f.quads, WARPS_OF_GROUP, COPIES)
        if tile.group_registers(sizes) <= MOST_REGISTERS:
            own = _softmax(tile, sizes, exponential)
            tensor = tile.height * width * (sizes.depth + sizes.columns) / TENSOR_PRODUCTS
            yield Candidate(tile, _in_steps(tile, sizes, own, tensor / tile.warps, tile.group_bytes(sizes), grid))


def _softmax(t: AttentionTile, a: AttentionSizes, exponential: float) -> float:
    """Returns the instructions of a thread per step for the online softmax."""
    return t.rows * (t.keys * exponential + t.columns_of(a.columns) + t.x)


def _in_steps(t: AttentionTile, a: AttentionSizes, own: float, busy: float, size: int, grid: Grid) -> float:
    """Returns the cycles of all blocks; per step, a thread issues *own* instructions, and another unit is *busy* for its warp."""
    work = _block_work(t, a, own, busy, size, grid)
    return grid_cycles(-(-a.rows // t.height) * a.batch, work, grid) if blocks_at_once(work, grid) else inf


def _block_work(t: AttentionTile, a: AttentionSizes, own: float, busy: float, size: int, grid: Grid) -> BlockWork:
    steps, warps = -(-a.keys // t.width), -(-t.threads // grid.warp)
    alone = max(1.0, warps * grid.warp / grid.lanes) * own + busy * warps + STEP_CYCLES
    is_ahead = t.copies > 1
    element = NARROW_BYTES if t.warps else WORD_BYTES
    return BlockWork(
        threads=t.threads,
        shared=size,
        registers=t.group_registers(a) if t.warps else t.rows * (t.keys + t.columns_of(a.columns) + 3),
        instructions=steps * warps * own,
        shared_cycles=steps * warps * busy,
        fetched=element * ((t.height + steps * t.width) * a.depth + steps * t.width * a.columns),
        fetches=1 if is_ahead else steps,
        step=alone * steps if is_ahead else alone + WAIT_CYCLES * (_waits(t, a) - 1),
    )


def _waits(t: AttentionTile, a: AttentionSizes) -> int:
    """Returns how often a thread waits for loads from global memory per step.

    If keys do not fill the tile, each element is loaded in a branch, and is waited for before the next load is issued; vectors
    are loaded to registers before they are stored.
    """
    lanes = [1 if t.warps or length % VECTOR_WORDS else VECTOR_WORDS for length in (a.depth, a.columns)]
    at_once = [lane * (MOST_FETCHES if lane > 1 or a.keys % t.width == 0 else 1) for lane in lanes]
    return sum([-(-t.width * n // (t.threads * m)) for n, m in zip((a.depth, a.columns), at_once, strict=True)])


def _work(t: AttentionTile, a: AttentionSizes, exponential: float, size: int, grid: Grid) -> BlockWork:
    """Returns the work of a block without tensor cores; a load of a word from shared memory takes a cycle of a warp."""
    own, fetched = t.columns_of(a.columns), ELEMENT_CYCLES * t.width * (a.depth + a.columns) / t.threads
    words = a.depth * (t.rows + t.keys) + t.width * (t.rows + own)
    products = t.rows * (t.keys * a.depth + own * t.width)
    return _block_work(t, a, products + words / VECTOR_WORDS + _softmax(t, a, exponential) + fetched, words, size, grid)


def join_attention_plans(sizes: AttentionSizes, target: Target) -> list[Candidate[JoinAttention]]:
    """Returns the unfused and the fused alternative, the latter with the cost of its best tile."""
    apart, *tiles = attention_tile_plans(sizes, target)
    joined = min([t.cycles for t in tiles], default=inf)
    return by_cost([Candidate(JoinAttention(join=False), apart.cycles), Candidate(JoinAttention(join=True), joined)])


def _cycles_apart(a: AttentionSizes, target: Target) -> float:
    """Returns the cycles of an unfused attention, whose kernels write and read the scores in global memory."""
    grid, scores = target.grid or Grid(), float(a.rows * a.keys * a.batch)
    products = PRODUCTS_APART * scores * (a.depth + a.columns) / (grid.lanes * grid.multiprocessors)
    kernels = KERNELS_APART * (LAUNCH_CYCLES + 2 * FETCH_CYCLES)
    return kernels + products + traffic_cycles(scores * SCORE_ACCESSES * WORD_BYTES, target)
