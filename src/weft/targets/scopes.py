"""Memory scopes: their visibility, their size, and the queue of an accelerator that fills them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Sight(IntEnum):
    """Who sees a memory: every thread of the grid, of a block, of a warp, or one thread alone; ordered by their number."""

    THREAD = 0
    WARP = 1
    BLOCK = 2
    GRID = 3


@dataclass(frozen=True)
class Scope:
    """A memory of a target: its name, who sees it, its size in bytes (None: not a limit), and the queue that fills it."""

    name: str
    sight: Sight
    bytes: int | None = None
    queue: str | None = None


GLOBAL: Final = Scope("global", Sight.GRID)
SHARED: Final = Scope("shared", Sight.BLOCK)
WARP: Final = Scope("warp", Sight.WARP)
LOCAL: Final = Scope("local", Sight.THREAD)
REGISTER: Final = Scope("register", Sight.THREAD)

SWIZZLED: Final = Scope("swizzled", Sight.BLOCK)
"""Memory of a block as tensor instructions read it: in each row of 128 bytes, the piece of 16 bytes numbered p lies where number
`p xor row % 8` would, so that pieces of one number in 8 rows are in different banks. It is part of the shared memory."""

DYNAMIC: Final = Scope("dynamic", Sight.BLOCK)
"""Shared memory whose size a launch tells, which may be more than a kernel may declare. Swizzled memory is a part of it."""

FRAGMENT: Final = Scope("fragment", Sight.WARP)
"""Matrices of a warp that tensor instructions take from the registers of its threads, each of which writes its own elements."""

TILE: Final = Scope("tile", Sight.THREAD)
"""Matrix registers of a core, which tensor instructions alone read and write."""

CPU_SCOPES: Final = (GLOBAL, LOCAL, REGISTER)

SIGHTS: Final = {s.name: s.sight for s in (GLOBAL, SHARED, SWIZZLED, DYNAMIC, WARP, FRAGMENT, LOCAL, REGISTER)}
"""The scopes of processors and grids. A memory of another name is an accelerator's, which has no threads: all see it."""


def sight_of(name: str) -> Sight:
    """Returns who sees the memory called *name*."""
    return SIGHTS.get(name, Sight.GRID)
