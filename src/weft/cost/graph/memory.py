"""The time of reading data from the level that holds it: a cache, or memory."""

from __future__ import annotations

from typing import Final

from weft.cost.demand import l3_cycles, memory_cycles
from weft.targets import Target

L2_SHARE: Final = 0.7
"""The part of the second-level cache that data which is used together may fill, to be found there again."""

OTHERS_SHARE: Final = 0.5
"""The part of a cache that one operand of a whole model can count on: the rest holds the data used in between."""


def streaming_cycles(nbytes: int, target: Target, others: int = 0) -> float:
    """Returns the cycles that one core takes to read *nbytes* from where they are found when they are used again.

    *others* are the bytes that are read in between, so that the last cache has to hold them too. Data that stays in the
    second-level cache costs nothing.
    """
    caches = target.caches
    if nbytes <= caches.l2 * OTHERS_SHARE:
        return 0.0
    stays = nbytes + others < caches.l3 * OTHERS_SHARE
    return l3_cycles(nbytes, target) if stays else memory_cycles(nbytes, target)


def spill_cycles(nbytes: int, target: Target) -> float:
    """Returns the cycles to write *nbytes* between two stages and read them again, as far as the second level holds them not.

    What the last cache does not hold either goes to memory and back.
    """
    caches = target.caches
    beyond = max(0.0, nbytes - OTHERS_SHARE * caches.l3)
    near = max(0.0, nbytes - beyond - L2_SHARE * caches.l2)
    return 2 * (l3_cycles(near, target) + memory_cycles(beyond, target))
