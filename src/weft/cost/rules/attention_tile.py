"""Tiles of an attention in one kernel on a grid: the rows that a block of threads has, and the keys that it takes at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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

SHAPES = ((16, 16), (8, 16), (16, 8), (8, 8), (8, 32), (4, 16), (4, 32), (2, 32))
"""Threads of a block along rows, and along keys and columns."""

ROWS, KEYS = (1, 2, 4, 8), (1, 2, 4, 8)
"""Rows, and keys of those taken at once, that one thread has."""

WARPS, FRAGMENTS = (4, 2, 8, 1), (8, 4)
"""Warps of a block that multiply in fragments, and fragments of keys that each takes at once."""

COPIES = 2
"""The blocks of keys and values in the memory of a group of warps. Blocks of two groups took a quarter longer on an H200."""

PRODUCT_CYCLES = 8.0
"""What a product of fragments takes a warp, with the reads of its factors."""

WORD_BYTES, NARROW_BYTES = 4, 2

VECTOR_WORDS = 4
"""Words side by side that a thread reads of shared memory at once, where its rows are whole vectors."""

MOST_FETCHES = 8
"""Elements, or vectors, that a thread fetches before it waits for the first."""

MOST_REGISTERS = 160
"""Scores and sums that a thread keeps in registers at most."""

EXPONENTIAL_CYCLES = 8.0, 30.0
"""What a score takes beside its products where powers of two are an instruction, and where they are polynomials."""

ELEMENT_CYCLES = 3.0
"""What fetching an element takes a thread, with its address."""

WAIT_CYCLES = 500.0
"""What a thread waits for what it fetches, beside the first of a step (`grid_time.FETCH_CYCLES`)."""

STEP_CYCLES = 300.0
"""What the threads of a block wait for one another at a step."""

TENSOR_PRODUCTS = 2048.0
"""Multiply-adds that the tensor instructions of a multiprocessor make in a cycle: what NVIDIA gives for an H100."""

KERNELS_APART = 9
"""The kernels of an attention that is not one."""

SCORE_ACCESSES, PRODUCTS_APART = 8, 1.5
"""How often these kernels read and write each score, and the cycles of a multiply-add of their products."""


@dataclass(frozen=True)
class AttentionTile(Decision):
    """A block of *y* by *x* threads, each with *rows* rows, and *keys* keys of those taken at once; all 0: several kernels.

    With *warps*, it has so many of such threads, whose products are fragments (`FragmentTile`). With *copies* of keys and values,
    these are in memory that a launch asks for, several are fetched ahead, and warps multiply in groups of four.
    """

    question = "the tile of an attention"
    of_grids = True
    y: int
    x: int
    rows: int
    keys: int
    warps: int = 0
    copies: int = 0

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
        """Keys that a block takes at once."""
        return self.x * self.keys

    @property
    def weight_stride(self) -> int:
        """The words from a row of weights to the next: the rows that a warp writes are in banks of their own."""
        return self.width if self.x >= BANKS else -(-(self.width - self.x) // BANKS) * BANKS + self.x

    def columns_of(self, columns: int) -> int:
        """Returns how many of so many columns a thread has."""
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
        """Returns the bytes of memory that a launch asks for, for a block of groups of warps."""
        return self.copies * self.width * (sizes.depth + sizes.columns) * NARROW_BYTES

    def group_registers(self, sizes: AttentionSizes) -> int:
        """Returns the scores, sums, weights and queries that a thread of a warp has in registers."""
        return self.rows * (self.keys + sizes.columns // self.x) + self.keys + sizes.depth // self.x


WHOLE_SOFTMAX = AttentionTile(0, 0, 0, 0)


@dataclass(frozen=True)
class JoinAttention(Decision):
    """Whether both products of an attention, and the softmax between them, are one kernel."""

    question = "joining an attention in one kernel"
    of_grids = True
    join: bool


@dataclass(frozen=True)
class AttentionSizes:
    """An attention of so many *rows* of queries to so many *keys*, in each of a *batch*; *depth* and *columns* are theirs.

    Factors that are *narrow* are elements of 16 bits, which fragments may multiply.
    """

    batch: int
    rows: int
    keys: int
    depth: int
    columns: int
    narrow: bool = False


def row_stride(length: int) -> int:
    """Returns the words from a row to the next so that neighbours, read in vectors, begin in different banks."""
    return (length // VECTOR_WORDS | 1) * VECTOR_WORDS if length % VECTOR_WORDS == 0 else length | 1


def attention_tile_plans(sizes: AttentionSizes, target: Target) -> Iterator[Candidate[AttentionTile]]:
    """Yields the choice of several kernels, and the tiles that a block of threads has room for.

    The cycles are those until the last thread is done. Only groups of warps use memory that a launch asks for: a plan that is
    written out may give it to other threads, but none of these has been timed.
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
    if not known.isdisjoint(FRAGMENT_INSTRUCTIONS.values()):
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
    if blocks_at_once(work, grid):
        yield Candidate(tile, grid_cycles(-(-sizes.rows // tile.height) * sizes.batch, work, grid))


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
    """Yields the tiles of groups of warps: tensor instructions are made while other warps compute."""
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
    """Returns the instructions of a thread at a step beside products."""
    return t.rows * (t.keys * exponential + t.columns_of(a.columns) + t.x)


def _in_steps(t: AttentionTile, a: AttentionSizes, own: float, busy: float, size: int, grid: Grid) -> float:
    """Returns the cycles of all blocks, given a thread's instructions at a step, and the cycles of what else works for a warp."""
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
    """Returns how often the threads of a block wait for what they fetch at a step.

    Where not all have a key, each fetch is in a branch of its own, and the next one begins when it is there.
    """
    at_once = MOST_FETCHES if a.keys % t.width == 0 else 1
    lanes = [1 if t.warps or length % VECTOR_WORDS else VECTOR_WORDS for length in (a.depth, a.columns)]
    lengths = zip((a.depth, a.columns), lanes, strict=True)
    return sum([-(-t.width * length // (t.threads * lane * at_once)) for length, lane in lengths])


def _work(t: AttentionTile, a: AttentionSizes, exponential: float, size: int, grid: Grid) -> BlockWork:
    """Returns the work of a block whose threads multiply for themselves; a word of shared memory for each is a cycle."""
    own, fetched = t.columns_of(a.columns), ELEMENT_CYCLES * t.width * (a.depth + a.columns) / t.threads
    words = a.depth * (t.rows + t.keys) + t.width * (t.rows + own)
    products = t.rows * (t.keys * a.depth + own * t.width)
    return _block_work(t, a, products + words / VECTOR_WORDS + _softmax(t, a, exponential) + fetched, words, size, grid)


def join_attention_plans(sizes: AttentionSizes, target: Target) -> list[Candidate[JoinAttention]]:
    """Returns both choices for an attention, by the best tile that there is for it."""
    apart, *tiles = attention_tile_plans(sizes, target)
    joined = min([t.cycles for t in tiles], default=inf)
    return by_cost([Candidate(JoinAttention(join=False), apart.cycles), Candidate(JoinAttention(join=True), joined)])


def _cycles_apart(a: AttentionSizes, target: Target) -> float:
    """Returns the cycles of an attention in several kernels, which write and read the scores."""
    grid, scores = target.grid or Grid(), float(a.rows * a.keys * a.batch)
    products = PRODUCTS_APART * scores * (a.depth + a.columns) / (grid.lanes * grid.multiprocessors)
    kernels = KERNELS_APART * (LAUNCH_CYCLES + 2 * FETCH_CYCLES)
    return kernels + products + traffic_cycles(scores * SCORE_ACCESSES * WORD_BYTES, target)
