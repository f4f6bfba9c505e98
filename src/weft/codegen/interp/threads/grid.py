"""The threads of a grid that is being run, and the memories that they have."""

from __future__ import annotations

import numpy as np

from weft.codegen.interp.array_memory import Array
from weft.codegen.interp.threads.races import Clock, DivergenceError, Shadow
from weft.codegen.interp.threads.thread_lanes import Mask
from weft.loop import Buffer
from weft.targets import Grid as GridFacts
from weft.targets import Sight


class Memory:
    """The memory of a buffer: one row for each that has it to itself, be it the grid, a block, a warp or a thread."""

    def __init__(self, buffer: Buffer, flat: Array, sight: Sight) -> None:
        self.buffer = buffer
        self.flat = flat
        self.sight = sight
        self.shadow: Shadow | None = None


class Grid:
    """The threads that run now: which block and warp each is in, and the barriers they have passed.

    Threads are numbered block by block, and warp by warp in a block; the last warp of a block may be incomplete.
    """

    def __init__(self, count: int, blocks: int, facts: GridFacts) -> None:
        self.count, self.blocks = count, blocks
        self.of_block = count // blocks
        self.of_warp = facts.warp
        self.numbers = np.arange(count)
        self.block = self.numbers // self.of_block
        self.warps_of_block = -(-self.of_block // facts.warp)
        self.warp = self.block * self.warps_of_block + self.numbers % self.of_block // facts.warp
        self.warps = blocks * self.warps_of_block
        self.clock = Clock(self.block, self.warp, np.zeros(blocks, np.int64), np.zeros(self.warps, np.int64))

    def rows(self, sight: Sight) -> tuple[Array, int]:
        """Returns which row of a memory each thread has, and how many there are."""
        if sight is Sight.GRID:
            return np.zeros(self.count, np.int64), 1
        if sight is Sight.BLOCK:
            return self.block, self.blocks
        return (self.warp, self.warps) if sight is Sight.WARP else (self.numbers, self.count)

    def first_of_warp(self, threads: Array) -> Array:
        """Returns the number of the first thread in the warp of each of *threads*."""
        return self.numbers[threads] - self.numbers[threads] % self.of_block % self.of_warp

    def parts_of_warps(self, threads: Array, parts: int) -> Array:
        """Returns which part of its warp each of *threads* is in, warps being divided in so many."""
        number = self.numbers[threads] % self.of_block % self.of_warp
        return self.warp[threads] * parts + number * parts // self.of_warp

    def split(self, cond: Array, mask: Array | None) -> int:
        """Returns of how many warps some active threads are in *cond*, and others are not."""
        active = np.ones(self.count, bool) if mask is None else mask
        some = np.bincount(self.warp[cond], minlength=self.warps) > 0
        others = np.bincount(self.warp[active & ~cond], minlength=self.warps) > 0
        return int((some & others).sum())

    def called(self, thread: int) -> str:
        """Returns the name of a thread in messages."""
        return f"thread {thread % self.of_block} of block {self.block[thread]}"

    def pass_barrier(self, blocks: Array) -> None:
        """Lets the threads of *blocks* pass a barrier."""
        self.clock.of_block[blocks] += 1
        self.clock.of_warp[np.isin(np.arange(self.warps) // self.warps_of_block, blocks)] += 1


def meet(mask: Mask, groups: Array, count: int, what: str) -> Array:
    """Returns the groups of threads that reach a barrier; refuses those of which only some do."""
    if mask is None:
        return np.arange(count)
    here = np.bincount(groups[mask], minlength=count)
    partly = (here > 0) & (here < np.bincount(groups, minlength=count))
    if partly.any():
        k = int(np.flatnonzero(partly)[0])
        raise DivergenceError(
            f"only {here[k]} of the {int((groups == k).sum())} threads of {what} {k} come by a barrier",
            hint="put the condition inside, around what it guards",
        )
    return np.flatnonzero(here)
