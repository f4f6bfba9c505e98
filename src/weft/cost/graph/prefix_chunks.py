"""How a prefix sum on a grid is taken apart: into chunks that threads combine side by side, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.grid_time import FETCH_CYCLES, LAUNCH_CYCLES, traffic_cycles
from weft.targets import Target

IN_FLIGHT: Final = 8
"""Loads of a thread that are in flight while it adds up elements in their order."""

CHUNKS: Final = (16, 32, 64, 128)
"""Candidates for the elements of a chunk."""

PASSES: Final = 3
"""Transfers of each element: read for the sums of chunks, read again for the prefixes, and written."""


@dataclass(frozen=True)
class PrefixChunk(Decision):
    """The *elements* of a chunk of a prefix sum on a grid; 1: a thread combines all elements of a slice."""

    question = "the elements of a prefix sum that one thread combines in order"
    of_grids = True
    elements: int


def prefix_chunk_plans(steps: int, slices: int, nbytes: int, target: Target) -> Iterator[Candidate[PrefixChunk]]:
    """Yields the chunks for prefixes of *slices* of so many *steps*, of elements of *nbytes*, with the cycles of their kernels.

    Prefixes of the chunks' sums are taken apart in turn.
    """
    yield Candidate(PrefixChunk(1), _in_order(steps, slices, 2 * nbytes, target))
    for chunk in CHUNKS:
        parts = -(-steps // chunk)
        if parts > 1:
            own = 2 * LAUNCH_CYCLES + 2 * _in_order(chunk, slices * parts, PASSES * nbytes / 2, target)
            sums = min([c.cycles for c in prefix_chunk_plans(parts, slices, nbytes, target)])
            yield Candidate(PrefixChunk(chunk), own + sums)


def _in_order(steps: int, slices: int, nbytes: float, target: Target) -> float:
    """Returns the cycles of threads that go through *slices* of so many *steps*, each of which transfers *nbytes*."""
    grid = target.grid
    at_once = 1 if grid is None else grid.multiprocessors * grid.threads
    waits = -(-slices // at_once) * steps * FETCH_CYCLES / IN_FLIGHT
    return max(waits, traffic_cycles(nbytes * steps * slices, target))
