"""The time of the thread blocks of a grid: arithmetic, shared memory, global memory, and latency.

The occupancy of a multiprocessor is limited by its threads, registers and shared memory. Its resident blocks together are bound
by the busiest unit; a block alone is bound by the latency of its loads. A grid takes as many waves of blocks as its busiest
multiprocessor. Cycles are those of a multiprocessor. After Volkov, "Understanding latency hiding on GPUs" (2016).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.targets import RESERVED_BYTES, Grid, Target

SMOOTH: Final = 4.0
"""The exponent of the smooth maximum of several times (`greatest`): units that are almost equally busy slow each other down."""

LAUNCH_CYCLES: Final = 3500.0
"""Cycles of a kernel launch after another in a CUDA graph, beside its work."""

FETCH_CYCLES: Final = 800.0
"""Cycles that a block waits for a fetch from global memory: the latency of an access, and two barriers."""

WAIT_CYCLES: Final = 60.0
"""Cycles that a block waits at the barrier of a step whose data was prefetched."""

FETCH_BYTES: Final = 24.0
"""Bytes per cycle that a multiprocessor reads from the second-level cache."""

MEMORY_BYTES: Final = 18.0
"""Bytes per cycle and multiprocessor that the device reads from its memory."""

SHARED_BYTES: Final = 128.0
"""Bytes per cycle that a multiprocessor reads from shared memory without bank conflicts."""

RESERVED_REGISTERS: Final = 32
"""Registers of a thread for indices and for values in flight."""


@dataclass(frozen=True)
class BlockWork:
    """The work and resources of a block of *threads*, for `grid_cycles`.

    Resources are bytes of *shared* memory, and *registers* per thread. Work is *instructions* of warps, *shared_cycles* of
    shared memory, and *fetched* bytes of global memory. The block makes *fetches* one after another, each followed by a step
    that takes it *step* cycles alone; *ahead* fetches are in flight while a step runs.
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
        """The cycles of a block that has a multiprocessor to itself, memory latency included."""
        if self.ahead:
            return FETCH_CYCLES + self.fetches * max(self.step + WAIT_CYCLES, FETCH_CYCLES / self.ahead)
        return self.fetches * (FETCH_CYCLES + self.step)


def blocks_at_once(work: BlockWork, grid: Grid) -> int:
    """Returns the occupancy: the blocks resident on a multiprocessor at a time; 0 if one does not fit."""
    registers = work.threads * (work.registers + RESERVED_REGISTERS)
    room = grid.shared_bytes // (work.shared + RESERVED_BYTES)
    return min(grid.threads // work.threads, grid.registers // registers, room)


def grid_cycles(blocks: int, work: BlockWork, grid: Grid) -> float:
    """Returns the cycles of a grid of *blocks* with equal work."""
    most = max(1, blocks_at_once(work, grid))
    lanes = grid.lanes // grid.warp
    busy = greatest(work.instructions / lanes, work.shared_cycles, work.fetched / FETCH_BYTES)
    rounds, rest = divmod(-(-blocks // grid.multiprocessors), most)
    if blocks >= grid.multiprocessors * most:  # blocks follow one another without rounds: the last are a part of one
        return greatest(busy * most, work.alone) * max(1.0, blocks / (grid.multiprocessors * most)) + busy * 0.5
    return rounds * greatest(busy * most, work.alone) + (greatest(busy * rest, work.alone) if rest else 0.0)


def traffic_cycles(nbytes: float, target: Target) -> float:
    """Returns the cycles in which the device transfers *nbytes* to or from its memory."""
    return nbytes / (MEMORY_BYTES * (1 if target.grid is None else target.grid.multiprocessors))


def greatest(*times: float) -> float:
    """Returns the time of units that work at the same time: a smooth maximum."""
    return float(sum([t**SMOOTH for t in times]) ** (1 / SMOOTH))
