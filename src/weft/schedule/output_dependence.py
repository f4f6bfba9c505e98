"""Output dependences (write after write): whether a block that has moved is still ordered with other writers of its buffers."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from weft.ir.expr import ONE, Expr, Var
from weft.ir.rewrite import free_vars, substitute
from weft.loop.nodes import AxisKind, Block, For, Function, Range, Store
from weft.schedule.bijection import is_bijective, is_told_apart
from weft.schedule.dependence import Access, is_before, is_fed, uses_under
from weft.schedule.inputs import is_pure
from weft.schedule.placing import read_buffers, refuse_other_writer, written_buffers
from weft.schedule.state import BlockRef
from weft.schedule.tree import Path, block_path, loops_on, the_block


def check_output_dependences(before: Function, fn: Function, moved: str) -> None:
    """Refuses *fn*, in which the block *moved* has another place than *before*, if that breaks an output dependence.

    The only writer of a buffer may recompute elements, and run earlier than it did; so may one of several copies of a block, made
    by partitioning a loop, ahead of the others. Where other blocks write the same buffer, such as the initialisation of a
    reduction, each instance must run exactly once, and stay before or after every access of its element as it was.
    """
    old, new = (block_path(f, BlockRef(moved)) for f in (before, fn))
    block = the_block(old)
    for buffer in written_buffers(block):
        uses = uses_under((before.body,))[buffer]
        others = [w for w in uses.writes if w.block is not block]
        if not others or _is_first_of_copies(before, fn, new, others):
            continue
        if not (is_bijective(before, old) and is_bijective(fn, new)):
            refuse_other_writer(block, others[0].block)
        for own in [w for w in uses.writes if w.block is block]:
            then, now = own, Access(new, own.region)
            for other in others:
                if not _keeps_order(before, then, other, fn, now):
                    refuse_other_writer(block, other.block)
            for read in [r for r in uses.reads if r.block is not block]:
                if not (_keeps_order(before, then, read, fn, now) or _is_fed(before, then, read, fn, now)):
                    refuse_other_writer(block, others[0].block)


def _is_first_of_copies(before: Function, fn: Function, new: Path, others: list[Access]) -> bool:
    """Tells whether the block at *new* is a copy of all *others*, which come later and compute their elements once more.

    Whoever computes such an element, and when, it has one value, as what it is computed from has.
    """
    block = the_block(new)
    if not all(is_pure(before, b) for b in read_buffers(block)):
        return False
    return all(_is_copy(w.block, block) and is_before(new, _moved(fn, w).path) for w in others)


def _is_copy(a: Block, b: Block) -> bool:
    """Tells whether two blocks store the same at the same axes, all spatial, and read nothing of what they store."""
    x, y = a.body, b.body
    if not (isinstance(x, Store) and isinstance(y, Store) and x.mask is y.mask is None):
        return False
    if len(a.axes) != len(b.axes) or any(axis.kind is not AxisKind.SPATIAL for axis in (*a.axes, *b.axes)):
        return False
    if any(r.buffer is x.buffer for r in a.reads):
        return False
    same = {i.var: j.var for i, j in zip(a.axes, b.axes, strict=True)}
    pairs = zip((*x.indices, x.value), (*y.indices, y.value), strict=True)
    return x.buffer is y.buffer and all(substitute(i, same) is j for i, j in pairs)


def _keeps_order(before: Function, then: Access, other: Access, fn: Function, now: Access) -> bool:
    """Tells whether each access of an element in *other* is before or after the block *now* as it was *then*."""
    moved = _moved(fn, other)
    if not (_meet_in_one_iteration(before, then, other) and _meet_in_one_iteration(fn, now, moved)):
        return False
    return is_before(other.path, then.path) == is_before(moved.path, now.path)


def _is_fed(before: Function, then: Access, read: Access, fn: Function, now: Access) -> bool:
    """Tells whether what the block makes is complete when *read*, *then* as *now*."""
    return is_fed(before, [then], read) and is_fed(fn, [now], _moved(fn, read))


def _moved(fn: Function, access: Access) -> Access:
    return Access(block_path(fn, BlockRef(access.block.name)), access.region)


def _meet_in_one_iteration(fn: Function, a: Access, b: Access) -> bool:
    """Tells whether no element is touched by *a* in one iteration of the loops that they share, and by *b* in another.

    Each of these loops that runs more than once must move an index of both, the same one, whose steps the loops inside it never
    make up for.
    """
    around = {f.var for f in loops_on(b.path)}
    shared = [f for f in loops_on(a.path) if f.var in around and f.extent is not ONE]
    known = {f.var for f in shared}
    pairs = list(zip(a.region.ranges, b.region.ranges, strict=True))
    return all(any(_tells_apart(fn, f, a, i, b, j, known) for i, j in pairs) for f in shared)


def _tells_apart(fn: Function, f: For, a: Access, i: Range, b: Access, j: Range, known: AbstractSet[Var]) -> bool:
    binding = _binding(a, i)
    if binding is None or binding is not _binding(b, j) or not known >= set(free_vars(binding)):
        return False
    return isinstance(i.begin, Var) and is_told_apart(fn, a.path, f, i.begin)


def _binding(access: Access, r: Range) -> Expr | None:
    """Returns what the axis is bound to that alone is the index *r*; None if it is another."""
    pairs = zip(access.block.axes, access.block.bindings, strict=True)
    return next((b for a, b in pairs if a.var is r.begin and r.extent is ONE), None)
