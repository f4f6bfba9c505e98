"""The form of a grid of threads in a program: its bound loops, and the visibility of buffers.

Between loops over blocks and loops over threads stands the code of a block. There a bound loop is a *phase*: its iterations are
threads, all of them independent, and statements after the loop run after all of them.
"""

from __future__ import annotations

from typing import Final

from weft.loop import For, LoopKind, Stmt, Thread, find_note, statements

BLOCKS: Final = ("blockIdx.z", "blockIdx.y", "blockIdx.x")
THREADS: Final = ("threadIdx.z", "threadIdx.y", "threadIdx.x")
"""From the slowest to the fastest axis: threads that differ in x only are adjacent."""


def axis_of(s: Stmt) -> str | None:
    """Returns the axis of blocks or threads that *s* is a loop over; None for any other statement."""
    if not isinstance(s, For) or s.kind is not LoopKind.BOUND:
        return None
    thread = find_note(s.notes, Thread)
    return None if thread is None or thread.axis not in (*BLOCKS, *THREADS) else thread.axis


def is_over_blocks(s: Stmt) -> bool:
    """Tells whether *s* is a loop over blocks."""
    return axis_of(s) in BLOCKS


def is_over_threads(s: Stmt) -> bool:
    """Tells whether *s* is a loop over threads."""
    return axis_of(s) in THREADS


def has_grid(s: Stmt) -> bool:
    """Tells whether there is a loop over blocks or threads in *s*."""
    return any(axis_of(x) is not None for x in statements(s))
