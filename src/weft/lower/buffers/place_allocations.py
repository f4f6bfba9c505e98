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

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from weft.ir import (
    ONE,
    TRUE,
    ZERO,
    Bounds,
    Expr,
    Lt,
    Var,
    detect_iter_map,
    extremes,
    free_vars,
    linear_terms,
    prove,
    reads_memory,
    simplify,
    substitute,
)
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
    names, same = _shared(w, r, around)
    unmet = [c for c in w.guard if not _is_implied(substitute(c, names), r.guard, r.place.bounds)]
    rest = [d for d in range(len(w.box)) if d not in same]
    if not all(any(_limit(w, d, c, around) is not None for d in rest) for c in unmet):
        return False
    last = _clipped(r, r.guard, around)
    return _fills(w, rest, around) and all(
        any(_includes(first, end, buffer.shape[d]) for end in last[d])
        for d in rest
        for first in _clipped(w, unmet, around)[d]
    )


def _is_implied(condition: Expr, guard: Sequence[Expr], bounds: Bounds) -> bool:
    """Tells whether *guard* has the condition, or a stricter limit of the same sum."""
    if condition in guard:
        return True
    limits = [c.a - c.b for c in guard if isinstance(c, Lt)] if isinstance(condition, Lt) else []
    return isinstance(condition, Lt) and any(prove(condition.a - condition.b <= d, bounds) for d in limits)


def _limit(use: Use, d: int, condition: Expr, around: Place) -> Expr | None:
    """Returns the last index along a dimension for which *condition* holds, if it bounds the index from above.

    So does a bound of its position in the range that the loops inside *around* run through. None for another condition.
    """
    first, last = use.box[d]
    if not isinstance(condition, Lt) or first is not last:
        return None
    begin = ZERO if condition.a is first else simplify(first - condition.a, use.place.bounds)
    if any(v in vars_between(around, use.place) for v in free_vars(begin)):
        return None
    return begin + condition.b - ONE


def _clipped(use: Use, guard: Sequence[Expr], around: Place) -> list[list[End | None]]:
    """Returns, by dimension, ranges of which *use* accesses the shortest: that of loops inside *around*, and up to each limit."""
    found: list[list[End | None]] = []
    for d, end in enumerate(relaxed(use, around)):
        limits = [n for c in guard if (n := _limit(use, d, c, around)) is not None]
        found.append([end, *[(end[0], n, end[2]) for n in limits if end is not None]])
    return found


def _shared(w: Use, r: Use, around: Place) -> tuple[dict[Var, Expr], set[int]]:
    """Returns the dimensions along which *w* writes the very element that *r* reads, in the same iteration of other loops.

    The loops inside *around* that the index runs through come first, those of *w* with those of *r*, of the same ranges. Other
    dimensions depend on none of them, so that elements along those are written in each of their iterations.
    """
    names: dict[Var, Expr] = {}
    same: set[int] = set()
    inside = [_vars_of(use, around) for use in (w, r)]
    for d, ((i, last), (k, end)) in enumerate(zip(w.box, r.box, strict=True)):
        pairs = list(zip(inside[0][d], inside[1][d], strict=False))
        is_single = i is last and k is end and len(inside[0][d]) == len(inside[1][d])
        if not is_single or any(names.get(a, b) is not b for a, b in pairs):
            continue
        own: dict[Var, Expr] = dict(pairs)
        has_equal_ranges = all(w.place.bounds.ranges[a] == r.place.bounds.ranges[b] for a, b in pairs)
        if has_equal_ranges and simplify(substitute(i, own) - k, r.place.bounds) is ZERO:
            names.update(own)
            same.add(d)
    if any(v in names for d, found in enumerate(inside[0]) if d not in same for v in found):
        return {}, set()
    return names, same


def _fills(use: Use, dims: Sequence[int], around: Place) -> bool:
    """Tells whether *use* accesses all of a box along *dims*: neither lines at a distance nor a diagonal."""
    inside = _vars_of(use, around)
    moving = [d for d in dims if inside[d]]
    alone = [d for d in moving if all(set(inside[d]).isdisjoint(inside[k]) for k in moving if k != d)]
    rest = [d for d in moving if d not in alone or not _is_dense(use, d, inside[d])]
    return not rest or _are_as_many(use, rest, {v for d in rest for v in inside[d]}, around)


def _are_as_many(use: Use, dims: Sequence[int], variables: Collection[Var], around: Place) -> bool:
    """Tells whether the loops over *variables* access as many different elements as the box along *dims* has."""
    bounds, ends = use.place.bounds, relaxed(use, around)
    indices = [use.box[d][0] for d in dims]
    extents = _extents({v for i in indices for v in free_vars(i)}, bounds)
    is_single = all(use.box[d][0] is use.box[d][1] for d in dims)
    if not is_single or not extents.keys() >= set(variables):
        return False
    elements, count = _product([_width(ends[d]) for d in dims]), _product([extents[v] for v in variables])
    if elements is None or count is None or simplify(elements - count, bounds) is not ZERO:
        return False
    shape = [use.buffer.shape[d] for d in dims]
    inner = {v: n for v, n in extents.items() if v in variables}
    # a loop around them may be a base, or among the digits of a quotient
    return any(_is_injective(indices, loops, shape, bounds) for loops in (inner, extents))


def _is_injective(indices: Sequence[Expr], loops: Mapping[Var, Expr], shape: Sequence[Expr], bounds: Bounds) -> bool:
    found = detect_iter_map(indices, loops, TRUE, shape, bounds)
    return found is not None and found.injective


def _extents(variables: Collection[Var], bounds: Bounds) -> dict[Var, Expr]:
    """Returns the extents of those variables that are loops from 0."""
    ranges = {v: bounds.ranges.get(v, (None, None)) for v in variables}
    return {v: high + ONE for v, (low, high) in ranges.items() if low is ZERO and high is not None}


def _width(end: End | None) -> Expr | None:
    return None if end is None else simplify(end[1] - end[0] + ONE, end[2])


def _product(factors: Iterable[Expr | None]) -> Expr | None:
    """Returns the product; None if a factor is not known."""
    made: Expr = ONE
    for f in factors:
        if f is None:
            return None
        made *= f
    return made


def _is_dense(use: Use, d: int, variables: Sequence[Var]) -> bool:
    """Tells whether the ranges of a dimension adjoin or overlap as the loops over *variables* run."""
    first, last = use.box[d]
    bounds = use.place.bounds
    width = simplify(last - first + ONE, bounds)
    found = linear_terms(first, variables)
    if found is None or any(v in variables for v in free_vars(width)):
        return False
    left = dict(found[0])
    while left:
        v = next((v for v, k in left.items() if prove(k > ZERO, bounds) and prove(k <= width, bounds)), None)
        low, high = (None, None) if v is None else bounds.ranges[v]
        if v is None or low is None or high is None:
            return False
        width = simplify(width + left.pop(v) * (high - low), bounds)
    return True


def _vars_of(use: Use, around: Place) -> list[list[Var]]:
    """Returns, for each dimension, the loops inside *around* that its first and its last index run through."""
    variables = vars_between(around, use.place)
    return [[v for v in dict.fromkeys((*free_vars(a), *free_vars(b))) if v in variables] for a, b in use.box]


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
