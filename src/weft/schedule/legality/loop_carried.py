"""Loop-carried dependences of a block on its own earlier instances, and the loop orders that preserve them.

S[t + 1, i] = S[t, i] + X[t, i]              i may move outside of t: both sides use the same i
S[t + 1, i] = S[t, i - 1] + X[t, i]          it may not: the step before is needed at another i
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from weft.ir import ONE, TRUE, Expr, Var, detect_iter_map, free_vars, simplify
from weft.loop import For, Function
from weft.schedule.cursors.tree import bounds_on
from weft.schedule.legality.access_region import at_loops
from weft.schedule.legality.bijection import is_injective_in_loop
from weft.schedule.legality.flow_dependence import Access, Uses, is_disjoint


def carried_read(fn: Function, uses: Uses, target: For, around: Collection[Var]) -> Access | None:
    """Returns a block's read of elements that another iteration of *target* may write, while the loops *around* it are fixed.

    Reads of the elements that the same instance writes do not count.
    """
    for r in uses.own_reads:
        if any(w.path != r.path or not _is_told(fn, w, r, target) for w in _written_elsewhere(fn, uses, r, around)):
            return r
    return None


def _is_told(fn: Function, w: Access, r: Access, target: For) -> bool:
    """Tells whether two accesses of a block to one element happen in the same iteration of *target*: they share an axis."""
    axes = {a.var for a in w.block.axes}
    shared = [x.begin for x, y in zip(w.region.ranges, r.region.ranges, strict=True) if x is y and x.extent is ONE]
    return any(isinstance(v, Var) and v in axes and is_injective_in_loop(fn, w.path, target, v) for v in shared)


def _written_elsewhere(fn: Function, uses: Uses, read: Access, around: Collection[Var]) -> list[Access]:
    if any(w.path == read.path and w.region is read.region for w in uses.writes):
        return []
    return [w for w in uses.writes if not is_disjoint(fn, w, read, around)]


def reordered_read(fn: Function, uses: Uses, around: Collection[Var], fixed: Sequence[For]) -> Access | None:
    """Returns a block's read that may precede the write it depends on, when all loops but *around* and *fixed* are reordered.

    Those of *fixed* keep their order. The read is safe if the indices that it shares with the writes determine all other loops:
    then two instances that access one element differ in fixed loops only.
    """
    for r in uses.own_reads:
        for w in _written_elsewhere(fn, uses, r, around):
            if w.path != r.path or not _share_all_but(fn, w, r, around, fixed):
                return r
    return None


def _share_all_but(fn: Function, w: Access, r: Access, around: Collection[Var], fixed: Sequence[For]) -> bool:
    """Tells whether two accesses of a block to one element happen at the same values of all loops but *fixed*."""
    bounds = bounds_on(w.path, fn)
    still = {f.var for f in fixed}
    pairs = zip(w.region.ranges, r.region.ranges, w.region.buffer.shape, strict=True)
    shared: list[tuple[Expr, Expr]] = []
    for x, y, size in pairs:
        index, other = (simplify(at_loops(w.block, e.begin), bounds) for e in (x, y))
        if index is other and x.extent is y.extent is ONE and still.isdisjoint(free_vars(index)):
            shared.append((index, size))
    moving = {f.var: f.extent for f in w.loops if f.var not in around and f.var not in still}
    found = detect_iter_map([i for i, _ in shared], moving, TRUE, [s for _, s in shared], bounds)
    return found is not None and found.injective
