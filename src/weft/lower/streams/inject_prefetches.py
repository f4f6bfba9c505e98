"""Inserts software prefetches of elements that a loop reads some iterations later.

    for i in range(64, prefetch=(A, 2)):        for i in range(64):
        B[i] = A[i * 16]                ->          prefetch(A.at((i + 2) * 16))
                                                    B[i] = A[i * 16]

One prefetch for each cache line of each read that depends on the loop, just before the statement that reads, and for one line
more where a run of elements may be unaligned and the next iteration does not go on with it. Pieces of lines that unrolled loops
read side by side, such as the short vectors of a row, count as one read. Lines whole pages apart share a set of the first-level
cache, which could not hold all lines in flight: they are prefetched into the second level. Addresses that depend on memory, such
as those of gathers, are skipped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from weft.ir import (
    INDEX,
    ONE,
    ZERO,
    Bounds,
    Const,
    Expr,
    Ramp,
    Var,
    free_vars,
    linear_terms,
    reads_memory,
    simplify,
    substitute,
)
from weft.loop import (
    Buffer,
    For,
    If,
    Let,
    Load,
    LoopKind,
    Prefetch,
    Program,
    Stmt,
    Store,
    find_note,
    loads,
    own_exprs,
    prefetch,
    rename_fresh,
    seq,
    statements,
    without_notes,
)
from weft.lower.stmt_rewriter import Steps, StmtRewriter, Visited, extent_bounds, map_functions, size_bounds
from weft.targets import Target


def inject_prefetches(program: Program, target: Target) -> Program:
    """Returns *program*, whose buffers are flat, with calls of the intrinsic instead of the notes."""
    return map_functions(
        program, lambda f: _Inject(size_bounds(f), target).rewrite(f.body) if _is_noted(f.body) else f.body
    )


def _is_noted(body: Stmt) -> bool:
    return any(isinstance(s, For) and find_note(s.notes, Prefetch) is not None for s in statements(body))


class _Inject(StmtRewriter):
    """Carries the loops with notes, and the values of the `let`s around, in terms of the loops' variables."""

    def __init__(self, bounds: Bounds, target: Target) -> None:
        self.bounds = bounds
        self.target = target
        self.asked: list[tuple[Var, Prefetch]] = []
        self.values: dict[Var, Expr] = {}
        self.seen: set[tuple[Buffer, Expr]] = set()
        self.unrolled: list[tuple[For, list[Stmt]]] = []

    def visit_for(self, s: For) -> Steps:
        hints = [(s.var, n) for n in s.notes if isinstance(n, Prefetch)]
        outer = self.bounds, self.seen, self.unrolled
        before: list[Stmt] = []
        self.bounds = extent_bounds(self.bounds, s)
        if s.kind is LoopKind.UNROLLED:
            self.unrolled = [*self.unrolled, (s, before)]
        else:
            self.seen, self.unrolled = set(), []
        self.asked += hints
        body = yield s.body
        del self.asked[len(self.asked) - len(hints) :]
        self.bounds, self.seen, self.unrolled = outer
        loop = For(s.var, s.begin, s.extent, s.kind, body, without_notes(s.notes, Prefetch))
        return seq(*before, loop) if before else loop

    def visit_store(self, s: Store) -> Visited:
        return seq(*self._calls(s), s)

    def visit_let(self, s: Let) -> Steps:
        calls = list(self._calls(s))
        if s.var.dtype is INDEX and not reads_memory(s.value):
            self.values[s.var] = substitute(s.value, self.values)
        body = yield s.body
        return seq(*calls, Let(s.var, s.value, body))

    def visit_if(self, s: If) -> Steps:
        calls, outer = list(self._calls(s)), self.seen
        self.seen = set(outer)
        then = yield s.then
        self.seen = set(outer)
        other = None if s.other is None else (yield s.other)
        self.seen = outer
        return seq(*calls, If(s.cond, then, other))

    def _calls(self, s: Stmt) -> Iterator[Stmt]:
        """Yields the prefetch calls to be put before *s*."""
        if not self.asked:
            return
        read = [n for e in own_exprs(s) for n in loads(e)]
        for var, hint in self.asked:
            for n in read:
                if n.buffer is hint.buffer:
                    yield from self._lines(n, var, hint.distance)

    def _lines(self, n: Load, var: Var, distance: int) -> Iterator[Stmt]:
        """Yields a prefetch call for each cache line that *n* will read."""
        first, count = _first(n.indices[0])
        at = None if first is None else substitute(first, self.values)
        if at is None or var not in free_vars(at) or reads_memory(at):
            return
        line = max(1, self.target.caches.line // n.buffer.dtype.bytes)
        at, count = self._run(at, count, line)
        later = simplify(substitute(at, {var: var + distance}), self.bounds)
        step = _step(at, var)
        goes_on = step is not None and (step % line == 0 or 0 < step <= count)
        lines = -(-count // line) + int(count > 1 and not goes_on)
        level = 2 if step and step * n.buffer.dtype.bytes % self.target.caches.set_period == 0 else 1
        for k in range(lines):
            where = simplify(later + k * line, self.bounds)
            if (n.buffer, where) not in self.seen:
                self.seen.add((n.buffer, where))
                call: Stmt = prefetch(n.buffer, where, level)
                if not self._hoisted(call, free_vars(where)):
                    yield call

    def _run(self, at: Expr, count: int, line: int) -> tuple[Expr, int]:
        """Returns the first index and the length of the run that unrolled loops read in pieces of *count* elements from *at* on.

        Pieces of whole lines are left to their loops.
        """
        for f, _ in reversed(self.unrolled):
            if count % line and f.begin is ZERO and isinstance(f.extent, Const) and _step(at, f.var) == count:
                at, count = substitute(at, {f.var: ZERO}), count * int(f.extent.value)
        return at, count

    def _hoisted(self, call: Stmt, used: Collection[Var]) -> bool:
        """Puts a call before the outermost unrolled loop that its address does not depend on, so that it is made once.

        Loops inside that one are copied around the call where the address depends on them. Returns whether there is such a loop.
        """
        free = next((k for k, (f, _) in enumerate(self.unrolled) if f.var not in used), None)
        if free is None or any(not isinstance(f.extent, Const) for f, _ in self.unrolled[free:]):
            return False
        for f, _ in reversed(self.unrolled[free + 1 :]):
            if f.var in used:
                call = For(f.var, f.begin, f.extent, f.kind, call, ())
        self.unrolled[free][1].append(rename_fresh(call))
        return True


def _step(index: Expr, var: Var) -> int | None:
    """Returns the stride of *index* along *var*, in elements; None if that isn't known."""
    found = linear_terms(index, [var])
    step = None if found is None else found[0].get(var)
    return int(step.value) if isinstance(step, Const) else None


def _first(index: Expr) -> tuple[Expr | None, int]:
    """Returns the first of the elements that a load reads, and how many there are side by side."""
    if isinstance(index, Ramp) and index.stride is ONE:
        return index.base, index.lanes
    return (index if index.dtype.lanes == 1 else None), 1
