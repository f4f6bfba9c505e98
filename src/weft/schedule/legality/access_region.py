"""The box of a buffer that a statement accesses, in terms of the loops around the statement.

An index is split as base(outer loops) + rest(inner loops); the box begins at the smallest value of the whole and its width
is that of the rest alone, so it never mentions an outer loop. A dimension whose range can't be computed is taken whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import ONE, ZERO, Bounds, Const, Ends, Expr, Var, extremes, free_vars, hull, prove, simplify, substitute
from weft.loop import Block, Buffer, For, Range, Stmt
from weft.schedule.cursors.tree import Path, bind_loop, loops_on, paths, regions_of
from weft.schedule.legality.iteration_domain import domain_of
from weft.schedule.legality.predicate_bounds import limits

Box = tuple[Range, ...]


def touched(root: Stmt, buffer: Buffer, bounds: Bounds, symbols: Sequence[Var], *, writes: bool) -> Box | None:
    """Returns the box of *buffer* that the blocks under *root* read (or write); None if they don't access it.

    *bounds* has the ranges of the loops around *root*; *symbols* are the variables that a width may mention.
    """
    ends: list[Ends | None] | None = None
    for path in paths(root):
        block = path[-1]
        if not isinstance(block, Block):
            continue
        for region in regions_of(block.writes if writes else block.reads, buffer):
            found = [_ends(path, r, bounds) for r in region.ranges]
            ends = found if ends is None else [hull(a, b, bounds) for a, b in zip(ends, found, strict=True)]
    if ends is None:
        return None
    return tuple([_range(e, size, bounds, symbols) for e, size in zip(ends, buffer.shape, strict=True)])


def at_loops(block: Block, e: Expr) -> Expr:
    """Returns the expression *e* of the axes of *block* in terms of the loops around it."""
    return substitute(e, {a.var: b for a, b in zip(block.axes, block.bindings, strict=True)})


def _ends(path: Path, r: Range, bounds: Bounds) -> Ends | None:
    """Returns the first and the last index of one dimension that a block accesses over the loops on *path*."""
    block = path[-1]
    if not isinstance(block, Block):
        return None
    inner = loops_on(path)
    for f in inner:
        bounds = bind_loop(bounds, f)
    return ends_over(block, r, inner, bounds)


def ends_over(block: Block, r: Range, inner: Sequence[For], bounds: Bounds) -> Ends | None:
    """Returns the first and the last index in *r* that *block* accesses as the loops *inner* run, where its guard holds.

    Both are in terms of the other loops, whose ranges *bounds* has too; None if they can't be computed.
    """
    memo = bounds.memo_for("ends over")
    key = (block, r, *[f.var for f in inner])
    if key not in memo:
        memo[key] = _ends_over(block, r, inner, bounds)
    found: Ends | None = memo[key]
    return found


def _ends_over(block: Block, r: Range, inner: Sequence[For], bounds: Bounds) -> Ends | None:
    variables = [f.var for f in inner]
    bounds = domain_of(block, inner, bounds).bounds
    first = simplify(at_loops(block, r.begin), bounds)
    last = first if r.extent is ONE else simplify(at_loops(block, r.begin + r.extent - ONE), bounds)
    low = extremes(first, variables, bounds)
    high = low if last is first else extremes(last, variables, bounds)
    if low is None or high is None:
        return None
    begin, end = low[0], high[1]
    for limit in limits(block, first, variables, bounds):
        if limit.first is not None and prove(begin <= limit.first, bounds):
            begin = limit.first
    for limit in limits(block, last, variables, bounds):
        if limit.last is not None and prove(limit.last <= end, bounds):
            end = limit.last
    known = all(v in bounds.ranges for e in (begin, end) for v in free_vars(e))
    return (begin, end) if known else None


def _range(ends: Ends | None, size: Expr, bounds: Bounds, symbols: Sequence[Var]) -> Range:
    """Returns the range between *ends*; the whole dimension where its width would depend on a loop, or would be no less."""
    whole = Range(ZERO, size)
    if ends is None:
        return whole
    width = simplify(ends[1] - ends[0] + ONE, bounds)
    if not all(v in symbols for v in free_vars(width)):
        return whole
    if isinstance(width, Const) and isinstance(size, Const) and int(width.value) >= int(size.value):
        return whole
    return Range(simplify(ends[0], bounds), width)
