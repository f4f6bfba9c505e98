"""From a block's phases to the program of one thread (SPMD): every loop over threads is replaced by the thread's index.

    for i in bound(0, 4, thread="blockIdx.x"):             for i in bound(0, 4, thread="blockIdx.x"):
        S = alloc("shared", f32[16])                           S = alloc("shared", f32[16])
        for t in bound(0, 16, thread="threadIdx.x"):           for t in bound(0, 16, thread="threadIdx.x"):
            S[t] = A[i, t]                           ->            S[t] = A[i, t]
        call("weft.barrier")                                       call("weft.barrier")
        for u in bound(0, 8, thread="threadIdx.x"):                if t < 8:
            C[i, u] = S[u] + S[u + 8]                                  C[i, t] = S[t] + S[t + 8]

A block has as many threads as its longest loop over each axis; a shorter loop becomes a guard. Where there is a barrier, the
guard moves inside, around the guarded statements: all threads reach each barrier, which the interpreter of thread programs
checks. Statements outside of loops over threads are run by thread 0, if others see their effects, else by every thread.
"""

from __future__ import annotations

from typing import Final

from weft.ir import (
    TRUE,
    ZERO,
    Bounds,
    Const,
    Expr,
    Node,
    Not,
    Var,
    all_of,
    eq,
    free_vars,
    index,
    map_nodes,
    reads_memory,
    simplify,
)
from weft.loop import Alloc, Call, For, If, Let, LoopKind, Program, Stmt, Thread, While, effects_of, seq, statements
from weft.lower.analysis.barrier_intervals import accesses, thread_extents, tree
from weft.lower.analysis.grid_shape import BLOCKS, axis_of, is_over_blocks, is_over_threads
from weft.lower.stmt_rewriter import Steps, StmtRewriter, Visited, extent_bounds, map_functions, size_bounds
from weft.support.errors import LoweringError
from weft.targets import Sight, Target, sight_of

_KEPT: Final = (LoopKind.UNROLLED, LoopKind.VECTORIZED, LoopKind.BOUND)
"""The kinds of loops of a thread that stay as they are; the others are run one iteration after another."""


def bind_threads(program: Program, target: Target) -> Program:
    """Returns *program* with each grid a nest of loops over blocks, shared memory, and loops over threads, none inside it."""
    return map_functions(program, lambda f: _Bind(size_bounds(f), target).rewrite(f.body))


class _Bind(StmtRewriter):
    """Finds the grids."""

    def __init__(self, bounds: Bounds, target: Target) -> None:
        self.bounds = bounds
        self.target = target

    def visit(self, s: Stmt) -> Visited:
        return self.grid(s) if is_over_blocks(s) else super().visit(s)

    def grid(self, root: Stmt) -> Stmt:
        """Rewrites one grid."""
        blocks, shared, body = _head(root)
        extents = thread_extents(body)
        self._check(extents)
        bounds = self.bounds
        for f in blocks:
            bounds = extent_bounds(bounds, f)
        threads = {axis: Var(f"t{axis[-1]}") for axis in extents}
        for axis, v in threads.items():
            bounds = bounds.bind(v, 0, extents[axis] - 1)
        made = _Thread(threads, extents, bounds).rewrite(body)
        for axis in reversed(threads):
            made = For(threads[axis], ZERO, index(extents[axis]), LoopKind.BOUND, made, (Thread(axis),))
        for a in reversed(shared):
            made = Alloc(a.buffer, made)
        for f in sorted(blocks, key=lambda f: -BLOCKS.index(str(axis_of(f)))):
            made = For(f.var, f.begin, f.extent, f.kind, made, f.notes)
        return made

    def _check(self, extents: dict[str, int]) -> None:
        """Refuses more threads than a block can have."""
        count = 1
        for n in extents.values():
            count *= n
        facts = self.target.grid
        if facts is not None and count > facts.block:
            shape = " x ".join([str(n) for n in extents.values()])
            raise LoweringError(
                f"a block of {shape} threads is more than the {facts.block} that {self.target.name} has",
                hint="split the bound loops by smaller factors",
            )


def _head(root: Stmt) -> tuple[list[For], list[Alloc], Stmt]:
    """Returns the loops over blocks of a grid, the memory of a block, and the code of a block."""
    blocks: list[For] = []
    shared: list[Alloc] = []
    s = root
    while True:
        if isinstance(s, For) and is_over_blocks(s):
            blocks.append(s)
        elif isinstance(s, Alloc) and sight_of(s.buffer.scope) is not Sight.THREAD:
            shared.append(s)
        else:
            break
        s = s.body
    inner = next((x for x in statements(s) if is_over_blocks(x)), None)
    if isinstance(inner, For):
        raise LoweringError(
            f"the loop {inner.var.name} over {axis_of(inner)} is not right inside the other loops over blocks",
            hint="bind loops that are nested in one another with nothing between them, or compute the rest in a nest of its own",
        )
    return blocks, shared, s


class _Thread(StmtRewriter):
    """Rewrites the code of a block to that of a thread; guards are pushed down to the statements without barriers."""

    def __init__(self, threads: dict[str, Var], extents: dict[str, int], bounds: Bounds) -> None:
        self.threads = threads
        self.extents = extents
        self.bounds = bounds
        self.around: set[str] = set()
        self.waiting: list[Expr] = []
        self.values: dict[Node, Node] = {}
        self.varying: set[Var] = set(threads.values())

    def expr(self, e: Expr) -> Expr:
        return map_nodes(e, None, memo=self.values) if self.values else e

    def visit(self, s: Stmt) -> Visited:
        if _has_barrier(s):
            return super().visit(s)
        if self.waiting:
            return self._guarded(s)
        return self._by_one(s) if self._is_for_one(s) else super().visit(s)

    def _guarded(self, s: Stmt) -> Steps:
        """Puts the pending conditions around *s*, which has no barrier in it."""
        outer, self.waiting = self.waiting, []
        made = self.visit(s)
        body = made if isinstance(made, Stmt) else (yield from made)
        self.waiting = outer
        cond = simplify(all_of(outer), self.bounds)
        return body if cond is TRUE else If(cond, body, None)

    def _is_for_one(self, s: Stmt) -> bool:
        """Tells whether one thread is to run *s*, which is in no loop over threads: all that it writes is visible to others."""
        if len(self.around) == len(self.threads) or any(is_over_threads(x) for x in statements(s)):
            return False
        own = {x.buffer for x in statements(s) if isinstance(x, Alloc)}
        written = {x.buffer for x in accesses(tree(s)) if x.writes} - own
        return bool(written) and all(sight_of(b.scope) is not Sight.THREAD for b in written)

    def _by_one(self, s: Stmt) -> Steps:
        """Lets thread 0 alone run *s*, along the axes without a loop around *s*."""
        missing = [self.threads[a] for a in self.threads if a not in self.around and self.extents[a] > 1]
        outer, self.around = self.around, set(self.threads)
        made = self.visit(s)
        body = made if isinstance(made, Stmt) else (yield from made)
        self.around = outer
        return If(all_of([eq(v, ZERO) for v in missing]), body, None) if missing else body

    def visit_for(self, s: For) -> Steps:
        return self._thread(s) if is_over_threads(s) else self._loop(s)

    def _loop(self, s: For) -> Steps:
        begin, extent = self.expr(s.begin), self.expr(s.extent)
        if self._varies(begin, extent):
            if _has_barrier(s):
                raise LoweringError(
                    f"threads run the loop {s.var.name} unlike each other, but wait for one another in it"
                )
            self.varying.add(s.var)
        kind = s.kind if s.kind in _KEPT else LoopKind.SERIAL
        outer = self.bounds
        self.bounds = extent_bounds(outer, For(s.var, begin, extent, kind, s.body, ()))
        body = yield s.body
        self.bounds = outer
        return For(s.var, begin, extent, kind, body, s.notes)

    def _thread(self, s: For) -> Steps:
        """Replaces a loop over threads by its body for the thread's index."""
        axis = str(axis_of(s))
        if axis in self.around:
            raise LoweringError(f"the loop {s.var.name} over {axis} is inside another one over it")
        outer, count, t = self.around, len(self.waiting), self.threads[axis]
        self.around = outer | {axis}
        self.values[s.var] = simplify(self.expr(s.begin) + t, self.bounds)
        if not (isinstance(s.extent, Const) and int(s.extent.value) == self.extents[axis]):
            self.waiting = [*self.waiting, t < s.extent]
        body = yield s.body
        self.waiting = self.waiting[:count]
        self.around = outer
        return body

    def visit_if(self, s: If) -> Steps:
        cond = self.expr(s.cond)
        if not _has_barrier(s) or not self._varies(cond):
            then = yield s.then
            other = None if s.other is None else (yield s.other)
            return If(cond, then, other)
        self._check_pure(cond)
        outer, parts = self.waiting, []
        for holds, part in ((cond, s.then), (Not(cond), s.other)):
            if part is not None:
                self.waiting = [*outer, holds]
                parts.append((yield part))
        self.waiting = outer
        return seq(*parts)

    def visit_while(self, s: While) -> Steps:
        cond = self.expr(s.cond)
        if _has_barrier(s) and self._varies(cond):
            raise LoweringError("threads are to wait for one another in a loop that each leaves when it likes")
        body = yield s.body
        return While(cond, body)

    def visit_let(self, s: Let) -> Steps:
        value = self.expr(s.value)
        if self._varies(value):
            self.varying.add(s.var)
            if self.waiting:
                self._check_pure(value)
        body = yield s.body
        return Let(s.var, value, body)

    def _varies(self, *values: Expr) -> bool:
        """Tells whether a value may differ between threads."""
        return any(v in self.varying for e in values for v in free_vars(e))

    def _check_pure(self, e: Expr) -> None:
        """Refuses a condition that can't be evaluated speculatively, or again after memory has changed."""
        if reads_memory(e):
            raise LoweringError("threads are to wait for one another under a condition that memory decides")


def _has_barrier(s: Stmt) -> bool:
    known = [effects_of(x) for x in statements(s) if isinstance(x, Call)]
    return any(e is not None and e.barrier is not None for e in known)
