"""`narrow`: the axes of a block shrink to the range of values for which it runs.

for i in range(0, 2):                                         for i in range(0, 2):
    vi in range(0, 6) = 4 + i                          ->         vi in range(0, 2) = i
    C[vi] = select(vi < 4, A[vi], B[vi - 4])                      C[vi + 4] = B[vi]
"""

from __future__ import annotations

from weft.ir import EMPTY, ONE, ZERO, Bounds, Const, Expr, Var, extremes, index, simplify, substitute
from weft.loop import Axis, AxisKind, Function, Stmt, Store, make_block
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change
from weft.schedule.cursors.tree import Path, block_path, bounds_on, loops_on, plain_store, replace, the_block


@primitive
def narrow(fn: Function, block: BlockRef) -> tuple[Change, None]:
    """Renumbers the values of the spatial axes of *block* from the first one for which it runs, and drops those after the last.

    Selects in its formula on conditions that are now constant are resolved. Legal for any block of one assignment or update; axes
    whose ends are not known stay as they are.
    """
    path = block_path(fn, block)
    old = the_block(path)
    store = plain_store(old)
    kept = {a.var: _part(a, e, path, fn) for a, e in zip(old.axes, old.bindings, strict=True)}
    axes = [Axis(Var(a.var.name), index(part[1]), a.kind) if (part := kept[a.var]) else a for a in old.axes]
    moved = {a.var: new.var + part[0] for a, new in zip(old.axes, axes, strict=True) if (part := kept[a.var])}
    outer, bounds = bounds_on(path, fn), EMPTY
    for a in axes:
        bounds = bounds.bind(a.var, ZERO, a.extent - ONE)
    bindings = [
        simplify(e - part[0], outer) if (part := kept[a.var]) else e
        for a, e in zip(old.axes, old.bindings, strict=True)
    ]
    body = _simplified(substitute(store, moved), bounds)
    init = None if old.init is None else _simplified(substitute(old.init, moved), bounds)
    made = make_block(old.name, axes, bindings, body, init, old.predicate, old.notes)
    return Change(fn.with_body(replace(path, made))), None


def _part(axis: Axis, binding: Expr, path: Path, fn: Function) -> tuple[int, int] | None:
    """Returns the first value of a spatial axis for which its block runs, and their number; None for all or unknown."""
    ends = extremes(binding, [f.var for f in loops_on(path)], bounds_on(path, fn))
    if axis.kind is not AxisKind.SPATIAL or ends is None or not isinstance(axis.extent, Const):
        return None
    low, high = ends
    if not isinstance(low, Const) or not isinstance(high, Const):
        return None
    first, last = max(0, int(low.value)), min(int(high.value), int(axis.extent.value) - 1)
    count = last - first + 1
    return (first, count) if 0 < count < int(axis.extent.value) else None


def _simplified(s: Stmt, bounds: Bounds) -> Stmt:
    if not isinstance(s, Store):
        return s
    mask = None if s.mask is None else simplify(s.mask, bounds)
    return Store(s.buffer, tuple([simplify(i, bounds) for i in s.indices]), simplify(s.value, bounds), mask)
