"""The threads that share a row of fused reductions and elementwise blocks (softmax, normalization), or a kernel for each.

The figures are of an H200 (2026-11-26, benchmarks/gpu/gpu.py): a launch in a graph takes 2 us, memory moves 4.2 TB/s, and 132
multiprocessors hold 2048 threads each, half as many where each has 64 registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Final

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.grid_time import LAUNCH_CYCLES
from weft.targets import Grid, Target

FULL_DEVICE: Final = 132 * 1024
"""Threads that occupy the whole device; fewer leave multiprocessors idle."""

FULL_BLOCKS: Final = 4 * 132
"""Blocks that give each multiprocessor several."""

MEMORY_CYCLES: Final = 600.0
"""The latency of global memory."""

NEAR_CYCLES: Final = 250.0
"""The latency of an access to recently used data (cache hit)."""

LOADS_AHEAD: Final = 4
"""Loads of a loop that are in flight together."""

UNROLLED_TERMS: Final = 32
"""The most terms of a reduction whose loop is unrolled, so that all of its loads are in flight together."""

WAIT_CYCLES: Final = 40.0
"""Cycles of one step of a reduction across threads: an exchange through shared memory, and a barrier."""

MEMORY_WORDS: Final = 600.0
"""Words per cycle that the device's memory transfers, where threads access vectors."""

SCALAR_PART: Final = 0.8
"""The fraction of the vectors' rate where threads access single elements, of any size."""

WORD_BITS: Final = 32

APART_CYCLES: Final = 8.0
"""The cost factor of uncoalesced loads: neighbouring threads read different rows, and use one word of each sector."""

MOST_HELD: Final = 64
"""The largest number of words of a row that a thread keeps in registers."""

MANY_HELD: Final = 32
"""The number of words in registers above which occupancy drops; half as many where inputs that all rows share take others.
Normalization of 4096 x 4096 of 16 bits took 20.1 us with 16 words held by a thread, and 20.9 with 32; softmax 19.1 and 18.2
(H200, 2026-11-27, benchmarks/gpu/plans.py)."""

BLOCK_OF_ROWS: Final = 128
"""The threads of a block that computes several short rows."""

FEW_AT_ONCE: Final = 16
"""The number of partial results that one thread combines alone: that many independent loads take as long as a step."""


MOST_LANES: Final = 8
"""The most elements of a vector."""

FEWER_ROWS: Final = (16, 8)
"""The neighbouring rows of a block, less than a warp, that still fill sectors of memory."""

FAIR_SHARES: Final = 1.5
"""How much more than its part of the memory's rate a multiprocessor reads where others are idle: on an H200 24 blocks of 1024
threads read 1.1 TB/s of 4.2 (2026-11-26, benchmarks/gpu/kernel_times.py)."""


@dataclass(frozen=True)
class RowThreads(Decision):
    """The *threads* that share a row, the *rows* of a block, and the elements of a vector access (*lanes*).

    With *held*, threads keep their part of a row in registers from the first reduction to the last result. With *across*,
    neighbouring threads have neighbouring rows, not neighbouring elements of a row. With 0 threads, each reduction and each
    elementwise block is a kernel by itself.
    """

    question = "the threads of a row"
    of_grids = True
    threads: int
    rows: int = 1
    lanes: int = 1
    held: bool = True
    across: bool = False


NO_ROWS: Final = RowThreads(0)


@dataclass(frozen=True)
class RowGroup:
    """A group of *blocks*, among them *reductions*, over *rows* of *width* elements; *passes* of the blocks go along the row.

    *bits* is the size of the elements that vectors are made for, the narrowest accessed along the row or the widest of several
    results, 0 if vector accesses are impossible; *last* is the
    extent of the contiguous dimension. *is_fixed* is False for symbolic sizes: then no row is kept in registers.
    *side_by_side* tells whether the terms of a row are contiguous; if not, those of neighbouring rows are. *is_held* tells
    whether a value along the row is used more than once. *rows* is a multiple of *multiple* for all values of symbolic sizes;
    the rows of a thread block divide it. *beside* is the number of inputs that have an element for each of a row, the
    same for all rows, as the scale of a normalization.
    """

    rows: int
    multiple: int
    width: int
    reductions: int
    blocks: int
    passes: int = 1
    bits: int = 0
    last: int = 1
    is_fixed: bool = True
    is_held: bool = True
    side_by_side: bool = True
    beside: int = 0


SHORTEST_PART: Final = 512
"""The fewest terms of a partial result: shorter parts wait for memory, and little else."""


@dataclass(frozen=True)
class ReductionParts(Decision):
    """How many partial results each long reduction of a group is made of, by a kernel of its own; 1 without any."""

    question = "the parts of a reduction"
    of_grids = True
    parts: int


def most_parts(row: RowGroup) -> int:
    """Returns the largest number of partial results that leaves each enough terms, and each multiprocessor few of them."""
    return max(1, min(row.width // SHORTEST_PART, FULL_BLOCKS // row.rows)) if row.is_fixed else 1


def reduction_part_plans(
    whole: RowGroup, alone: Sequence[RowGroup], target: Target
) -> Iterator[Candidate[ReductionParts]]:
    """Yields the numbers of parts for the reductions of the group *whole*, each of which by itself is one of *alone*.

    Parts are equal, or the last is shorter. Blocks that compute elements along the row become kernels by themselves.
    """
    yield Candidate(ReductionParts(1), min(c.cycles for c in row_thread_plans(whole, target)))
    grid = target.grid
    if grid is None or len({row.width for row in alone}) != 1:
        return
    along = whole.passes - len(alone)
    others = along * (MEMORY_CYCLES + 2 * whole.rows * whole.width / _rate(whole, 1))
    launches = LAUNCH_CYCLES * (2 * len(alone) - 1 + along)
    for parts in _part_counts(whole.width, most_parts(whole)):
        cycles = launches + others
        for row in alone:
            part = -(-row.width // parts)
            last = gcd(row.last, part) if row.width % parts == 0 else 1
            first = replace(row, rows=row.rows * parts, multiple=row.multiple * parts, width=part, last=last)
            second = RowGroup(row.rows, row.multiple, parts, 1, 1, side_by_side=False)
            cycles += sum([min(c.cycles for c in row_thread_plans(stage, target)) for stage in (first, second)])
        yield Candidate(ReductionParts(parts), cycles)


def _part_counts(n: int, most: int) -> list[int]:
    """Returns powers of two up to *most*, and divisors of *n*, each at least 1.4 times the one before."""
    found: list[int] = []
    for d in range(2, most + 1):
        if n % d == 0 and (not found or d * 5 >= found[-1] * 7):
            found.append(d)
    return sorted({*found, *[1 << k for k in range(1, most.bit_length())]})


def row_thread_plans(row: RowGroup, target: Target) -> Iterator[Candidate[RowThreads]]:
    """Yields the alternatives for a group, with the cycles until the last thread is done."""
    yield Candidate(NO_ROWS, _apart_cycles(row))
    grid = target.grid
    if grid is None:
        return
    for rows in [n for n in (grid.warp, *FEWER_ROWS) if not row.side_by_side and row.multiple % n == 0]:
        for threads in _threads(row.width, grid.block // rows):
            choice = RowThreads(threads, rows, held=False, across=True)
            yield Candidate(choice, _cycles(row, grid, choice, -(-row.width // threads), threads))
    wide = min(MOST_LANES, target.access_lanes(row.bits)) if row.bits else 1
    whole = next((n for n in (8, 4, 2) if n <= wide and row.last % n == 0), 1)
    for lanes in dict.fromkeys((whole, 1)):
        for threads in _threads(row.width // lanes, grid.block):
            each = -(-row.width // (threads * lanes)) * lanes
            held = row.is_fixed and row.is_held and each <= MOST_HELD and each * threads == row.width
            rows = _rows(row, threads, grid.block)
            choice = RowThreads(threads, rows, lanes, held)
            yield Candidate(
                choice, _cycles(row, grid, choice, each, -(-threads * rows // grid.warp) * grid.warp / rows)
            )


def _threads(vectors: int, most: int) -> list[int]:
    """Returns the candidate thread counts for *vectors*: powers of two, and divisors."""
    most = min(vectors, most)
    powers = [1 << n for n in range(2, most.bit_length())]
    return sorted({*powers, *[n for n in range(2, most + 1) if vectors % n == 0]})


def _rows(row: RowGroup, threads: int, most: int) -> int:
    """Returns the rows of a block: several if they are short, and if enough blocks for all multiprocessors remain."""
    together = 1 << (max(1, min(most, BLOCK_OF_ROWS) // threads).bit_length() - 1)
    while together > 1 and (row.multiple % together or row.rows // together < FULL_BLOCKS):
        together //= 2
    return together


def _cycles(row: RowGroup, grid: Grid, choice: RowThreads, each: int, taken: float) -> float:
    """Returns the cycles of a group with *taken* threads per row, idle ones included, of *each* elements."""
    registers = each * (2 if row.beside else 1)
    full = FULL_DEVICE * min(1.0, MANY_HELD / registers) if choice.held else FULL_DEVICE
    turns = max(1.0, row.rows * taken / full)
    waits = MEMORY_CYCLES * max(1.0, each / choice.lanes / LOADS_AHEAD) if not choice.held else MEMORY_CYCLES
    near = 0.0 if choice.held else NEAR_CYCLES * (row.passes - 1)
    latency = waits + near + each * row.blocks + row.reductions * _combining(choice.threads)
    moved = 2 if choice.held else 2 * row.passes - 1
    part = min(1.0, FAIR_SHARES * -(-row.rows // choice.rows) / grid.multiprocessors)
    return latency * turns + row.rows * row.width * moved / _rate(row, choice.lanes) / _used(row, grid, choice) / part


def _used(row: RowGroup, grid: Grid, choice: RowThreads) -> float:
    """Returns the fraction of the transferred sectors that threads use; a row may begin and end inside a sector."""
    if not row.side_by_side and not choice.across:
        return 1.0 / APART_CYCLES
    sector = 8 * grid.sector
    if choice.across:
        return min(1.0, choice.rows * (row.bits or WORD_BITS) / sector)
    if not row.bits:
        return 1.0
    step = choice.threads * choice.lanes * row.bits
    whole = step % sector == 0 and row.width * row.bits % sector == 0
    return 1.0 if whole else step / (-(-step // sector) * sector + sector)


def _combining(threads: int) -> float:
    """Returns the cycles of a reduction over the partial results of the threads of a row."""
    if threads <= FEW_AT_ONCE:
        return WAIT_CYCLES + 2.0 * threads
    last = 1 << (threads.bit_length() - 1) // 2
    return 2.0 * WAIT_CYCLES + 2.0 * (threads // last + last)


def _rate(row: RowGroup, lanes: int) -> float:
    """Returns the elements per cycle that memory transfers."""
    return MEMORY_WORDS * (max(1.0, WORD_BITS / row.bits) if lanes > 1 else SCALAR_PART)


def _apart_cycles(row: RowGroup) -> float:
    """Returns the cycles of separate kernels, with one thread for each element or result.

    A reduction alone is one kernel with its epilogue, a thread for each result.
    """
    turns = max(1.0, row.rows / FULL_DEVICE)
    apart = APART_CYCLES if row.side_by_side else 1.0
    ahead = row.width if row.is_fixed and row.width <= UNROLLED_TERMS else LOADS_AHEAD
    reduced = (MEMORY_CYCLES * max(1.0, row.width / ahead) + row.width) * turns + row.rows * row.width * apart / _rate(
        row, 1
    )
    if row.reductions == row.passes == 1:
        return reduced
    others = MEMORY_CYCLES + 2 * row.rows * row.width / _rate(row, 1)
    return reduced * row.reductions + (row.blocks - row.reductions) * others + (row.blocks - 1) * LAUNCH_CYCLES


def matrix_vector_cycles(depth: int, columns: int, bits: int, target: Target, *, side_by_side: bool) -> float:
    """Returns the cycles of a vector of *depth* terms times a matrix of elements of *bits*, terms or columns *side_by_side*."""
    row = RowGroup(columns, columns, depth, 1, 2, 1, bits, depth, is_held=False, side_by_side=side_by_side)
    return min(c.cycles for c in row_thread_plans(row, target))
