"""Output dependences (write after write): whether a block that has moved is still ordered with other writers of its buffers."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from weft.ir import ONE, Expr, Var, free_vars, substitute
from weft.loop import AxisKind, Block, For, Function, Range, Stmt, Store
from weft.schedule.cursors.state import BlockRef
from weft.schedule.cursors.tree import Path, block_path, loops_on, the_block
from weft.schedule.legality.bijection import is_bijective, is_injective_in_loop, reduces_all
from weft.schedule.legality.flow_dependence import (
    Access,
    Uses,
    common_length,
    is_before,
    is_covered,
    is_defined,
    is_finished,
    is_spread,
    uses_under,
)
from weft.schedule.legality.placement import read_buffers, refuse_other_writer, written_buffers
from weft.schedule.legality.reaching_writes import is_pure


def check_output_dependences(before: Function, fn: Function, moved: str) -> None:
    """Refuses *fn*, in which the block *moved* has another place than *before*, if that breaks an output dependence.

    Three kinds of writers may recompute elements and run earlier than before: the only writer of a buffer; of several copies of
    a block, made by partitioning a loop, the first one; and a last writer that overwrites all elements read after it. Any other
    block, such as one beside the initialisation of a reduction, must run each instance exactly once, and keep its order with
    every access of its element.
    """
    old, new = (block_path(f, BlockRef(moved)) for f in (before, fn))
    block = the_block(old)
    for buffer in written_buffers(block):
        uses = uses_under((before.body,))[buffer]
        own = [w for w in uses.writes if w.block is block]
        others = [w for w in uses.writes if w.block is not block]
        if not others or _is_first_of_copies(before, fn, new, uses):
            continue
        if all(_hides(before, fn, Access(new, w.region), w, uses) for w in own):
            continue
        if not (is_bijective(before, old) and is_bijective(fn, new)):
            refuse_other_writer(block, others[0].block)
        for then in own:
            _check_order(before, then, fn, Access(new, then.region), uses)


def _check_order(before: Function, then: Access, fn: Function, now: Access, uses: Uses) -> None:
    """Refuses a write that is not ordered *now* with each access of its buffer by other blocks, of *uses*, as it was *then*."""
    writes = [w for w in uses.writes if w.block is not then.block]
    for write in writes:
        if not (_keeps_order(before, then, write, fn, now) or _stays_started(before, then, write, fn, now)):
            refuse_other_writer(then.block, write.block)
    for read in [r for r in uses.reads if r.block is not then.block]:
        fed = _keeps_order(before, then, read, fn, now) or _is_fed(before, then, read, fn, now, _moved(fn, read))
        if not fed:
            refuse_other_writer(then.block, writes[0].block)


def _is_first_of_copies(before: Function, fn: Function, new: Path, uses: Uses) -> bool:
    """Tells whether the block at *new* is a copy of all other writers, which come later and recompute its elements.

    Such an element has one value, whichever copy computes it and when, since its inputs have; but no block may read a reduction
    before it is complete.
    """
    block = the_block(new)
    others = [w for w in uses.writes if w.block.name != block.name]
    if not all(is_pure(before, b) for b in read_buffers(block)):
        return False
    if not all(_is_copy(w.block, block) and is_before(new, _moved(fn, w).path) for w in others):
        return False
    return block.init is None or (_run_as_wholes(before, uses) and _run_as_wholes(fn, _moved_uses(fn, uses)))


def _hides(before: Function, fn: Function, now: Access, then: Access, uses: Uses) -> bool:
    """Tells whether a block overwrites the values of the other writers before all later reads, at *then* as at *now*.

    The other writers, and reads before the block, share no loop with it; it writes all elements that are read after it. At the
    new place it may run additional instances: their inputs must be available there.
    """
    known = uses_under((before.body,))
    reads_inputs_only = not any(known[b].writes for b in read_buffers(then.block))
    if not reads_inputs_only or not is_defined(then):
        return False
    earlier = [x for x in (*uses.writes, *uses.reads) if x.block is not then.block and is_before(x.path, then.path)]
    later = [r for r in uses.reads if r.block is not then.block and r not in earlier]
    if any(w.block is not then.block and w not in earlier for w in uses.writes):
        return False
    apart = all(_stays_apart(x, then, _moved(fn, x), now) for x in earlier)
    return apart and all(_is_fed(before, then, r, fn, now, _moved(fn, r)) for r in later)


def _stays_apart(earlier: Access, then: Access, moved: Access, now: Access) -> bool:
    """Tells whether *earlier* precedes the access *then*, and *moved* precedes *now*, with no loop around both of either pair."""
    return is_before(moved.path, now.path) and not _share_loops(earlier, then) and not _share_loops(moved, now)


def _share_loops(a: Access, b: Access) -> bool:
    return any(isinstance(s, For) and s.extent is not ONE for s in a.path[: common_length(a.path, b.path)])


def _is_copy(a: Block, b: Block) -> bool:
    """Tells whether two blocks store the same values at the same axes; a reduction must include its initialisation, too."""
    kinds = {AxisKind.SPATIAL} if a.init is None else {AxisKind.SPATIAL, AxisKind.REDUCE}
    if len(a.axes) != len(b.axes) or (a.init is None) is not (b.init is None):
        return False
    pairs = list(zip(a.axes, b.axes, strict=True))
    if not all(i.kind is j.kind and i.kind in kinds and i.extent is j.extent for i, j in pairs):
        return False
    if any(r.buffer is w.buffer for r in a.reads for w in a.writes):
        return False
    same: dict[Var, Expr] = {i.var: j.var for i, j in pairs}
    return _stores_same(a.body, b.body, same) and (a.init is b.init is None or _stores_same(a.init, b.init, same))


def _stores_same(a: Stmt | None, b: Stmt | None, same: Mapping[Var, Expr]) -> bool:
    if not (isinstance(a, Store) and isinstance(b, Store) and a.mask is b.mask is None and a.buffer is b.buffer):
        return False
    pairs = zip((*a.indices, a.value), (*b.indices, b.value), strict=True)
    return all(substitute(x, same) is y for x, y in pairs)


def _run_as_wholes(fn: Function, uses: Uses) -> bool:
    """Tells whether each reduction into a buffer is complete before any other access of it."""
    accesses = (*uses.writes, *uses.reads)
    return all(
        reduces_all(fn, w.path)
        and all(
            is_finished(w.path, w.path[: common_length(w.path, x.path)]) for x in accesses if x.block is not w.block
        )
        for w in uses.writes
    )


def _moved_uses(fn: Function, uses: Uses) -> Uses:
    return Uses(tuple([_moved(fn, w) for w in uses.writes]), tuple([_moved(fn, r) for r in uses.reads]), ())


def _stays_started(before: Function, then: Access, other: Access, fn: Function, now: Access) -> bool:
    """Tells whether *other* initialises a reduction: it stores once to each element, before the block does, *then* as *now*."""
    once = all(a.kind is AxisKind.SPATIAL for a in other.block.axes) and is_spread(before, other)
    return once and is_bijective(before, other.path) and _is_fed(before, other, then, fn, _moved(fn, other), now)


def _keeps_order(before: Function, then: Access, other: Access, fn: Function, now: Access) -> bool:
    """Tells whether each access of an element in *other* keeps its order with the block, *now* as *then*."""
    moved = _moved(fn, other)
    if not (_meet_in_one_iteration(before, then, other) and _meet_in_one_iteration(fn, now, moved)):
        return False
    return is_before(other.path, then.path) == is_before(moved.path, now.path)


def _is_fed(before: Function, write: Access, then: Access, fn: Function, moved: Access, now: Access) -> bool:
    """Tells whether the results of *write* are complete when they are used, *before* as in *fn*, where both may have moved."""
    return is_covered(before, [write], then) and is_covered(fn, [moved], now)


def _moved(fn: Function, access: Access) -> Access:
    return Access(block_path(fn, BlockRef(access.block.name)), access.region)


def _meet_in_one_iteration(fn: Function, a: Access, b: Access) -> bool:
    """Tells whether *a* and *b* access an element only in the same iteration of the loops that they share.

    Each of these loops that runs more than once must move one index of both accesses, by steps larger than the range of the loops
    inside it.
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
    return isinstance(i.begin, Var) and is_injective_in_loop(fn, a.path, f, i.begin)


def _binding(access: Access, r: Range) -> Expr | None:
    """Returns the binding of the axis if the index *r* is a plain axis; None if it is not."""
    pairs = zip(access.block.axes, access.block.bindings, strict=True)
    return next((b for a, b in pairs if a.var is r.begin and r.extent is ONE), None)
