"""Features of each loop level, as many for every nest: levels are counted from the innermost, buffers stand by role and size.

After Chen et al., "Learning to optimize tensor programs" (NeurIPS 2018), section 3.2 and appendix A.2: for each loop its length,
annotation, and the iterations inside and outside; for each buffer and loop the bytes touched, the reuse and the stride.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

from weft.targets import Target
from weft.tune.features.geometry import AccessGeometry, Doubles, NestGeometry, added
from weft.tune.features.nest_batch import KINDS, Floats

LEVELS: Final = 10
"""The levels that features tell of, from the innermost out; of a deeper nest the outermost are left out."""

SLOTS: Final = ("store", "read0", "read1", "others")
"""The roles of buffers: the one that is written, the two largest that are read, and all others together."""

LOOP_COLUMNS: Final = (
    "extent",
    *[k.name.lower() for k in KINDS],
    "reduction",
    "inside",
    "outside",
    "intensity",
    "working_set",
)
ACCESS_COLUMNS: Final = ("bytes", "reuse", "stride")
LEVEL_COLUMNS: Final = (*LOOP_COLUMNS, *[f"{slot}.{name}" for slot in SLOTS for name in ACCESS_COLUMNS])
"""The features of one level; lengths, counts and bytes as logarithms to the base of two."""


def level_table(nest: NestGeometry, target: Target) -> Floats:
    """Returns the features of each level, `(n, LEVELS, len(LEVEL_COLUMNS))`; level 0 is the innermost."""
    inside = nest.inside[:, :-1]
    by_slot = [_touched(nest, slot) for slot in slots_of(nest)]
    working_set = added([touched for touched, _ in by_slot], inside.shape)
    operations = inside * nest.batch.operations
    columns = [
        np.log2(nest.extent),
        *[np.where(nest.is_kind(k), 1.0, 0.0) for k in KINDS],
        np.where(nest.is_reduction, 1.0, 0.0),
        np.log2(inside),
        np.log2(nest.outside[:, :-1]),
        np.log2(operations / np.maximum(1.0, working_set)),
        np.log2(np.maximum(1.0, working_set) / target.caches.l1),
    ]
    for (touched, stride), slot in zip(by_slot, slots_of(nest), strict=True):
        columns += [np.log2(1 + touched), reuse(inside, touched, slot), np.log2(1 + stride)]
    innermost_first = np.maximum(
        nest.extent.shape[1] - 1 - np.arange(LEVELS), 0
    )  # a shallow nest repeats its outermost level
    return np.stack(columns, axis=2, dtype=np.float32, casting="same_kind")[:, innermost_first]


def slots_of(nest: NestGeometry) -> tuple[tuple[AccessGeometry, ...], ...]:
    """Returns the accesses of each of `SLOTS`: those in memory, the larger buffers first."""
    reads = [a for a in nest.reads if not a.access.in_registers]
    reads.sort(key=lambda a: -prod(a.access.shape) * a.access.element_bytes)
    stored = () if nest.stored.access.in_registers else (nest.stored,)
    return stored, tuple(reads[:1]), tuple(reads[1:2]), tuple(reads[2:])


def reuse(iterations: Doubles, touched: Doubles, slot: Sequence[AccessGeometry]) -> Doubles:
    """Returns how often each byte that *slot* has *touched* is used in so many *iterations*; 0 for a slot that is empty."""
    used = iterations * sum(a.access.element_bytes for a in slot)
    return np.log2(np.maximum(used, 1.0) / np.maximum(touched, 1.0))


def _touched(nest: NestGeometry, slot: Sequence[AccessGeometry]) -> tuple[Doubles, Doubles]:
    """Returns the bytes that the levels from each on touch in the buffers of *slot*, and the longest stride of each level."""
    if not slot:
        return np.zeros(nest.extent.shape), np.zeros(nest.extent.shape)
    touched = added([a.nbytes[:, :-1] for a in slot], nest.extent.shape)
    return touched, np.max([np.abs(a.stride) for a in slot], axis=0)
