"""Makes a tree reduction of each loop that combines partial results of the threads of a block.

    for k in range(0, 8):                                  R = alloc("shared", f32[8])
        with block("C", vk=reduce(8, k)):                  for t in bound(0, 8, thread="threadIdx.x"):
            annotate(cross_thread="threadIdx.x")               R[t] = P[t]
            with init():                                   for t in bound(0, 4, thread="threadIdx.x"):
                C[0] = 0.0                        ->           R[t] = R[t] + R[t + 4]
            C[0] = C[0] + P[vk]                            for t in bound(0, 2, thread="threadIdx.x"):
                                                               R[t] = R[t] + R[t + 2]
                                                           for t in bound(0, 1, thread="threadIdx.x"):
                                                               R[t] = R[t] + R[t + 1]
                                                           C[0] = 0.0
                                                           C[0] = C[0] + R[0]

The threads exchange values through the memory of a warp, if they are one and the target has such memory (it stands for
instructions that shuffle registers), else through shared memory. In each step the upper half is combined into the lower one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.ir import TRUE, ZERO, Const, Expr, Node, Var, free_vars, index, map_nodes, substitute
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
from weft.targets import Target


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

    def first(self, rows: Mapping[Buffer, Buffer], t: Expr) -> Stmt:
        """Returns the statement that writes the partial result of thread *t* to the row of each result."""
        return seq(*[Store(rows[b], (t,), substitute(x, {self.lane: t}), None) for b, x in self.parts.items()])

    def step(self, rows: Mapping[Buffer, Buffer], to: Expr, of: Expr) -> Stmt:
        """Returns the statement that combines element *of* of the rows into element *to*."""
        return rename_fresh(self._redirected(rows, to, of))

    def last(self, rows: Mapping[Buffer, Buffer]) -> Stmt:
        """Returns the statement that combines the first elements of the rows into the results."""
        return seq(self.start, self._redirected(rows, None, ZERO))

    def _redirected(self, rows: Mapping[Buffer, Buffer], to: Expr | None, of: Expr) -> Stmt:
        """Returns the update of element *to* of the rows, or of the results themselves, by element *of* of the rows."""
        row_of = {x.buffer: rows[b] for b, x in self.parts.items()}

        def change(n: Node) -> Node | None:
            match n:
                case Load(b, _) if b in row_of:
                    return Load(row_of[b], (of,))
                case Load(b, _) if b in rows and to is not None:
                    return Load(rows[b], (to,))
                case Store(b, _, value, mask) if b in rows and to is not None:
                    return Store(rows[b], (to,), value, mask)
            return None

        return map_nodes(self.update, change)


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
        """Returns the tree: each step combines the upper half of the remaining values into the lower half."""
        scope = self._scope(axis, c.count)
        rows = {b: Buffer(f"{b.name}_row", (c.count,), b.dtype, scope) for b in c.parts}
        t = Var("t")
        made = [_phase(axis, t, c.count, c.first(rows, t))]
        left = c.count
        while left > 1:
            half, t = (left + 1) // 2, Var("t")
            made.append(_phase(axis, t, left - half, c.step(rows, t, t + index(half))))
            left = half
        body = seq(*made, c.last(rows))
        for row in rows.values():
            body = Alloc(row, body)
        return body if c.predicate is TRUE else If(c.predicate, body, None)

    def _scope(self, axis: str, count: int) -> str:
        """Returns the memory scope for the exchange: that of a warp, if all threads that read are in that warp."""
        facts = self.target.grid
        rows = {a for a, n in self.extents.items() if a != axis and n > 1}
        is_warp = facts is not None and axis == THREADS[-1] and count == facts.warp == self.extents.get(axis)
        return "warp" if is_warp and rows <= self.around and self.target.scope("warp") is not None else "shared"


def _phase(axis: str, t: Var, count: int, body: Stmt) -> Stmt:
    return For(t, ZERO, index(count), LoopKind.BOUND, body, (Thread(axis),))
