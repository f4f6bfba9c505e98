"""How long the blocks of a grid take: arithmetic, shared memory, the device's memory, and what is waited for.

A multiprocessor runs several blocks at once, as many as its threads, registers and shared memory allow. Together they are as
fast as the busiest of its parts; one of them is no faster than its own fetches, each of which waits for memory. A grid takes as
many rounds as its busiest multiprocessor. Cycles are those of one. After Volkov, "Understanding latency hiding on GPUs" (2016).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.targets import RESERVED_BYTES, Grid, Target

SMOOTH: Final = 4.0
"""How sharp the greatest of several times is: parts that are nearly as busy as the busiest hinder each other."""

LAUNCH_CYCLES: Final = 3500.0
"""What a kernel takes that follows another in a graph, beside its work."""

FETCH_CYCLES: Final = 800.0
"""What a block waits for what it fetches from the device's memory: an access, and two barriers."""

WAIT_CYCLES: Final = 60.0
"""What a block waits at the barrier of a step whose fetches were begun before."""

FETCH_BYTES: Final = 24.0
"""Bytes that a multiprocessor reads of the device's cache in a cycle."""

MEMORY_BYTES: Final = 18.0
"""Bytes for each multiprocessor that the device reads of its memory in a cycle."""

SHARED_BYTES: Final = 128.0
"""Bytes of shared memory that a multiprocessor reads in a cycle, if they are in different banks."""

RESERVED_REGISTERS: Final = 32
"""Registers of a thread for indices, and what is on its way."""


@dataclass(frozen=True)
class BlockWork:
    """What a block of *threads* takes: warp instructions, cycles of shared memory, bytes, and *fetches* one after another.

    Each of those is followed by *step* cycles of the block alone; so many are under way *ahead* of their steps. A thread keeps so
    many values in *registers*.
    """

    threads: int
    shared: int
    registers: int
    instructions: float
    shared_cycles: float
    fetched: float
    fetches: int
    step: float
    ahead: int = 0

    @property
    def alone(self) -> float:
        """The cycles of a block that has a multiprocessor to itself, waiting for its fetches."""
        if self.ahead:
            return FETCH_CYCLES + self.fetches * max(self.step + WAIT_CYCLES, FETCH_CYCLES / self.ahead)
        return self.fetches * (FETCH_CYCLES + self.step)


def blocks_at_once(work: BlockWork, grid: Grid) -> int:
    """Returns the blocks that a multiprocessor runs at the same time; 0 where it has no room for one."""
    registers = work.threads * (work.registers + RESERVED_REGISTERS)
    room = grid.shared_bytes // (work.shared + RESERVED_BYTES)
    return min(grid.threads // work.threads, grid.registers // registers, room)


def grid_cycles(blocks: int, work: BlockWork, grid: Grid) -> float:
    """Returns the cycles until *blocks* of the same work are done."""
    most = max(1, blocks_at_once(work, grid))
    lanes = grid.lanes // grid.warp
    busy = greatest(work.instructions / lanes, work.shared_cycles, work.fetched / FETCH_BYTES)
    rounds, rest = divmod(-(-blocks // grid.multiprocessors), most)
    if blocks >= grid.multiprocessors * most:  # blocks follow one another without rounds: the last are a part of one
        return greatest(busy * most, work.alone) * max(1.0, blocks / (grid.multiprocessors * most)) + busy * 0.5
    return rounds * greatest(busy * most, work.alone) + (greatest(busy * rest, work.alone) if rest else 0.0)


def traffic_cycles(nbytes: float, target: Target) -> float:
    """Returns the cycles in which the device reads or writes so many bytes of its memory."""
    return nbytes / (MEMORY_BYTES * (1 if target.grid is None else target.grid.multiprocessors))


def greatest(*times: float) -> float:
    """Returns what several parts at work at once take: about the greatest."""
    return float(sum([t**SMOOTH for t in times]) ** (1 / SMOOTH))
