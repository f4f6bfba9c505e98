"""Makes a reduction by a few steps of each loop that combines partial results of the threads of a block.

    for k in range(0, 64):                                 R = alloc("shared", f32[64])
        with block("C", vk=reduce(64, k)):                 for t in bound(0, 64, thread="threadIdx.x"):
            annotate(cross_thread="threadIdx.x")               R[t] = P[t]
            with init():                                   for t in bound(0, 8, thread="threadIdx.x"):
                C[0] = 0.0                        ->           for i in unrolled(0, 7):
            C[0] = C[0] + P[vk]                                    P[t] = P[t] + R[i * 8 + t + 8]
                                                               R[t] = P[t]
                                                           C[0] = 0.0
                                                           for i in unrolled(0, 8):
                                                               C[0] = C[0] + R[i]

The threads exchange values through shared memory, in as few steps as take about as many values each: every step waits for all
threads, and loads do not wait for one another. Where each thread has the result for itself, all of them make the last step.
Threads of whole warps exchange them through the memory of a warp first, if the target has such memory (it stands for instructions
that shuffle registers): in each step a thread combines what the one half as far on as in the step before has, round the
warp, so that no step has a condition. Then one partial result of each warp is left, which go through shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from weft.cost import FEW_AT_ONCE
from weft.ir import TRUE, ZERO, Const, Expr, Node, Var, eq, free_vars, index, map_nodes, substitute
from weft.loop import (
    Alloc,
    Axis,
    AxisKind,
    Block,
    Buffer,
    CrossThread,
    For,
    If,
    Load,
    LoopKind,
    Program,
    Stmt,
    Store,
    Thread,
    find_note,
    loads,
    rename_fresh,
    seq,
    stores,
)
from weft.lower.analysis.barrier_intervals import thread_extents
from weft.lower.analysis.grid_shape import THREADS, axis_of, is_over_blocks
from weft.lower.stmt_rewriter import Steps, StmtRewriter, Visited, map_functions
from weft.targets import SHARED, WARP, Scope, Sight, Target, sight_of

Rows: TypeAlias = Mapping[Buffer, Buffer]
"""The memories through which threads exchange partial results, by the result."""

Place: TypeAlias = tuple[Expr, ...]


def lower_cross_thread_reductions(program: Program, target: Target) -> Program:
    """Returns *program* with trees for the loops whose block has the note `CrossThread`."""
    return map_functions(program, lambda f: _Lower(target).rewrite(f.body))


@dataclass(frozen=True, eq=False)
class _Combination:
    """The combination of a loop: *update* combines the partial results at *lane* into the results; *start* initialises these."""

    lane: Var
    count: int
    update: Stmt
    start: Stmt
    predicate: Expr
    parts: Mapping[Buffer, Load]  # by the result that each is a part of

    def first(self, rows: Rows, t: Expr, place: Place) -> Stmt:
        """Returns the statement that writes the partial result of thread *t* to a *place* in the row of each result."""
        return seq(*[Store(rows[b], place, substitute(x, {self.lane: t}), None) for b, x in self.parts.items()])

    def step(self, rows: Rows, t: Expr, of: Place) -> Stmt:
        """Returns the statement that combines the element at *of* of the rows into the partial result of thread *t*."""
        return rename_fresh(self._redirected(rows, t, of))

    def last(self, rows: Rows, count: int) -> Stmt:
        """Returns the statement that combines the first *count* elements of the rows into the results."""
        return seq(self.start, _each(count, lambda i: rename_fresh(self._redirected(rows, None, (i,)))))

    def _redirected(self, rows: Rows, t: Expr | None, of: Place) -> Stmt:
        """Returns the update of the partial result of thread *t*, or of the results, by the element at *of* of the rows."""
        row_of = {x.buffer: rows[b] for b, x in self.parts.items()}
        own = {} if t is None else {b: (x.buffer, self._indices(x, t)) for b, x in self.parts.items()}

        def change(n: Node) -> Node | None:
            match n:
                case Load(b, _) if b in row_of:
                    return Load(row_of[b], of)
                case Load(b, _) if b in own:
                    return Load(*own[b])
                case Store(b, _, value, mask) if b in own:
                    return Store(*own[b], value, mask)
            return None

        return map_nodes(self.update, change)

    def _indices(self, part: Load, t: Expr) -> tuple[Expr, ...]:
        return tuple([substitute(i, {self.lane: t}) for i in part.indices])


def _combination(loop: For) -> _Combination | None:
    """Returns the combination of *loop* if it is the whole of a block with the note, in the form that the schedule gave it."""
    block = loop.body
    if not isinstance(block, Block) or find_note(block.notes, CrossThread) is None or block.init is None:
        return None
    axis, extent = _axis_of_parts(block, loop), loop.extent
    if axis is None or not isinstance(extent, Const):
        return None
    values = {a.var: b for a, b in zip(block.axes, block.bindings, strict=True) if a is not axis}
    update, start = substitute(block.body, values), substitute(block.init, values)
    parts = [x for x in loads(update) if any(axis.var in free_vars(i) for i in x.indices)]
    paired = _paired(list(dict.fromkeys(s.buffer for s in stores(update))), parts)
    return None if paired is None else _Combination(axis.var, int(extent.value), update, start, block.predicate, paired)


def _axis_of_parts(block: Block, loop: For) -> Axis | None:
    """Returns the one reduce axis of *block*, if *loop* runs over all of it and no guard excludes a part."""
    reduced = [(a, b) for a, b in zip(block.axes, block.bindings, strict=True) if a.kind is not AxisKind.SPATIAL]
    if len(reduced) != 1 or loop.begin is not ZERO or loop.var in free_vars(block.predicate):
        return None
    axis, binding = reduced[0]
    return axis if binding is loop.var and axis.extent is loop.extent else None


def _paired(results: Sequence[Buffer], parts: Sequence[Load]) -> dict[Buffer, Load] | None:
    """Returns the partial results of each of *results*, paired by the names that `rfactor` gives; None if any is unpaired."""
    if len(results) == len(parts) == 1:
        return {results[0]: parts[0]}
    paired = {b: x for b in results for x in parts if x.buffer.name == f"{b.name}_rf"}
    return paired if len(paired) == len(results) == len(parts) else None


class _Lower(StmtRewriter):
    """Rewrites such loops, given the numbers of threads of the grid's blocks."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.extents: dict[str, int] = {}
        self.around: set[str | None] = set()

    def visit_for(self, s: For) -> Visited:
        found = _combination(s)
        noted = find_note(s.body.notes, CrossThread) if isinstance(s.body, Block) else None
        return self._loop(s) if found is None or noted is None else self._tree(found, noted.axis)

    def _loop(self, s: For) -> Steps:
        outer, around = self.extents, self.around
        if is_over_blocks(s):
            self.extents = thread_extents(s)
        self.around = around | {axis_of(s)}
        body = yield s.body
        self.extents, self.around = outer, around
        return For(s.var, s.begin, s.extent, s.kind, body, s.notes)

    def _tree(self, c: _Combination, axis: str) -> Stmt:
        """Returns the steps, each by fewer threads than the one before, and then the combination of the results that remain."""
        warp = self._warp(axis, c.count)
        body = _through_shared_memory(c, axis) if warp is None else _through_warps(c, axis, warp)
        return body if c.predicate is TRUE else If(c.predicate, body, None)

    def _warp(self, axis: str, count: int) -> int | None:
        """Returns the threads of a warp if the *count* along *axis* are whole warps, and no others read; None if not."""
        facts = self.target.grid
        if facts is None or self.target.scope(WARP.name) is None or axis != THREADS[-1]:
            return None
        rows = {a for a, n in self.extents.items() if a != axis and n > 1}
        whole = count % facts.warp == 0 and count == self.extents.get(axis)
        return facts.warp if whole and rows <= self.around else None


def _through_shared_memory(c: _Combination, axis: str) -> Stmt:
    """Returns a few wide steps, for each of which all threads wait."""
    rows, t = _rows(c, (c.count,), SHARED), Var("t")
    made, left = [_phase(axis, t, c.count, c.first(rows, t, (t,)))], c.count
    for threads in _wide_steps(c):
        made += _step(c, rows, axis, left, threads)
        left = threads
    return _allocated(rows, seq(*made, c.last(rows, left)))


def _through_warps(c: _Combination, axis: str, warp: int) -> Stmt:
    """Returns the steps of whole warps, each of which leaves half as many different partial results in a warp."""
    made: list[Stmt] = []
    warps = c.count // warp

    def place(t: Expr, ahead: int = 0) -> Place:
        lane = (t % index(warp) + ahead) % index(warp) if ahead else t % index(warp)
        return (lane,) if warps == 1 else (t // index(warp), lane)

    def exchanged(body: Callable[[Rows], Stmt]) -> Stmt:
        rows, t = _rows(c, (warp,) if warps == 1 else (warps, warp), WARP), Var("t")
        return _allocated(rows, seq(_phase(axis, t, c.count, c.first(rows, t, place(t))), body(rows)))

    def halved(ahead: int) -> Stmt:
        t = Var("t")
        return exchanged(lambda rows: _phase(axis, t, c.count, c.step(rows, t, place(t, ahead))))

    ahead = warp
    while ahead > 1:
        ahead //= 2
        made.append(halved(ahead))
    if warps == 1:
        return seq(*made, exchanged(lambda rows: c.last(rows, 1)))
    rows, t = _rows(c, (warps,), SHARED), Var("t")
    first = If(eq(t % index(warp), ZERO), c.first(rows, t, (t // index(warp),)), None)
    return seq(*made, _allocated(rows, seq(_phase(axis, t, c.count, first), c.last(rows, warps))))


def _rows(c: _Combination, shape: tuple[int, ...], scope: Scope) -> Rows:
    return {b: Buffer(f"{b.name}_row", shape, b.dtype, scope.name) for b in c.parts}


def _allocated(rows: Rows, body: Stmt) -> Stmt:
    for row in rows.values():
        body = Alloc(row, body)
    return body


def _wide_steps(c: _Combination) -> list[int]:
    """Returns how many values each step leaves, where all threads wait for one another between steps."""
    steps = [1 << (c.count.bit_length() - 1) // 2] if c.count > FEW_AT_ONCE else []
    is_own = all(sight_of(b.scope) is Sight.THREAD for b in c.parts)
    return steps if is_own or c.count == 1 else [*steps, 1]


def _step(c: _Combination, rows: Rows, axis: str, left: int, threads: int) -> list[Stmt]:
    """Returns the step after which the first elements of the rows, as many as *threads*, are all that is *left* combined."""
    whole, rest = divmod(left, threads)
    made: list[Stmt] = []
    if whole > 1:
        t = Var("t")
        own = _each(whole - 1, lambda i: c.step(rows, t, (i * index(threads) + (t + index(threads)),)))
        made.append(_phase(axis, t, threads, own))
    if rest:
        t = Var("t")
        made.append(_phase(axis, t, rest, c.step(rows, t, (t + index(whole * threads),))))
    t = Var("t")
    return [*made, _phase(axis, t, threads, c.first(rows, t, (t,)))]


def _each(count: int, body: Callable[[Expr], Stmt]) -> Stmt:
    """Returns *body* for each number below *count*, written out."""
    i = Var("i")
    return body(ZERO) if count == 1 else For(i, ZERO, index(count), LoopKind.UNROLLED, body(i), ())


def _phase(axis: str, t: Var, count: int, body: Stmt) -> Stmt:
    return For(t, ZERO, index(count), LoopKind.BOUND, body, (Thread(axis),))
