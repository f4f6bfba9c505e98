"""How many threads share a row of a group of reductions and of what is computed from them, or whether they have kernels each.

The figures are of an H200 (2026-11-26, benchmarks/gpu/gpu.py): a launch in a graph takes 2 us, memory moves 4.2 TB/s, and 132
multiprocessors hold 2048 threads each, half as many where each has 64 registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.grid_time import LAUNCH_CYCLES
from weft.targets import Grid, Target

FULL_DEVICE: Final = 132 * 1024
"""Threads that keep a device at work; fewer leave its multiprocessors idle."""

FULL_BLOCKS: Final = 4 * 132
"""Blocks that give each multiprocessor several."""

MEMORY_CYCLES: Final = 600.0
"""The latency of memory."""

NEAR_CYCLES: Final = 250.0
"""The latency of what was accessed just before."""

LOADS_AHEAD: Final = 4
"""Loads of a loop that a thread waits for together."""

WAIT_CYCLES: Final = 40.0
"""What a step of a reduction takes that threads wait for one another in: an exchange through shared memory, and a barrier."""

MEMORY_WORDS: Final = 600.0
"""The words that memory moves in a cycle, all multiprocessors together, where threads access vectors."""

SCALAR_PART: Final = 0.8
"""The part of that rate where threads access single elements, of whatever length."""

WORD_BITS: Final = 32

APART_CYCLES: Final = 8.0
"""What a term takes that neighbouring threads read from rows of their own: each moves a sector, of which it uses one word."""

MOST_HELD: Final = 64
"""The most words of a row that a thread keeps in registers."""

MANY_HELD: Final = 32
"""More words than these leave room for fewer threads."""

BLOCK_OF_ROWS: Final = 128
"""The threads of a block that short rows fill together."""

FEW_AT_ONCE: Final = 16
"""Partial results that one thread combines alone: so many loads, which do not wait for one another, take as long as a step."""


MOST_LANES: Final = 8
"""The most elements of a vector."""


@dataclass(frozen=True)
class RowThreads(Decision):
    """The threads that share a row, the rows of a block, the elements side by side that a thread accesses as a vector.

    Whether threads keep their parts of a row in registers, from the first reduction to the last result, and whether neighbouring
    threads have neighbouring rows, not neighbouring elements of one. With 0 threads, each
    reduction has a kernel of its own, and so has what is computed from it.
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
    """Some *rows* of *width* elements, with as many *reductions* among as many *blocks*, of which *passes* go along the row.

    `bits` are those of the narrowest element that is accessed along the row, 0 where it has no vectors, and elements lie side by
    side by multiples of *last*. Where sizes are symbolic, `is_fixed` does not hold, and no row is kept. The terms of a reduction
    lie `side_by_side`, or those of neighbouring rows do. `is_held` tells whether anything along the row is used twice. Rows that
    share a block divide `multiple`, of which *rows* is a multiple whatever symbolic sizes are.
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


def row_thread_plans(row: RowGroup, target: Target) -> Iterator[Candidate[RowThreads]]:
    """Yields the choices for a group; the cycles are those until the last thread is done."""
    yield Candidate(NO_ROWS, _apart_cycles(row))
    grid = target.grid
    if grid is None:
        return
    if not row.side_by_side and row.multiple % grid.warp == 0:
        for threads in _threads(row.width, grid.block // grid.warp):
            choice = RowThreads(threads, grid.warp, held=False, across=True)
            yield Candidate(choice, _cycles(row, grid, choice, -(-row.width // threads), threads))
    wide = min(MOST_LANES, target.access_lanes(row.bits)) if row.bits else 1
    for lanes in dict.fromkeys((wide, 1)):
        if row.last % lanes:
            continue
        for threads in _threads(row.width // lanes, grid.block):
            each = -(-row.width // (threads * lanes)) * lanes
            held = row.is_fixed and row.is_held and each <= MOST_HELD and each * threads == row.width
            rows = _rows(row, threads, grid.block)
            choice = RowThreads(threads, rows, lanes, held)
            yield Candidate(
                choice, _cycles(row, grid, choice, each, -(-threads * rows // grid.warp) * grid.warp / rows)
            )


def _threads(vectors: int, most: int) -> list[int]:
    """Returns the numbers of threads for so many vectors: powers of two, and those that share them evenly."""
    most = min(vectors, most)
    powers = [1 << n for n in range(2, most.bit_length())]
    return sorted({*powers, *[n for n in range(2, most + 1) if vectors % n == 0]})


def _rows(row: RowGroup, threads: int, most: int) -> int:
    """Returns how many rows a block has: several short ones, where there are enough for all multiprocessors."""
    together = 1 << (max(1, min(most, BLOCK_OF_ROWS) // threads).bit_length() - 1)
    while together > 1 and (row.multiple % together or row.rows // together < FULL_BLOCKS):
        together //= 2
    return together


def _cycles(row: RowGroup, grid: Grid, choice: RowThreads, each: int, taken: float) -> float:
    """Returns the cycles of a group whose rows take so many threads, idle ones included, of which each has *each* elements."""
    full = FULL_DEVICE * min(1.0, MANY_HELD / each) if choice.held else FULL_DEVICE
    turns = max(1.0, row.rows * taken / full)
    waits = MEMORY_CYCLES * max(1.0, each / choice.lanes / LOADS_AHEAD) if not choice.held else MEMORY_CYCLES
    near = 0.0 if choice.held else NEAR_CYCLES * (row.passes - 1)
    latency = waits + near + each * row.blocks + row.reductions * _combining(choice.threads)
    moved = 2 if choice.held else 2 * row.passes - 1
    return latency * turns + row.rows * row.width * moved / _rate(row, choice.lanes) / _used(row, grid, choice)


def _used(row: RowGroup, grid: Grid, choice: RowThreads) -> float:
    """Returns the part that threads use of what they move: a step of a row begins and ends inside of sectors."""
    if not row.side_by_side and not choice.across:
        return 1.0 / APART_CYCLES
    if choice.across or not row.bits:
        return 1.0
    sector = 8 * grid.sector
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
    """Returns the elements that memory moves in a cycle."""
    return MEMORY_WORDS * (max(1.0, WORD_BITS / row.bits) if lanes > 1 else SCALAR_PART)


def _apart_cycles(row: RowGroup) -> float:
    """Returns the cycles of kernels whose threads have elements, or results, of their own."""
    turns = max(1.0, row.rows / FULL_DEVICE)
    apart = APART_CYCLES if row.side_by_side else 1.0
    reduced = (
        MEMORY_CYCLES * max(1.0, row.width / LOADS_AHEAD) + row.width
    ) * turns + row.rows * row.width * apart / _rate(row, 1)
    others = MEMORY_CYCLES + 2 * row.rows * row.width / _rate(row, 1)
    return reduced * row.reductions + (row.blocks - row.reductions) * others + (row.blocks - 1) * LAUNCH_CYCLES
