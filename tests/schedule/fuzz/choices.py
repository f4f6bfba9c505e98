"""What a random step may be tried on: mostly loops and blocks where it makes sense, now and then any."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from weft.ir import ZERO, Const, free_vars
from weft.loop import (
    Alloc,
    AxisKind,
    Block,
    Buffer,
    For,
    LoopKind,
    Store,
    TensorInstruction,
    find_note,
    statements,
    sub_statements,
)
from weft.schedule import BlockRef, LoopRef, Schedule, blocks_in
from weft.schedule.cursors.tree import alloc_of, block_path, loops_on, the_block
from weft.schedule.legality.placement import readers, written_buffers
from weft.support.errors import ScheduleError

T = TypeVar("T")
WILD = 0.15
"""How often a choice looks at no reason at all."""


def choice(r: random.Random, some: Sequence[T], otherwise: Sequence[T]) -> T:
    """One of *some*; now and then any at all. Raises `ScheduleError` where there is none."""
    known = otherwise if r.random() < WILD else some
    if not known:
        raise ScheduleError("there is nothing to try this step on")
    return r.choice(known)


def all_loops(s: Schedule) -> list[For]:
    """All loops outside of instructions."""
    found: list[For] = []
    stack = [s.function.body]
    while stack:
        t = stack.pop()
        if isinstance(t, For):
            found.append(t)
        if not (isinstance(t, Block) and find_note(t.notes, TensorInstruction)):
            stack += reversed(sub_statements(t))
    return found


def pick_loop(s: Schedule, r: random.Random, wanted: Callable[[For], bool] = lambda f: True) -> LoopRef:
    """A loop, mostly one that is *wanted*."""
    loops = all_loops(s)
    return LoopRef(choice(r, [f for f in loops if wanted(f)], loops).var)


def pick_block(s: Schedule, r: random.Random, wanted: Callable[[Block], bool] = lambda b: True) -> BlockRef:
    """A block, mostly one that is *wanted*."""
    blocks = blocks_in(s.function.body)
    return BlockRef(choice(r, [b for b in blocks if wanted(b)], blocks).name)


def block_of(s: Schedule, ref: BlockRef) -> Block:
    """The block that is meant."""
    return the_block(block_path(s.function, ref))


def around(s: Schedule, block: Block) -> list[For]:
    """The loops around *block*, outermost first."""
    return loops_on(block_path(s.function, BlockRef(block.name)))


def length(f: For) -> int | None:
    """The number of iterations, if it is constant."""
    return int(f.extent.value) if isinstance(f.extent, Const) else None


def is_plain(f: For) -> bool:
    """Whether a loop is serial, begins at 0, and runs more than once."""
    return f.kind is LoopKind.SERIAL and f.begin is ZERO and length(f) != 1


def is_spatial(f: For) -> bool:
    """Whether a serial loop moves the blocks in it along spatial axes only."""
    inside = [(a, e) for b in blocks_in(f) for a, e in zip(b.axes, b.bindings, strict=True)]
    return f.kind is LoopKind.SERIAL and all(
        a.kind is AxisKind.SPATIAL or all(v is not f.var for v in free_vars(e)) for a, e in inside
    )


def chain_from(f: For) -> list[For]:
    """A loop and those directly inside it."""
    found = [f]
    while isinstance(found[-1].body, For):
        found.append(found[-1].body)
    return found


def is_kept(s: Schedule, b: Block) -> bool:
    """Whether *b* writes a buffer that is allocated in the function, and something reads it."""
    return all(alloc_of(s.function.body, x) is not None for x in written_buffers(b)) and bool(readers(s.function, b))


def is_assignment(b: Block) -> bool:
    """Whether *b* is one assignment that reads nothing it writes."""
    return b.init is None and isinstance(b.body, Store) and all(x.buffer is not b.body.buffer for x in b.reads)


def makers(s: Schedule, b: Block) -> list[Block]:
    """The blocks that make what *b* reads."""
    read = {x.buffer for x in b.reads}
    return [m for m in blocks_in(s.function.body) if m is not b and read & set(written_buffers(m))]


def intermediates(s: Schedule) -> list[Buffer]:
    """The buffers that the function allocates."""
    return [t.buffer for t in statements(s.function.body) if isinstance(t, Alloc)]
