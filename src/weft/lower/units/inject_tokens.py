"""Synchronises the units of a machine: tokens are pushed and popped for the dependences between units.

    for k in range(0, 8):                        push(execute -> load)
        load(inp, X[k])                          for k in range(0, 8):
        multiply(acc, inp)            ->             pop(execute -> load)
                                                     load(inp, X[k])
                                                     push(load -> execute)
                                                     pop(load -> execute)
                                                     multiply(acc, inp)
                                                     push(execute -> load)
                                                 pop(execute -> load)

Each unit runs its own instructions in order, and is ahead of the others as far as its pops let it (Chen et al., "TVM", OSDI 2018,
section 4.4). A push is put after the source of a dependence, a pop before its sink: for flow dependences (load, then execute)
and for anti dependences through reused memory (execute, then the next load). For a wait on the previous iteration, a token is
pushed before the loop, and the last one is popped after it.

There is one queue of tokens for each pair of units, and tokens have no names: the n-th pop gets the n-th push. So in each body of
a loop only those waits are kept that no other one implies, which do not cross; and while a statement that uses a queue
inside runs, no other token is in that queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from weft.ir import ONE, Bounds, Expr, index, prove, simplify
from weft.loop import (
    POP_TOKEN,
    PUSH_TOKEN,
    Buffer,
    Call,
    For,
    Function,
    If,
    Program,
    Stmt,
    Store,
    View,
    While,
    is_hint,
    seq,
    statements,
)
from weft.lower.stmt_rewriter import StmtRewriter, Visited, extent_bounds, map_functions, size_bounds
from weft.lower.units.unit_effects import UnitAccess, touches, unit_of
from weft.support.errors import LoweringError
from weft.targets import Target

Queue: TypeAlias = tuple[int, int]
"""From one unit to another, by their numbers in the target's list."""

_EVERYWHERE: Final = (None, None)


def inject_tokens(program: Program, target: Target) -> Program:
    """Returns *program*, whose buffers are flat and final, with explicit tokens between its units.

    Raises `LoweringError` for a statement that no unit of *target* runs.
    """
    return map_functions(program, lambda f: _Inject(f, target).run()) if target.units else program


@dataclass(frozen=True, slots=True)
class _Use:
    """An access by a unit: elements `lo .. hi` of *buffer* over all iterations of the loops around; None is unbounded."""

    unit: int
    buffer: Buffer
    writes: bool
    lo: int | None
    hi: int | None

    def conflicts(self, other: _Use) -> bool:
        """Answers whether the order of the two matters."""
        same = self.buffer is other.buffer and (self.writes or other.writes)
        return same and not _is_below(self, other) and not _is_below(other, self)


def _is_below(a: _Use, b: _Use) -> bool:
    return a.hi is not None and b.lo is not None and a.hi < b.lo


@dataclass(slots=True)
class _Part:
    """A statement with the tokens inside it, and a summary for the level outside.

    `waiting` counts the tokens that must be in a queue before it begins, and are again when it has ended; `used` has the queues
    in which tokens come and go while it runs. A part that `repeats` handles its own waits from one run to the next; a part
    that may not run (`runs` is False) leaves them to others.
    """

    stmt: Stmt
    uses: dict[_Use, None] = field(default_factory=dict)
    waiting: dict[Queue, int] = field(default_factory=dict)
    used: set[Queue] = field(default_factory=set)
    runs: bool = True
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class _Wait:
    """Part number *last* must wait for part number *first*, of the same iteration or, if *later*, of the one before."""

    first: int
    last: int
    later: bool


class _Items(StmtRewriter):
    """Gives each statement of a body to *change*, past bindings and sequences, but not into loops and conditions."""

    def __init__(self, change: Callable[[Stmt], Stmt]) -> None:
        self.change = change

    def default(self, s: Stmt) -> Visited:
        return self.change(s)

    visit_let = StmtRewriter.visit_let
    visit_alloc = StmtRewriter.visit_alloc
    visit_view = StmtRewriter.visit_view
    visit_seq = StmtRewriter.visit_seq
    visit_block = StmtRewriter.visit_block


class _Inject:
    """Carries the ranges of the loops, and the sources of views."""

    def __init__(self, function: Function, target: Target) -> None:
        self.function, self.target = function, target
        self.bounds: Bounds = size_bounds(function)
        self.sources = {s.buffer: s.source for s in statements(function.body) if isinstance(s, View)}

    def run(self) -> Stmt:
        """Returns the body of the function with tokens."""
        return self.body(self.function.body, None).stmt

    def body(self, s: Stmt, loop: For | While | None) -> _Part:
        """Returns *s*, the body of *loop* if that is given, with the tokens that pass between its statements."""
        parts: list[_Part] = []

        def collect(item: Stmt) -> Stmt:
            parts.append(self.part(item))
            return item

        _Items(collect).rewrite(s)
        level = _Level(parts, repeats=loop is not None)
        made = iter(level.written())
        stmt = _Items(lambda _: next(made)).rewrite(s)
        uses = {u: None for p in parts for u in p.uses}
        used = {q for p in parts for q in p.used}
        return _Part(stmt, uses, level.waiting, used | level.used)

    def part(self, s: Stmt) -> _Part:
        """Returns one statement of a body."""
        if isinstance(s, For):
            outer, self.bounds = self.bounds, extent_bounds(self.bounds, s)
            inner = self.body(s.body, s)
            self.bounds = outer
            inner.stmt = For(s.var, s.begin, s.extent, s.kind, inner.stmt, s.notes)
            inner.runs, inner.repeats = prove(s.extent >= ONE, outer), True
            return inner
        if isinstance(s, While):
            inner = self.body(s.body, s)
            inner.stmt, inner.runs, inner.repeats = While(s.cond, inner.stmt), False, True
            return inner
        if isinstance(s, If):
            return self.branches(s)
        if not isinstance(s, Store | Call) or is_hint(s):
            return _Part(s)
        return _Part(s, dict.fromkeys(self.uses(s)))

    def branches(self, s: If) -> _Part:
        """Returns a conditional; each side ends with as many tokens as it began with."""
        sides = [self.body(x, None) for x in (s.then, s.other) if x is not None]
        made = If(s.cond, sides[0].stmt, sides[1].stmt if len(sides) > 1 else None)
        uses = {u: None for x in sides for u in x.uses}
        return _Part(made, uses, {}, {q for x in sides for q in x.used}, runs=False)

    def uses(self, s: Store | Call) -> Iterator[_Use]:
        """Yields the accesses of one statement."""
        unit = unit_of(s, self.target)
        if unit is None:
            names = ", ".join([u.name for u in self.target.units])
            raise LoweringError(
                f"none of the units of {self.target.name} ({names}) runs this statement:\n{s}",
                hint="tensorize its block, or put what it writes into the memory of a unit",
            )
        number = self.target.units.index(unit)
        for t in touches(s):
            buffer, known = t.buffer, t.buffer not in self.sources
            while buffer in self.sources:
                buffer = self.sources[buffer]
            lo, hi = self.range(t) if known else _EVERYWHERE
            yield _Use(number, buffer, t.writes, lo, hi)

    def range(self, t: UnitAccess) -> tuple[int | None, int | None]:
        """Returns the first and the last element that is accessed in any iteration."""
        if t.first is None or t.length is None:
            return _EVERYWHERE
        found = self.bounds.of(t.first)
        last = self.bounds.of(simplify(t.first + t.length - ONE, self.bounds))
        return found.lo, last.hi


class _Level:
    """The parts of one body, and the tokens between them."""

    def __init__(self, parts: list[_Part], *, repeats: bool) -> None:
        self.parts, self.repeats = parts, repeats
        self.before: list[list[Stmt]] = [[] for _ in parts]
        self.after: list[list[Stmt]] = [[] for _ in parts]
        self.waiting: dict[Queue, int] = {}
        self.used: set[Queue] = set()
        waits = self._waits()
        for q in sorted({*waits, *[q for p in parts for q in p.waiting]}):
            if not self._passes_through(q, waits.get(q, [])):
                self._close(q)
                self._write(q, self._needed(q, waits.get(q, [])))

    def written(self) -> list[Stmt]:
        """Returns the parts with their tokens."""
        around = zip(self.before, self.parts, self.after, strict=True)
        return [seq(*before, p.stmt, *after) if before or after else p.stmt for before, p, after in around]

    def _waits(self) -> dict[Queue, list[_Wait]]:
        """Returns all pairs of parts whose order matters and that different units run, by queue."""
        found: dict[Queue, dict[_Wait, None]] = {}
        for i, a in enumerate(self.parts):
            for j, b in enumerate(self.parts):
                if i < j or (self.repeats and not (i == j and a.repeats)):
                    for q in _crossings(a, b):
                        found.setdefault(q, {})[_Wait(i, j, i >= j)] = None
        return {q: list(w) for q, w in found.items()}

    def _passes_through(self, q: Queue, waits: list[_Wait]) -> bool:
        """Answers whether only one part uses a queue, so that its tokens may stay from iteration to iteration."""
        holding = [p for p in self.parts if q in p.waiting or q in p.used]
        if waits or not self.repeats or len(holding) != 1 or q not in holding[0].waiting:
            return False
        self.waiting[q] = holding[0].waiting[q]
        return True

    def _close(self, q: Queue) -> None:
        """Puts the tokens that parts need into the queue before them, and takes them out after."""
        for n, p in enumerate(self.parts):
            for _ in range(p.waiting.pop(q, 0)):
                self.before[n].append(_token(PUSH_TOKEN, q))
                self.after[n].append(_token(POP_TOKEN, q))
                p.used.add(q)

    def _needed(self, q: Queue, waits: list[_Wait]) -> list[_Wait]:
        """Returns those of *waits* that no other implies, none across a part with tokens of its own in the queue."""
        cut = [c for w in waits if (c := self._cut(q, w)) is not None]
        m = len(self.parts)
        ends = {w: (w.first, w.last + (m if w.later else 0)) for w in cut}
        kept = []
        for w, (first, last) in ends.items():
            others = [
                (a + n, b + n) for x, (a, b) in ends.items() if x != w for n in (-m, 0, m) if n == 0 or self.repeats
            ]
            if not any(a >= first and b <= last for a, b in others):
                kept.append(w)
        return kept

    def _cut(self, q: Queue, w: _Wait) -> _Wait | None:
        """Ends a wait before the first part inside it that uses the queue itself; None where that part includes it."""
        m = len(self.parts)
        inside = [n for n in range(w.first + 1, w.last + (m if w.later else 0)) if q in self.parts[n % m].used]
        if any(self.parts[n % m].runs for n in inside):
            return None
        return _Wait(w.first, inside[0] % m, inside[0] >= m) if inside else w

    def _write(self, q: Queue, waits: list[_Wait]) -> None:
        for w in waits:
            self.after[w.first].append(_token(PUSH_TOKEN, q))
            self.before[w.last].insert(0, _token(POP_TOKEN, q))
            if w.later:
                self.waiting[q] = self.waiting.get(q, 0) + 1
            else:
                self.used.add(q)


def _crossings(a: _Part, b: _Part) -> set[Queue]:
    """Returns the queues through which *b* waits for *a*."""
    return {(x.unit, y.unit) for x in a.uses for y in b.uses if x.unit != y.unit and x.conflicts(y)}


def _token(callee: str, q: Queue) -> Stmt:
    numbers: list[Expr] = [index(n) for n in q]
    return Call(callee, tuple(numbers))
