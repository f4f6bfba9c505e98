"""Whether the loops around a block run each of its instances exactly once."""

from __future__ import annotations

from weft.ir.iter_map import IterMap, detect
from weft.loop.nodes import Function
from weft.schedule.tree import Path, bounds_on, loops_on, the_block


def instance_map(fn: Function, path: Path) -> IterMap | None:
    """Returns how the loops on *path* map to the axes of the block at its end, or None if that can't be told."""
    block = the_block(path)
    loops = {f.var: f.extent for f in loops_on(path)}
    extents = [a.extent for a in block.axes]
    return detect(block.bindings, loops, block.predicate, extents, bounds_on(path, fn))


def is_injective(fn: Function, path: Path) -> bool:
    """Tells whether no instance of the block at the end of *path* runs twice."""
    found = instance_map(fn, path)
    return found is not None and found.injective
