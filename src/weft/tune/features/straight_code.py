"""The straight code inside the loops of many plans: the register tile, its instructions, and its waste.

The same counts as `cost.program` makes for one scheduled program, as arrays.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from weft.cost import SHUFFLES
from weft.loop import LoopKind
from weft.targets import Target
from weft.tune.features.geometry import AccessGeometry, Bools, Doubles, NestGeometry, added, at_level
from weft.tune.features.nest_batch import Ints


class StraightCode:
    """The unrolled and vectorised levels of a batch, in vector instructions of *target*; all else repeats them."""

    def __init__(self, nest: NestGeometry, target: Target) -> None:
        self.nest = nest
        self.target = target
        self.lanes = target.lanes(8 * nest.stored.access.element_bytes)
        self.repeated: Bools = nest.is_kind(LoopKind.SERIAL, LoopKind.PARALLEL)
        self.unrolled: Bools = nest.is_kind(LoopKind.UNROLLED)
        self.vector: Bools = nest.is_kind(LoopKind.VECTORIZED)
        self._moves: dict[AccessGeometry, Doubles] = {}

    def _product(self, which: Bools) -> Doubles:
        """Returns the product of the extents of the levels in *which*."""
        extents: Doubles = np.where(which, self.nest.extent, 1.0)
        made: Doubles = extents.prod(axis=1)
        return made

    @cached_property
    def length(self) -> Doubles:
        """The elements of the vectorised levels."""
        return self._product(self.vector)

    @cached_property
    def vectors(self) -> Doubles:
        """The vector registers that they take."""
        return np.ceil(self.length / self.lanes)

    @cached_property
    def copies(self) -> Doubles:
        """The times that the body is written out."""
        return self._product(self.unrolled)

    @cached_property
    def arithmetic(self) -> Doubles:
        """The arithmetic instructions."""
        return self.copies * self.vectors * self.nest.batch.operations

    @cached_property
    def sums(self) -> Doubles:
        """The vectors of results that are held at once."""
        return self._product(self.unrolled & self.nest.stored.uses) * self.vectors

    @cached_property
    def operands(self) -> Doubles:
        """The loads of one iteration of the code, as if none were kept in registers."""
        return added([self.moves(a) for a in self._loaded], self.length.shape)

    @cached_property
    def loads(self) -> Doubles:
        """The loads of one iteration, spilled sums included."""
        kept = [self.moves(a) / self._iterations_kept(a) for a in self._loaded]
        return added([*kept, self.spilled], self.length.shape)

    @cached_property
    def stores(self) -> Doubles:
        """The stores of one iteration, spilled sums included."""
        written = self.nest.stored
        return self.spilled if written.access.in_registers else self.spilled + self.moves(written)

    @cached_property
    def spilled(self) -> Doubles:
        """How often a sum is spilled in one iteration: those that find no register, each time that they are added to."""
        if not self.nest.stored.access.in_registers:
            return np.zeros(len(self.length))
        following = [np.where((a.uses & self.vector).any(axis=1), self.moves(a), 0.0) for a in self._loaded]
        operands: Doubles = np.max([np.zeros(len(self.length)), *following], axis=0)
        needed = self.sums + np.minimum(operands, self.vectors) + 1
        times = self._product(self.unrolled & np.logical_not(self.nest.stored.uses))
        spilled: Doubles = times * np.maximum(0.0, needed - self.target.isa.vector_registers)
        return spilled

    @cached_property
    def latency(self) -> Doubles:
        """The cycles until sums can be added to again; 0 where the next iteration has others."""
        update = self.nest.update
        if update is None:
            return np.zeros(len(self.length))
        chain = self._product((self.unrolled | self.vector) & ~update.uses)
        core = self.target.core
        through = 0 if update.access.in_registers else core.forwarding_latency
        return np.where(self._changes_innermost(update), 0.0, chain * (core.fma_latency + through))

    @cached_property
    def trips(self) -> Doubles:
        """The iterations of the innermost loop."""
        last, any_ = _last(self.repeated)
        return np.where(any_, at_level(self.nest.extent, last), 1.0)

    @cached_property
    def entries(self) -> Doubles:
        """The times that the innermost loop is entered, tiles beyond the end of an axis left out."""
        return self._product(self.repeated) / self.trips * self.filled

    @cached_property
    def filled(self) -> Doubles:
        """The part of all iterations that is inside the block's domain: the last tile of an axis may be smaller."""
        part = np.ones(len(self.length))
        for a, size in enumerate(self.nest.batch.axis_sizes):
            along = self.nest.repeats & (self.nest.axis == a)
            covered = self._product(along)
            vector = np.minimum(self.lanes, self._product(along & self.vector))
            needed = np.ceil(size / vector) * vector
            part *= np.where(covered > size, np.minimum(1.0, needed / covered), 1.0)
        return part

    @cached_property
    def _loaded(self) -> tuple[AccessGeometry, ...]:
        reads = self.nest.reads if self.nest.update is None else (self.nest.update, *self.nest.reads)
        return tuple([a for a in reads if not a.access.in_registers])

    def moves(self, a: AccessGeometry) -> Doubles:
        """Returns the loads or stores of *a* in one iteration: a vector of neighbours at once, others one by one."""
        if a not in self._moves:
            self._moves[a] = self._moves_of(a)
        return self._moves[a]

    def _moves_of(self, a: AccessGeometry) -> Doubles:
        times = self._product(self.unrolled & a.uses)
        moving = self.vector & a.uses
        count, last = moving.sum(axis=1), _last(moving)[0]
        stride = at_level(a.stride, last)
        across = self.unrolled & (a.stride == 1)
        side = np.where(across, np.minimum(self.nest.extent, self.lanes), 1.0).max(axis=1)
        transposed = self.length / side * (1 + SHUFFLES * np.log2(side))
        gathered = self.length * (1.0 if a.access.is_store else 2.0)
        apart = gathered if a.access.is_store else np.where(side > 1, transposed, gathered)
        together = np.where((count == 1) & (stride == 1), self.vectors, apart)
        return times * np.where(count == 0, 1.0, together)

    def _iterations_kept(self, a: AccessGeometry) -> Doubles:
        """Returns for how many iterations of the innermost loops a loaded value stays in a register."""
        if a is self.nest.update:
            return np.ones(len(self.length))
        extents = np.where(self.repeated, self.nest.extent, 1.0)
        after = np.cumprod(extents[:, ::-1], axis=1)[:, ::-1]
        inside = np.concatenate([after, np.ones((len(after), 1))], axis=1)
        last, any_ = _last(self.repeated & a.uses)
        return at_level(inside, np.where(any_, last + 1, 0))

    def _changes_innermost(self, a: AccessGeometry) -> Bools:
        last, any_ = _last(self.repeated)
        return any_ & at_level(a.uses, last)


def _last(which: Bools) -> tuple[Ints, Bools]:
    """Returns the last level in *which* of each plan, and which plans have one."""
    last: Ints = which.shape[1] - 1 - np.argmax(which[:, ::-1], axis=1)
    return last, at_level(which, last)
