"""Tiles of an attention in one kernel on a grid: the rows that a block of threads has, and the keys that it takes at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.cost.rules.grid_time import LAUNCH_CYCLES
from weft.cost.rules.row_threads import FULL_DEVICE
from weft.cost.rules.shared_tile import BANKS
from weft.targets import Target
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

ROWS, KEYS = (1, 2, 4, 8), (1, 2, 4)
"""Rows, and keys of those taken at once, that one thread has."""

WARPS, FRAGMENTS = (4, 2, 8, 1), (8, 4)
"""Warps of a block that multiply in fragments, and fragments of keys that each takes at once."""

WARP_GROUPS, COPIES = (1, 2), 2
"""Groups of four warps of a block, and the blocks of keys and values in its memory."""

PRODUCT_CYCLES, GROUP_PRODUCT_CYCLES = 8.0, 2.0
"""What a product of fragments takes a warp, with the reads of its factors, and what it takes as a part of a group's."""

WORD_BYTES, NARROW_BYTES = 4, 2

VECTOR_WORDS = 4
"""Words side by side that a thread reads of shared memory at once, where its rows are whole vectors."""

MOST_FETCHES = 8
"""Elements, or vectors, that a thread fetches before it waits for the first."""

MOST_REGISTERS = 128
"""Scores and sums that a thread keeps in registers at most."""

MOST_OF_GROUPS = 160
"""Those of groups of warps, the halves of queries and weights included."""

WAVE_CYCLES = 4.0
"""What a warp's turn at the banks takes, beside a multiply-add of a warp: four of these are made at once."""

WARPS_ALONE = 2.0
"""Warps for each of a multiprocessor's schedulers below which operations wait for those before them."""

EXPONENTIAL_CYCLES = 15.0, 35.0
"""What a score takes beside its products where powers of two are an instruction, and where they are polynomials."""

FETCH_CYCLES = 3.0
"""What fetching an element takes a thread, with its address."""

STEP_CYCLES = 800.0
"""What a block waits at each step when there are no others beside it: for memory, and at three barriers."""

KERNELS_APART = 9
"""The kernels of an attention that is not one."""

SCORE_ACCESSES, WORD_CYCLES = 8, 1 / 512
"""How often these kernels read and write each score, and what a word takes that the device's threads move together."""


@dataclass(frozen=True)
class AttentionTile(Decision):
    """A block of *y* by *x* threads, each with *rows* rows, and *keys* keys of those taken at once; all 0: several kernels.

    With *warps*, it has so many of such threads, whose products are fragments (`FragmentTile`); with *copies* of keys and
    values in its memory, they are made by groups of four warps while others are fetched.
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

    The cycles are those until the last thread is done.
    """
    yield Candidate(WHOLE_SOFTMAX, _cycles_apart(sizes))
    shared, grid = target.scope("shared"), target.grid
    exponential = EXPONENTIAL_CYCLES["exp2" not in target.isa.native]
    room = shared.bytes if shared is not None and shared.bytes is not None else 0
    for y, x in SHAPES:
        for rows in ROWS:
            for keys in KEYS:
                tile = AttentionTile(y, x, rows, keys)
                own = rows * (keys + tile.columns_of(sizes.columns) + 3)
                fits = tile.shared_words(sizes.depth, sizes.columns) * WORD_BYTES <= room and own <= MOST_REGISTERS
                if fits and (grid is None or y * x <= grid.block):
                    yield Candidate(tile, _cycles(tile, sizes, exponential))
    known = {i.name for i in intrinsics_of(target)} if sizes.narrow else set()
    if not known.isdisjoint(FRAGMENT_INSTRUCTIONS.values()):
        yield from [t for t in _fragment_tiles(sizes, exponential) if t.decision.fragment_bytes(sizes) <= room]
    if not known.isdisjoint(REGISTER_GROUP_INSTRUCTIONS.values()):
        yield from _group_tiles(sizes, exponential)


def _fragment_tiles(sizes: AttentionSizes, exponential: float) -> Iterator[Candidate[AttentionTile]]:
    """Yields the tiles of whole fragments."""
    f = FRAGMENT
    if sizes.depth % f.depth or sizes.columns % f.columns:
        return
    for warps in WARPS:
        for fragments in FRAGMENTS:
            tile = AttentionTile(f.groups, f.quads, f.halves, fragments * f.pairs, warps)
            products = (sizes.depth + sizes.columns) * tile.width // (f.depth * f.columns)
            work = PRODUCT_CYCLES * products + tile.rows * tile.keys * exponential
            yield Candidate(tile, _all_steps(tile, sizes, work))


def _group_tiles(sizes: AttentionSizes, exponential: float) -> Iterator[Candidate[AttentionTile]]:
    """Yields the tiles of groups of warps."""
    f = FRAGMENT
    if sizes.depth % (SWIZZLED_BYTES // NARROW_BYTES) or sizes.columns not in GROUP_COLUMNS:
        return
    for groups in WARP_GROUPS:
        for width in GROUP_COLUMNS:
            tile = AttentionTile(f.groups, f.quads, f.halves, width // f.quads, groups * WARPS_OF_GROUP, COPIES)
            own = tile.rows * (tile.keys + sizes.columns // f.quads) + (tile.keys + sizes.depth // f.quads)
            if own <= MOST_OF_GROUPS:
                products = (sizes.depth + sizes.columns) * width // (f.depth * f.columns)
                work = GROUP_PRODUCT_CYCLES * products + tile.rows * tile.keys * exponential
                yield Candidate(tile, _all_steps(tile, sizes, work, fetch=0.0))


def join_attention_plans(sizes: AttentionSizes, target: Target) -> list[Candidate[JoinAttention]]:
    """Returns both choices for an attention, by the best tile that there is for it."""
    apart, *tiles = attention_tile_plans(sizes, target)
    joined = min([t.cycles for t in tiles], default=inf)
    return by_cost([Candidate(JoinAttention(join=False), apart.cycles), Candidate(JoinAttention(join=True), joined)])


def _cycles(t: AttentionTile, a: AttentionSizes, exponential: float) -> float:
    """Returns the cycles of a tile whose threads multiply for themselves."""
    own = t.columns_of(a.columns)
    side = max(n for n in (VECTOR_WORDS, 2, 1) if own % n == 0)
    steps, of_warp = a.depth / VECTOR_WORDS, min(t.x, BANKS)
    keys = t.keys * max(1.0, of_warp * VECTOR_WORDS / BANKS)
    values = VECTOR_WORDS * own / side * max(1.0, of_warp * side / BANKS)
    scores = t.rows * t.keys * (a.depth + exponential)
    products = max(scores + steps * (t.rows + t.keys), WAVE_CYCLES * steps * (t.rows + keys))
    sums = t.width * max(t.rows * own, WAVE_CYCLES * (t.rows + values) / VECTOR_WORDS)
    return _all_steps(t, a, products + sums)


def _all_steps(t: AttentionTile, a: AttentionSizes, work: float, fetch: float = FETCH_CYCLES) -> float:
    """Returns the cycles of all blocks whose threads have so much *work* in a step, beside what they fetch and exchange."""
    fetched = fetch * t.width * (a.depth + a.columns) / t.threads
    full = -(-a.rows // t.height) * a.batch * t.threads / FULL_DEVICE
    step = (work + fetched + t.rows * t.x) * max(WARPS_ALONE, full) + STEP_CYCLES
    return step * -(-a.keys // t.width)


def _cycles_apart(a: AttentionSizes) -> float:
    """Returns the cycles of an attention in several kernels, which write and read the scores."""
    scores = float(a.rows * a.keys * a.batch)
    products = 2 * scores * (a.depth + a.columns) / FULL_DEVICE
    return KERNELS_APART * LAUNCH_CYCLES + products + scores * SCORE_ACCESSES * WORD_CYCLES
