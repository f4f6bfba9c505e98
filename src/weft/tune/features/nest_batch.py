"""The loop nests of many plans as arrays, from which features are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from weft.loop import LoopKind

Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]

KINDS: Final = (LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLLED, LoopKind.VECTORIZED)
"""The kinds of loops, by their numbers in `NestBatch.kind`."""


_TABLES: Final = ("axis", "extent", "step", "kind", "decisions")
"""The fields of a batch that have a row for each plan."""


@dataclass(frozen=True, eq=False)
class NestAccess:
    """An access of a block: its index in dimension d moves by `coefficients[d, a]` elements for a step along axis a.

    *shape* is that of the buffer; one that is *in_registers* takes no memory traffic.
    """

    name: str
    shape: tuple[int, ...]
    element_bytes: int
    coefficients: Ints
    is_store: bool = False
    in_registers: bool = False


@dataclass(frozen=True, eq=False)
class NestBatch:
    """The nest around one block for each of n plans; levels stand from the outermost in.

    `axis[i, l]` is the axis that level l of plan i runs along, -1 where plan i has no such level; it has `extent[i, l]`
    iterations, each of which moves by `step[i, l]` along that axis, and is of kind `KINDS[kind[i, l]]`. `is_reduction[a]` tells
    the axes that are summed over. *operations* are the arithmetic instructions of one iteration. `decisions[i]` are further
    numbers of plan i, such as a prefetch distance, under `decision_names`. `axis_sizes[a]` is the block's extent along axis a,
    which loops may exceed in the last of their tiles; empty where that is not known.
    """

    accesses: tuple[NestAccess, ...]
    is_reduction: tuple[bool, ...]
    operations: float
    axis: Ints
    extent: Ints
    step: Ints
    kind: Ints
    decisions: Floats
    decision_names: tuple[str, ...]
    axis_sizes: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.axis)

    @staticmethod
    def joined(parts: Sequence[NestBatch]) -> NestBatch:
        """Returns the nests of all *parts*, which are around one block and have as many levels."""
        levels: dict[str, Any] = {name: np.concatenate([getattr(p, name) for p in parts]) for name in _TABLES}
        return replace(parts[0], **levels)

    def take(self, rows: Ints) -> NestBatch:
        """Returns the nests of some of the plans."""
        levels = {name: getattr(self, name)[rows] for name in _TABLES}
        return replace(self, **levels)
