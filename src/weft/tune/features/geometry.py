"""The memory that each part of many loop nests touches: `cost.footprint` for all plans of a batch at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from weft.loop import LoopKind
from weft.tune.features.nest_batch import KINDS, Ints, NestAccess, NestBatch

Doubles: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Array = TypeVar("Array", Doubles, Bools, Ints)


@dataclass(frozen=True, eq=False)
class AccessGeometry:
    """An access in n nests of m levels: `uses[i, l]` tells whether it moves with level l, `stride[i, l]` elements an iteration.

    `nbytes[i, l]` are the bytes of the cache lines that the levels from l on touch, those further out fixed; l goes to m.
    """

    access: NestAccess
    uses: Bools
    stride: Doubles
    nbytes: Doubles


class NestGeometry:
    """The loops of a batch that repeat, moved together so that the innermost is the last, and their accesses.

    Levels with one iteration, and those that a plan lacks, come first and have an extent of 1.
    """

    def __init__(self, batch: NestBatch, line: int) -> None:
        axis, extent, step, kind = [_at_least_one_level(x) for x in (batch.axis, batch.extent, batch.step, batch.kind)]
        repeats = (axis >= 0) & (extent > 1)
        order = np.arange(len(repeats))[:, None], np.argsort(repeats, axis=1, kind="stable")
        repeats = repeats[order]
        self.batch = batch
        self.line = line
        self.axis: Ints = np.where(repeats, axis[order], 0)
        self.extent: Doubles = np.where(repeats, extent[order], 1).astype(np.float64)
        self.step: Doubles = np.where(repeats, step[order], 0).astype(np.float64)
        self.kind: Ints = np.where(repeats, kind[order], 0)
        self.repeats: Bools = repeats

    def is_kind(self, *kinds: LoopKind) -> Bools:
        """Returns which levels repeat and are of one of *kinds*."""
        found = np.zeros(self.kind.shape, np.bool_)
        for kind in kinds:
            found |= self.kind == KINDS.index(kind)
        return self.repeats & found

    @cached_property
    def is_reduction(self) -> Bools:
        """Tells which levels are summed over."""
        return self.repeats & np.asarray(self.batch.is_reduction, np.bool_)[self.axis]

    @cached_property
    def inside(self) -> Doubles:
        """The iterations of all levels from l on, for l from 0 to the number of levels."""
        reverse = np.cumprod(self.extent[:, ::-1], axis=1)[:, ::-1]
        return np.concatenate([reverse, np.ones((len(reverse), 1))], axis=1)

    @cached_property
    def outside(self) -> Doubles:
        """The iterations of the levels before l, for l from 0 to the number of levels."""
        return np.concatenate([np.ones((len(self.extent), 1)), np.cumprod(self.extent, axis=1)], axis=1)

    @cached_property
    def stored(self) -> AccessGeometry:
        """The access that the block writes."""
        return next(a for a in self.accesses if a.access.is_store)

    @cached_property
    def update(self) -> AccessGeometry | None:
        """The access that reads the written element, where the block adds to it."""
        written = self.stored.access.name
        return next((a for a in self.accesses if a.access.name == written and not a.access.is_store), None)

    @cached_property
    def reads(self) -> tuple[AccessGeometry, ...]:
        """The accesses that read other buffers than the one that is written."""
        written = self.stored.access.name
        return tuple([a for a in self.accesses if not a.access.is_store and a.access.name != written])

    @cached_property
    def in_memory(self) -> tuple[AccessGeometry, ...]:
        """The accesses that take memory traffic; an element read and written counts as read, as in `cost.program`."""
        found: dict[tuple[str, bytes], AccessGeometry] = {}
        for a in (self.stored, *[x for x in self.accesses if not x.access.is_store]):
            if not a.access.in_registers:
                found[a.access.name, a.access.coefficients.tobytes()] = a
        return tuple(found.values())

    @cached_property
    def accesses(self) -> tuple[AccessGeometry, ...]:
        """The accesses of the batch, in its order."""
        return tuple([self._geometry_of(a) for a in self.batch.accesses])

    def _geometry_of(self, access: NestAccess) -> AccessGeometry:
        moves = access.coefficients.astype(np.float64)[:, self.axis] * self.step  # dimension, plan, level
        strides = np.cumprod([1, *access.shape[:0:-1]], dtype=np.float64)[::-1]
        reach = np.abs(moves) * (self.extent - 1)
        spans = np.cumsum(reach[:, :, ::-1], axis=2)[:, :, ::-1] + 1
        widths = np.concatenate([spans, np.ones((*spans.shape[:2], 1))], axis=2)
        return AccessGeometry(
            access,
            uses=reach.max(axis=0, initial=0.0) > 0,
            stride=np.einsum("dil,d->il", moves, strides[: len(moves)]),
            nbytes=bytes_of_lines(widths, access.shape, access.element_bytes, self.line),
        )


def _at_least_one_level(table: Ints) -> Ints:
    """Returns *table* with a column of a level that does nothing, if it has no column."""
    return table if table.shape[1] else np.full((len(table), 1), 0)


def at_level(table: Array, level: Ints) -> Array:
    """Returns the element of each row of *table* at its *level*."""
    return table[np.arange(len(level)), level]


def added(tables: Iterable[Doubles], shape: tuple[int, ...]) -> Doubles:
    """Returns the sum of *tables* of *shape*, zeros if there are none."""
    total = np.zeros(shape)
    for table in tables:
        total += table
    return total


def bytes_of_lines(widths: Doubles, shape: tuple[int, ...], element_bytes: int, line: int) -> Doubles:
    """Returns the bytes of the lines that hold boxes of *widths*, one dimension after another, in an array of *shape*.

    A box is no wider than the array; dimensions at the end of which it has all are one run.
    """
    run = np.ones(widths.shape[1:])
    rows = np.ones(widths.shape[1:])
    is_run = np.ones(widths.shape[1:], np.bool_)
    for width, size in zip(widths[::-1], shape[::-1], strict=True):
        width = np.minimum(width, size)
        run = np.where(is_run, run * width, run)
        rows = np.where(is_run, rows, rows * width)
        is_run = is_run & (width >= size)
    lines = np.ceil(run * element_bytes / line)
    return rows * lines * line
