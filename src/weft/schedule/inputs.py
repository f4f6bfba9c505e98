"""Whether a block that has moved reads what it read before."""

from __future__ import annotations

from weft.ir.prove import prove
from weft.loop.nodes import Function
from weft.schedule.dependence import Access, is_before, is_fed, uses_under
from weft.schedule.placing import read_buffers
from weft.schedule.region import ends_over
from weft.schedule.state import BlockRef, refuse
from weft.schedule.tree import Path, block_path, bounds_on, loops_on, regions_of, the_block


def check_inputs(before: Function, moved: str, fn: Function, block: str) -> None:
    """Refuses *fn* if *block* may read other values there than the block *moved* read *before*.

    They are one block at two places, or *block* has taken in the formula of *moved*. Writes of what is read must stay on the same
    side, and be complete where they come first: those in a loop around the block in each iteration. Writes that never touch
    what is read in the same iteration of the loops around both do not matter.
    """
    old, new = block_path(before, BlockRef(moved)), block_path(fn, BlockRef(block))
    reader = the_block(new)
    written = uses_under((fn.body,))
    for buffer in read_buffers(the_block(old)):
        reads = [Access(new, r) for r in regions_of(reader.reads, buffer)]
        for w in written[buffer].writes if buffer in written and reads else ():
            if w.block.name == block or _is_apart(old, block_path(before, BlockRef(w.block.name)), fn, w, reads):
                continue
            _check_write(before, old, fn, w, reads, moved)


def _check_write(before: Function, old: Path, fn: Function, w: Access, reads: list[Access], moved: str) -> None:
    """Refuses a write that the block passes, or that is not complete before it."""
    new = reads[0].path
    is_shared = bool(_variables(w.path) & _variables(new))
    if is_before(old, block_path(before, BlockRef(w.block.name))):
        if is_shared or not is_before(new, w.path):
            refuse(f"{w.block.name}, which comes later, writes what {moved} reads", w.block)
    elif not is_before(w.path, new):
        refuse(f"{w.block.name}, which comes later, makes what {moved} reads", w.block)
    elif is_shared and not all(is_fed(fn, [w], r) for r in reads):
        refuse(f"{w.block.name} has not made all that {moved} reads when it runs there", w.block)


def _is_apart(old: Path, old_write: Path, fn: Function, w: Access, reads: list[Access]) -> bool:
    """Tells whether no iteration of the loops that the write and the block share both writes and reads an element."""
    shared = _variables(old) & _variables(old_write)
    if not shared or not shared <= _variables(reads[0].path):
        return False
    return all(_is_disjoint(fn, w, r, shared) for r in reads)


def _variables(path: Path) -> set[object]:
    return {f.var for f in loops_on(path)}


def _is_disjoint(fn: Function, a: Access, b: Access, shared: set[object]) -> bool:
    """Tells whether two accesses touch different elements in each iteration of the *shared* loops."""
    for x, y in zip(a.region.ranges, b.region.ranges, strict=True):
        first, second = (
            ends_over(s.block, r, [f for f in s.loops if f.var not in shared], bounds_on(s.path, fn))
            for s, r in ((a, x), (b, y))
        )
        if first is None or second is None:
            continue
        bounds = bounds_on(a.path, fn)
        if prove(first[1] < second[0], bounds) or prove(second[1] < first[0], bounds):
            return True
    return False
