"""Finds data races: tracks which thread accessed each element last, and the barriers since.

Two threads race if they touch one element, one of them writes, and nothing orders them: a barrier of the block that both are in,
or one of their warp. That is a property of the program, not of the order in which the interpreter happens to run the threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.codegen.interp.array_memory import Array
from weft.codegen.interp.faults import ExecutionError


class RaceError(ExecutionError):
    """Two threads touch the same element, one of them writes, and no barrier is between."""


class DivergenceError(ExecutionError):
    """Some threads of a block come by a barrier, and others do not."""


@dataclass(frozen=True, eq=False)
class Clock:
    """The barriers that each thread has passed: of its block, and of its warp; and which block and warp it is in."""

    block: Array
    warp: Array
    of_block: Array
    of_warp: Array

    def now(self, threads: Array) -> tuple[Array, Array]:
        """Returns how many barriers of its block and of its warp each of *threads* has passed."""
        return self.of_block[self.block[threads]], self.of_warp[self.warp[threads]]


class Touches:
    """The last thread that touched each element in one way, when it did, and at which statement; -1 for none."""

    def __init__(self, size: int) -> None:
        self.thread = np.full(size, -1, np.int64)
        self.block_time = np.zeros(size, np.int64)
        self.warp_time = np.zeros(size, np.int64)
        self.statement = np.zeros(size, np.int64)

    def note(self, at: Array, threads: Array, clock: Clock, statement: int) -> None:
        """Records that *threads* touch the elements *at*."""
        self.thread[at] = threads
        self.block_time[at], self.warp_time[at] = clock.now(threads)
        self.statement[at] = statement

    def unordered(self, at: Array, threads: Array, clock: Clock) -> Array:
        """Tells for each element whether another thread touched it before, with no barrier since that both have passed."""
        before = self.thread[at]
        block_time, warp_time = clock.now(threads)
        by_block = (clock.block[before] == clock.block[threads]) & (self.block_time[at] < block_time)
        by_warp = (clock.warp[before] == clock.warp[threads]) & (self.warp_time[at] < warp_time)
        found: Array = (before >= 0) & (before != threads) & ~by_block & ~by_warp
        return found


@dataclass(frozen=True)
class Race:
    """An element that two threads race for: the access of *thread*, at a statement, conflicts with an earlier one of *other*."""

    element: int
    thread: int
    other: int
    other_statement: int
    verbs: tuple[str, str]


ALONE, OF_WARP, OF_BLOCK, OF_GRID = range(4)
"""Others that touched an element beside the last one, which later accesses may be unordered with: none, or threads of a group."""


class SharedTouches(Touches):
    """Accesses that do not conflict with one another: reads, or atomic updates. `others` are those beside the last one."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.others = np.zeros(size, np.int64)

    def note(self, at: Array, threads: Array, clock: Clock, statement: int) -> None:
        """Records that *threads* touch the elements *at*, each of which several may."""
        known = self.pending(at, threads, clock)
        self.others[at] = known
        np.maximum.at(self.others, at, known)
        super().note(at, threads, clock, statement)
        np.maximum.at(self.others, at, _relation(self.thread[at], threads, clock))

    def unordered(self, at: Array, threads: Array, clock: Clock) -> Array:
        """Tells for each element whether another thread touched it before, with no barrier since that both have passed."""
        found: Array = self.pending(at, threads, clock) > ALONE
        return found

    def pending(self, at: Array, threads: Array, clock: Clock) -> Array:
        """Returns the earlier accesses that are not ordered before those of *threads* now: none, or of threads of a group."""
        before, known = self.thread[at], self.others[at]
        block_time, warp_time = clock.now(threads)
        relation = _relation(before, threads, clock)
        past = (relation <= OF_BLOCK) & (known <= OF_BLOCK) & (self.block_time[at] < block_time)
        past |= (relation <= OF_WARP) & (known <= OF_WARP) & (self.warp_time[at] < warp_time)
        found: Array = np.where(past | (before < 0), ALONE, np.maximum(known, relation))
        return found


class Shadow:
    """The accesses of threads to one memory."""

    def __init__(self, size: int) -> None:
        self.writes = Touches(size)
        self.reads = SharedTouches(size)
        self.updates = SharedTouches(size)
        self._verbs = {self.writes: "wrote", self.reads: "read", self.updates: "updated"}

    def read(self, at: Array, threads: Array, clock: Clock, statement: int) -> Race | None:
        """Records a read by each of *threads* of its element; returns a race, if there is one."""
        return self._access(self.reads, "reads", (self.writes, self.updates), at, threads, clock, statement)

    def update(self, at: Array, threads: Array, clock: Clock, statement: int) -> Race | None:
        """Records an atomic update by each of *threads*; returns a race with another access, if there is one."""
        return self._access(self.updates, "updates", (self.writes, self.reads), at, threads, clock, statement)

    def write(self, at: Array, threads: Array, clock: Clock, statement: int) -> Race | None:
        """Records a write by each of *threads*; returns a race, if there is one."""
        every = (self.writes, self.reads, self.updates)
        race = self._access(self.writes, "writes", every, at, threads, clock, statement)
        return race or self._race(self.writes, self.writes.thread[at] != threads, at, threads, ("writes", "writes"))

    def _access(
        self,
        own: Touches,
        verb: str,
        conflicting: tuple[Touches, ...],
        at: Array,
        threads: Array,
        clock: Clock,
        statement: int,
    ) -> Race | None:
        """Records accesses among *own*; returns a race with a *conflicting* one, if there is one."""
        races = (
            self._race(t, t.unordered(at, threads, clock), at, threads, (verb, self._verbs[t])) for t in conflicting
        )
        race = next((r for r in races if r is not None), None)
        own.note(at, threads, clock, statement)
        return race

    def _race(self, by: Touches, found: Array, at: Array, threads: Array, verbs: tuple[str, str]) -> Race | None:
        if not found.any():
            return None
        k = int(np.flatnonzero(found)[0])
        e = int(at[k])
        return Race(e, int(threads[k]), int(by.thread[e]), int(by.statement[e]), verbs)


def _relation(a: Array, b: Array, clock: Clock) -> Array:
    """Returns the smallest group that both threads are in."""
    near = np.where(clock.warp[a] == clock.warp[b], OF_WARP, OF_BLOCK)
    found: Array = np.where(a == b, ALONE, np.where(clock.block[a] == clock.block[b], near, OF_GRID))
    return found
