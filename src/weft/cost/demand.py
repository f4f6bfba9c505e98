"""The one model of a core: the cycles of straight-line code, repeated, from the cycles that it keeps each execution unit busy.

The tiles that rules choose from, windows, and whole scheduled programs are all costed by `Demand.cycles`; they differ in how they
count. The units work side by side, so that the busiest counts in full. Loads show beside it, as misses and late operands do, and
so does waiting for caches, for the third level and memory twice: fitted on Emerald Rapids and Zen 4 (docs/design/0014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.targets import Target

LOAD_PRESSURE: Final = 0.25
"""The part of a load's cycles that shows even when arithmetic covers them."""

FAR_PRESSURE: Final = 2
"""How many times as much of the cycles of reading from the third level or memory shows."""


@dataclass(frozen=True)
class Demand:
    """The cycles that each unit of a core is busy with a piece of code, each unit by itself.

    `chain` are those of operations that wait for one another; `l2` and `far` those of bytes from the second level of cache, and
    from beyond.
    """

    arithmetic: float
    loads: float
    stores: float = 0.0
    issue: float = 0.0
    chain: float = 0.0
    l2: float = 0.0
    far: float = 0.0

    @property
    def cycles(self) -> float:
        """The cycles of the whole piece, with all units working at the same time."""
        busiest = max(self.arithmetic, self.loads, self.stores, self.issue, self.chain, self.far)
        return busiest + LOAD_PRESSURE * (self.loads + self.l2 + FAR_PRESSURE * self.far)

    def times(self, count: float) -> Demand:
        """Returns the demand of *count* such pieces."""
        return Demand(
            self.arithmetic * count, self.loads * count, self.stores * count, self.issue * count, self.chain * count,
            self.l2 * count, self.far * count,
        )  # fmt: skip


def fma_cycles(vectors: float, target: Target) -> float:
    """Returns the cycles of *vectors* vector multiply-adds, or other arithmetic instructions."""
    return vectors / max(1, target.core.fma_per_cycle)


def load_cycles(vectors: float, target: Target) -> float:
    """Returns the cycles of loading *vectors* vectors, or single elements."""
    return vectors / target.core.loads_per_cycle


def l2_cycles(nbytes: float, target: Target) -> float:
    """Returns the cycles of reading *nbytes* from the second level of cache."""
    return nbytes / target.caches.l2_speed


def l3_cycles(nbytes: float, target: Target) -> float:
    """Returns the cycles of reading *nbytes* from the third level of cache."""
    return nbytes / target.caches.l3_speed


def memory_cycles(nbytes: float, target: Target) -> float:
    """Returns the cycles of reading *nbytes* from memory."""
    return nbytes / target.caches.memory_speed
