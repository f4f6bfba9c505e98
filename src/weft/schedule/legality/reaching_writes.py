"""Reaching definitions: whether a block that has moved still reads the values it read before."""

from __future__ import annotations

from weft.ir import Var
from weft.loop import AxisKind, Buffer, Function
from weft.schedule.cursors.state import BlockRef, refuse
from weft.schedule.cursors.tree import Path, block_path, loops_on, regions_of, the_block
from weft.schedule.legality.flow_dependence import Access, is_before, is_covered, is_disjoint, is_finished, uses_under
from weft.schedule.legality.placement import read_buffers


def check_reaching_writes(before: Function, moved: str, fn: Function, block: str) -> None:
    """Refuses *fn* if *block* may read other values there than the block *moved* read *before*.

    They are one block at two places, or *block* has inlined the formula of *moved*. Writes to its inputs must stay before or
    after it, and those before it must be complete: those in a loop around the block in each iteration. Writes that never touch
    the elements read in the same iteration of the loops around both do not matter.
    """
    old, new = block_path(before, BlockRef(moved)), block_path(fn, BlockRef(block))
    reader = the_block(new)
    written = uses_under((fn.body,))
    for buffer in read_buffers(the_block(old)):
        reads = [Access(new, r) for r in regions_of(reader.reads, buffer)]
        for w in written[buffer].writes if buffer in written and reads else ():
            then = block_path(before, BlockRef(w.block.name))
            if w.block.name != block and not _is_apart(old, then, fn, w, reads):
                _check_write(before, old, then, fn, w, reads, moved)


def _check_write(
    before: Function, old: Path, then: Path, fn: Function, w: Access, reads: list[Access], moved: str
) -> None:
    """Refuses a write, once at *then*, that the block moves past, that is not complete before it, or that has changed."""
    new = reads[0].path
    shared_then, shared_now = _variables(old) & _variables(then), _variables(w.path) & _variables(new)
    if is_before(old, then):
        if shared_then or shared_now or not is_before(new, w.path):
            refuse(f"{w.block.name}, which comes later, writes what {moved} reads", w.block, "choose a place before it")
        return
    if not is_before(w.path, new):
        refuse(
            f"{w.block.name}, which comes later, makes what {moved} reads",
            w.block,
            "move that block first, or choose a later place",
        )
    if shared_now and not all(is_covered(fn, [w], r) for r in reads):
        refuse(
            f"{w.block.name} has not made all that {moved} reads when it runs there",
            w.block,
            "choose a loop further out, or move that block out of the loop first",
        )
    around = [f for f in loops_on(old) if f.var in shared_then]
    if not shared_then <= shared_now and not (is_finished(then, around) and is_pure(before, w.region.buffer)):
        refuse(
            f"{w.block.name} may have changed what {moved} reads when it runs there",
            w.block,
            "choose a place before the change",
        )


def is_pure(fn: Function, buffer: Buffer) -> bool:
    """Tells whether each element of *buffer* can only ever have one value, however often it is computed."""
    uses = uses_under((fn.body,))
    pending, seen = [buffer], {buffer}
    while pending:
        found = uses.get(pending.pop())
        if found is None or not found.writes:
            continue
        first = found.writes[0]
        if found.own_reads or any(w.path != first.path for w in found.writes):
            return False
        if not all(is_before(first.path, r.path) for r in found.reads):
            return False
        block = first.block
        if any(a.kind not in (AxisKind.SPATIAL, AxisKind.REDUCE) for a in block.axes):
            return False
        inputs = set(read_buffers(block)) - seen
        seen |= inputs
        pending += inputs
    return True


def _is_apart(old: Path, old_write: Path, fn: Function, w: Access, reads: list[Access]) -> bool:
    """Tells whether no iteration of the loops that the write and the block share both writes and reads an element."""
    shared = _variables(old) & _variables(old_write)
    if not shared or not shared <= _variables(reads[0].path):
        return False
    return all(is_disjoint(fn, w, r, shared) for r in reads)


def _variables(path: Path) -> set[Var]:
    return {f.var for f in loops_on(path)}
