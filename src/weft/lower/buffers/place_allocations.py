"""Moves each allocation to the innermost statement that encloses all uses of the buffer.

    alloc B[8, 4]                         for i in range(8):
    for i in range(8):                        alloc B[8, 4]
        for j in range(4):           ->       for j in range(4):
            B[i, j] = A[i, j] + 1                 B[i, j] = A[i, j] + 1
        C[i] = B[i, 0] + B[i, 3]              C[i] = B[i, 0] + B[i, 3]

An allocation moves into a loop only if no value is carried from one iteration to the next: each read must be covered by
writes of the same iteration that do not depend on the previous contents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir import ONE, ZERO, Bounds, Expr, Lt, Var, extremes, free_vars, prove, reads_memory, substitute
from weft.loop import Alloc, Block, Buffer, For, Function, Program, Seq, Stmt, While, meet, seq, without_moot_notes
from weft.lower.analysis.buffer_accesses import (
    Place,
    Use,
    Uses,
    common_place,
    find_uses,
    is_conditional,
    vars_between,
)
from weft.lower.stmt_rewriter import Steps, StmtRewriter, Visited, map_functions


def place_allocations(program: Program) -> Program:
    """Returns *program* with each allocation as far in as it may go; those of buffers without any use are dropped."""
    placed = map_functions(program, _placed)
    functions = tuple([without_moot_notes(f) for f in placed.functions])
    return placed if functions == placed.functions else Program(functions)


def _placed(function: Function) -> Stmt:
    uses = find_uses(function)
    if not uses.allocs:
        return function.body
    spans = [_span(b, uses) for b in uses.allocs if uses.of[b]]
    return _Move(spans, set(uses.allocs)).rewrite(function.body)


@dataclass
class Span:
    """Where an allocation goes: around statement number *order*, or around parts *first* to *last* of a sequence."""

    buffer: Buffer
    order: int
    first: int
    last: int


def _span(buffer: Buffer, uses: Uses) -> Span:
    mine = uses.of[buffer]
    target = innermost_legal(buffer, mine, uses.allocs[buffer])
    if not isinstance(target.stmt, Seq):
        return Span(buffer, target.order, 0, 0)
    parts = [_part_below(u.place, target) for u in mine]
    return Span(buffer, target.order, min(parts), max(parts))


def _part_below(place: Place, ancestor: Place) -> int:
    while place.parent is not None and place.parent is not ancestor:
        place = place.parent
    return place.child


def innermost_legal(buffer: Buffer, uses: list[Use], alloc: Place) -> Place:
    """Returns the innermost place that may hold the allocation of *buffer*, with all its *uses*."""
    target = common_place(uses)
    inside = target.below(alloc)[:-1]
    if not any(isinstance(p.stmt, For | While | Block) for p in inside):
        return target
    covers = [[w.reduced for w in uses if _covers(buffer, w, r)] for r in uses if r.reads]
    for p in inside:
        if isinstance(p.stmt, While | Block) or (isinstance(p.stmt, For) and _carries(covers, p)):
            return p
    return target


def _carries(covers: list[list[frozenset[Var]]], loop: Place) -> bool:
    """Answers whether an iteration of *loop* may read elements that another one wrote.

    *covers* has, for each read, the reduction loops of each write that covers it: these must run inside an iteration.
    """
    fixed = frozenset(vars_between(None, loop))
    return any(not any(reduced.isdisjoint(fixed) for reduced in writes) for writes in covers)


def _covers(buffer: Buffer, w: Use, r: Use) -> bool:
    """Answers whether *w* surely writes all elements that *r* reads, before *r*, in each run of the statements around both.

    A reduction with an init covers its reads of its own result.
    """
    if not w.defines or w.place.order > r.place.order:
        return False
    if w.place is r.place:
        return w.box == r.box
    around = meet(w.place, r.place)
    if is_conditional(around, w.place):
        return False
    if w.guard and _is_same(w, r, around):
        return True
    if any(_limited(c) not in [first for first, last in w.box if first is last] for c in w.guard):
        return False
    ranges = zip(_clipped(w, around), _clipped(r, around), buffer.shape, strict=True)
    return all(_includes(a, b, size) for a, b, size in ranges)


def _limited(condition: Expr) -> Expr | None:
    """Returns the expression that an upper bound limits; None for another condition."""
    return condition.a if isinstance(condition, Lt) else None


def _clipped(use: Use, around: Place) -> list[End | None]:
    """Returns the ranges that *use* accesses inside *around*, up to the limits that its guard sets to single indices."""
    limits = {c.a: c.b - ONE for c in use.guard if isinstance(c, Lt)}
    found: list[End | None] = []
    for (first, last), end in zip(use.box, relaxed(use, around), strict=True):
        limit = limits.get(first) if first is last else None
        if end is not None and limit is not None and prove(limit <= end[1], end[2]):
            end = (end[0], limit, end[2])
        found.append(end)
    return found


def _is_same(w: Use, r: Use, around: Place) -> bool:
    """Tells whether *r* reads, with other loops, just the single elements that *w* writes, or a subset of them by its guard."""
    names: dict[Var, Expr] = {}
    for (i, _), (k, _) in zip(w.box, r.box, strict=True):
        inside = [[v for v in free_vars(e) if v in vars_between(around, u.place)] for e, u in ((i, w), (k, r))]
        names.update(zip(*inside, strict=False))
    box = tuple([(substitute(first, names), substitute(last, names)) for first, last in w.box])
    return (
        box == r.box
        and all(first is last for first, last in w.box)
        and all(w.place.bounds.ranges[a] == r.place.bounds.ranges[b] for a, b in names.items() if isinstance(b, Var))
        and all(substitute(c, names) in r.guard for c in w.guard)
    )


End = tuple[Expr, Expr, Bounds]


def relaxed(use: Use, outer: Place | None) -> list[End | None]:
    """Returns the first and the last index that *use* accesses over all loops inside *outer*, by dimension."""
    variables = vars_between(outer, use.place)
    bounds = use.place.bounds
    found: list[End | None] = []
    for first, last in use.box:
        if reads_memory(first) or reads_memory(last):
            found.append(None)
            continue
        low = _extremes(first, variables, bounds)
        high = low if last is first else _extremes(last, variables, bounds)
        found.append(None if low is None or high is None else (low[0], high[1], bounds))
    return found


def _extremes(e: Expr, variables: list[Var], bounds: Bounds) -> tuple[Expr, Expr] | None:
    return extremes(e, variables, bounds) if any(v in variables for v in free_vars(e)) else (e, e)


def _includes(outer: End | None, inner: End | None, size: Expr) -> bool:
    """Tells whether a range includes the part of another one inside a dimension of *size*; nothing beyond it is accessed."""
    if outer is None or inner is None:
        return False
    first, last, bounds = outer
    return (first is inner[0] or prove(first <= inner[0], bounds) or prove(first <= ZERO, bounds)) and (
        last is inner[1] or prove(inner[1] <= last, bounds) or prove(size - ONE <= last, bounds)
    )


class _Move(StmtRewriter):
    """Drops the allocations that move, and puts them around their spans; statements are counted in pre-order."""

    def __init__(self, spans: Sequence[Span], moved: set[Buffer]) -> None:
        self.moved = moved
        self.spans: dict[int, list[Span]] = {}
        for s in spans:
            self.spans.setdefault(s.order, []).append(s)
        self.count = 0

    def visit(self, s: Stmt) -> Visited:
        mine = self.spans.get(self.count)
        self.count += 1
        if mine is None:
            return super().visit(s)
        return self._spanned(s, mine)

    def _spanned(self, s: Stmt, spans: list[Span]) -> Steps:
        if isinstance(s, Seq):
            parts = []
            for p in s.body:
                parts.append((yield p))
            return seq(*_nested(parts, spans))
        made = super().visit(s)
        result = made if isinstance(made, Stmt) else (yield from made)
        for span in reversed(spans):
            result = Alloc(span.buffer, result)
        return result

    def visit_alloc(self, s: Alloc) -> Steps:
        body = yield s.body
        return body if s.buffer in self.moved else Alloc(s.buffer, body)


def _nested(parts: list[Stmt], spans: list[Span]) -> list[Stmt]:
    """Wraps ranges of *parts* in allocations; where two ranges overlap, the one that begins first is made to hold the other."""
    waiting = sorted(spans, key=lambda s: (s.first, -s.last))
    result: list[Stmt] = []
    at = 0
    while waiting:
        lead, inner = waiting.pop(0), []
        last = lead.last
        while waiting and waiting[0].first <= last:
            inner.append(waiting.pop(0))
            last = max(last, inner[-1].last)
        group = [Span(s.buffer, 0, s.first - lead.first, s.last - lead.first) for s in inner]
        result += [*parts[at : lead.first], Alloc(lead.buffer, seq(*_nested(parts[lead.first : last + 1], group)))]
        at = last + 1
    return result + parts[at:]
