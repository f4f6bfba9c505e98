"""Cuts loops where a guard in them is decided, so that the long part runs without it.

    for i in range(7):                              for i in range(6):
        for j in range(4):                              for j in range(4):
            if i * 4 + j < 26:          ->                  B[i * 4 + j] = 0.0
                B[i * 4 + j] = 0.0                  for j in range(4):
                                                        if j < 2:
                                                            B[24 + j] = 0.0

The guards are the conditions of `if`s and of selects: tails of splits that do not divide, borders of padded windows, pieces of a
concatenation. A parallel loop is not cut but tests once for each iteration which of two bodies to run. The code grows, so
that only bodies within a size limit are copied, and the parts left over for the borders are not cut again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from weft.ir.bounds import Bounds
from weft.ir.expr import (
    FALSE,
    INDEX,
    ONE,
    TRUE,
    ZERO,
    Const,
    Eq,
    Expr,
    Le,
    Lt,
    Select,
    Var,
    conjuncts,
    maximum,
    minimum,
)
from weft.ir.linear import build, poly_of
from weft.ir.node import Node
from weft.ir.prove import extremes, prove
from weft.ir.rewrite import free_vars, map_nodes, post_order
from weft.ir.simplify import simplify
from weft.loop.nodes import For, If, LoopKind, Program, Stmt, Store, seq
from weft.loop.visit import buffers_of, own_exprs, rename_fresh, statements, sub_statements
from weft.lower.walk import Steps, StmtRewriter, extent_bounds, map_functions, size_bounds

_LARGEST_BODY: Final = 400  # stores, unrolled loops counted in full, that a body may have to be copied
_LARGEST_GROWTH: Final = 1200  # stores that the cuts may add to a function
_LONG: Final = 16  # a border of at least one in so many iterations is cut again
_SHORTEST_VECTOR: Final = 32  # vectorized loops up to this length keep their guards as masks


def partition_loops(program: Program) -> Program:
    """Returns *program* with loops cut so that most iterations run without guards."""
    return map_functions(program, lambda f: _Partition(size_bounds(f)).rewrite(f.body))


@dataclass(frozen=True)
class Cut:
    """The iterations *begin* up to *end* of a loop, in which the conditions *true* hold."""

    begin: Expr
    end: Expr
    true: tuple[Expr, ...]


class _Partition(StmtRewriter):
    """Cuts loops from the outermost inwards; only the long part of a loop that was cut is looked at again."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.guards = Guards()
        self.rigid = 0  # inside how many unrolled or vectorized loops, or borders
        self.growth = 0

    def visit_for(self, s: For) -> Steps:
        cut = self._cut(s) if self.guards.of(s.body) else None
        if cut is None:
            return (yield from self._visited(s, rigid=s.kind in (LoopKind.UNROLLED, LoopKind.VECTORIZED)))
        if s.kind in (LoopKind.PARALLEL, LoopKind.BOUND):
            return (yield from self._tested(s, cut))
        end = s.begin + s.extent
        parts = [(s.begin, cut.begin), (cut.begin, cut.end), (cut.end, end)]
        made: list[Stmt] = []
        for k, (first, after) in enumerate(parts):
            extent = simplify(after - first, self.bounds)
            if extent is ZERO or (isinstance(extent, Const) and int(extent.value) <= 0):
                continue
            part = For(s.var, simplify(first, self.bounds), extent, s.kind, s.body, s.annotations)
            if k == 1:
                part = _with_body(part, _assume(s.body, cut.true))
            long = k == 1 or _is_long(extent, s.extent)
            made.append((yield from self._visited(_fresh(part) if made else part, rigid=not long)))
        return seq(*made)

    def _visited(self, s: For, *, rigid: bool) -> Steps:
        outer = self.bounds
        self.bounds = extent_bounds(outer, s)
        self.rigid += rigid
        body = yield s.body
        self.rigid -= rigid
        self.bounds = outer
        return _with_body(s, body)

    def _tested(self, s: For, cut: Cut) -> Steps:
        """Keeps a parallel loop whole; each iteration tests whether it is one of the long part."""
        inside = simplify((cut.begin <= s.var) & (s.var < cut.end), extent_bounds(self.bounds, s))
        main = yield from self._visited(_with_body(s, _assume(s.body, cut.true)), rigid=False)
        long = _is_long(simplify(s.extent - (cut.end - cut.begin), self.bounds), s.extent)
        border = yield from self._visited(_with_body(s, rename_fresh(s.body)), rigid=not long)
        return _with_body(s, If(inside, _body_of(main), _body_of(border)))

    def _cut(self, s: For) -> Cut | None:
        """Returns where to cut *s*, if it pays."""
        if self.rigid or s.kind is LoopKind.UNROLLED or s.extent is ONE:
            return None
        if s.kind is LoopKind.VECTORIZED and (_length(s.extent) <= _SHORTEST_VECTOR or uses_registers(s.body)):
            return None
        found = [c for g in self.guards.of(s.body) if s.var in free_vars(g) and (c := _range_of(g, s, self.bounds))]
        size = stores_in(s.body)
        if not found or size > _LARGEST_BODY or self.growth + size > _LARGEST_GROWTH:
            return None
        cut = _best(found, s, self.bounds)
        self.growth += 0 if cut is None else size
        return cut


def _with_body(s: For, body: Stmt) -> For:
    return For(s.var, s.begin, s.extent, s.kind, body, s.annotations)


def _body_of(s: Stmt) -> Stmt:
    return s.body if isinstance(s, For) else s


def _fresh(s: For) -> For:
    made = rename_fresh(s)
    if not isinstance(made, For):
        raise TypeError("a loop was renamed to something else")
    return made


def _assume(body: Stmt, true: Iterable[Expr]) -> Stmt:
    memo: dict[Node, Node] = dict.fromkeys(true, TRUE)
    return map_nodes(body, _decided, memo=memo)


def _decided(n: Node) -> Node | None:
    if isinstance(n, If) and n.cond is TRUE:
        return n.then
    if isinstance(n, Select) and n.cond is TRUE:
        return n.then
    return None


def _length(extent: Expr) -> float:
    return int(extent.value) if isinstance(extent, Const) else float("inf")


def _is_long(part: Expr, whole: Expr) -> bool:
    """Answers whether a border is long enough to be worth cutting, too."""
    return isinstance(part, Const) and isinstance(whole, Const) and int(part.value) * _LONG >= int(whole.value)


class Guards:
    """The single conditions that guard something in a statement, remembered by statement."""

    def __init__(self) -> None:
        self.memo: dict[Node, tuple[Expr, ...]] = {}

    def of(self, s: Stmt) -> tuple[Expr, ...]:
        """Returns the conditions in *s*, each once."""
        stack = [s]
        while stack:
            t = stack[-1]
            if t in self.memo:
                stack.pop()
                continue
            todo = [k for k in sub_statements(t) if k not in self.memo]
            if todo:
                stack += todo
                continue
            stack.pop()
            found: dict[Expr, None] = {}
            if isinstance(t, If):
                found.update(dict.fromkeys(conjuncts(t.cond)))
            for e in own_exprs(t):
                found.update(dict.fromkeys(self._in(e)))
            for k in sub_statements(t):
                found.update(dict.fromkeys(self.memo[k]))
            self.memo[t] = tuple(found)
        return self.memo[s]

    def _in(self, e: Expr) -> tuple[Expr, ...]:
        if e not in self.memo:
            selects = [n for n in post_order(e) if isinstance(n, Select)]
            self.memo[e] = tuple([c for n in selects for c in conjuncts(n.cond)])
        return self.memo[e]


def _range_of(guard: Expr, loop: For, bounds: Bounds) -> Cut | None:
    """Returns the iterations of *loop* in which *guard* holds whatever the loops inside it do; None if that isn't clear."""
    if isinstance(guard, Eq):
        return _first_only(guard, loop, bounds)
    if not isinstance(guard, Lt | Le) or guard.a.dtype is not INDEX:
        return None
    inside = extent_bounds(bounds, loop)
    inner = [v for v in free_vars(guard) if v is not loop.var and v not in inside.ranges and not v.dtype.is_bool]
    for s in statements(loop.body):
        if isinstance(s, For):
            inside = extent_bounds(inside, s)
    room = guard.b - guard.a - (ONE if isinstance(guard, Lt) else ZERO)  # the guard holds where this is at least 0
    ends = extremes(room, inner, inside)
    return None if ends is None else _solve(ends[0], guard, loop, bounds)


def _solve(least: Expr, guard: Expr, loop: For, bounds: Bounds) -> Cut | None:
    """Solves `least >= 0` for the loop's variable, in which it must be linear."""
    p = poly_of(least)
    slope = p.pop((loop.var,), 0)
    if not slope or any(
        loop.var in free_vars(a) or (a in bounds.ranges and not _is_size(a, bounds)) for m in p for a in m
    ):
        return None
    rest = build(p, INDEX)
    end = loop.begin + loop.extent
    if slope > 0:  # v >= -rest / slope, rounded up
        first = simplify((slope - 1 - rest) // slope, bounds)
        return _clamped(first, end, guard, loop, bounds)
    return _clamped(loop.begin, simplify(rest // -slope + ONE, bounds), guard, loop, bounds)


def _is_size(v: Expr, bounds: Bounds) -> bool:
    """Answers whether *v* is a size, which is at least one and has no upper bound, rather than a loop's variable."""
    return isinstance(v, Var) and bounds.ranges[v][1] is None


def _clamped(first: Expr, after: Expr, guard: Expr, loop: For, bounds: Bounds) -> Cut | None:
    """Returns the cut from *first* up to *after*, kept inside the loop."""
    end = loop.begin + loop.extent
    begin = first if first is loop.begin or prove(loop.begin <= first, bounds) else maximum(loop.begin, first)
    begin = simplify(begin if prove(begin <= end, bounds) else minimum(begin, end), bounds)
    stop = simplify(after if after is end or prove(after <= end, bounds) else minimum(end, after), bounds)
    if prove(stop <= begin, bounds):
        return None
    if not prove(begin <= stop, bounds):
        stop = maximum(stop, begin)
    return Cut(begin, stop, (guard,))


def _first_only(guard: Eq, loop: For, bounds: Bounds) -> Cut | None:
    """Cuts behind the first iteration where *guard* never holds after it."""
    later = bounds.bind(loop.var, loop.begin + ONE, loop.begin + loop.extent - ONE)
    for s in statements(loop.body):
        if isinstance(s, For):
            later = extent_bounds(later, s)
    if simplify(guard, later) is not FALSE:
        return None
    return Cut(loop.begin + ONE, loop.begin + loop.extent, ())


def _best(found: list[Cut], loop: For, bounds: Bounds) -> Cut | None:
    """Returns the part in which the most guards hold, as long as it is most of the loop; the longest cuts go first."""
    chosen: Cut | None = None
    for c in sorted(found, key=lambda c: -_length(simplify(c.end - c.begin, bounds))):
        both = c if chosen is None else _meet(chosen, c, bounds)
        length, whole = _length(simplify(both.end - both.begin, bounds)), _length(loop.extent)
        if chosen is None or length * 2 >= whole:
            chosen = both
    if chosen is None or (chosen.begin is loop.begin and chosen.end is loop.begin + loop.extent and not chosen.true):
        return None
    return chosen


def _meet(a: Cut, b: Cut, bounds: Bounds) -> Cut:
    begin = simplify(maximum(a.begin, b.begin), bounds)
    end = simplify(minimum(a.end, b.end), bounds)
    return Cut(begin, end if prove(begin <= end, bounds) else maximum(begin, end), a.true + b.true)


def uses_registers(s: Stmt) -> bool:
    """Answers whether *s* works on a register tile: its vectors must all be cut alike for it to stay in registers."""
    return any(b.scope == "register" for b in buffers_of(s))


def stores_in(s: Stmt) -> int:
    """Returns how many stores *s* has once its unrolled loops are written out."""
    total = 0
    stack = [(s, 1)]
    while stack:
        t, times = stack.pop()
        total += times * isinstance(t, Store)
        if isinstance(t, For) and t.kind is LoopKind.UNROLLED and isinstance(t.extent, Const):
            times *= int(t.extent.value)
        stack += [(k, times) for k in sub_statements(t)]
    return total
