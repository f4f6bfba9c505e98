"""Performance counters of a machine of threads: memory traffic in sectors, turns at shared memory, barriers, divergence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from weft.codegen.interp.array_memory import Array
from weft.targets import Grid


@dataclass
class Counters:
    """Counts of one run.

    *loads* and *stores* are the sectors of global memory (of `Grid.sector` bytes) that warps move: the threads of a warp
    that touch one sector together move it once; *requests* are the instructions of warps that touch global memory, of which a
    vector is one. *turns* is how many times warps take at shared memory, and *ways* the
    most for one access: 1 without bank conflicts. A vector is accessed by as many groups of a warp's threads as it has lanes, one
    after another. Barriers and shuffles are counted once a block (or warp), *divergent* once for each
    warp whose threads go different ways at a branch or loop.
    """

    loads: int = 0
    stores: int = 0
    requests: int = 0
    of_buffer: Counter[str] = field(default_factory=Counter)
    accesses: int = 0
    turns: int = 0
    ways: int = 0
    barriers: int = 0
    warp_barriers: int = 0
    shuffles: int = 0
    divergent: int = 0

    @property
    def conflicts(self) -> int:
        """How many turns at shared memory bank conflicts cost."""
        return self.turns - self.accesses


def count_sectors(facts: Grid, warps: Array, elements: Array, size: int) -> int:
    """Returns how many sectors warps move for threads that touch *elements* of *size* bytes."""
    sectors = elements * size // facts.sector
    return len(np.unique(_pairs(warps, sectors)))


def count_turns(facts: Grid, warps: Array, elements: Array, size: int) -> tuple[int, int, int]:
    """Returns how many warps access shared memory, the turns they need, and the most that one needs.

    A bank delivers one word a turn, to all threads that read that word.
    """
    words = np.unique(_pairs(warps, elements * size // facts.bank_bytes))
    of_warp, word = words >> _SHIFT, words & ((1 << _SHIFT) - 1)
    banks, wanted = np.unique(of_warp * facts.banks + word % facts.banks, return_counts=True)
    present, starts = np.unique(banks // facts.banks, return_index=True)
    turns = np.maximum.reduceat(wanted, starts)
    return len(present), int(turns.sum()), int(turns.max())


_SHIFT = 40


def _pairs(warps: Array, numbers: Array) -> Array:
    made: Array = (warps.astype(np.int64) << _SHIFT) + numbers
    return made
