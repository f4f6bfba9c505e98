"""From the program of cores to a grid, each of whose blocks one core runs: parallel loops are loops over blocks.

    for i in parallel(0, 8):                               for i in bound(0, 8, thread="blockIdx.x"):
        T = alloc("global", f32[16])                           T = alloc("local", f32[16])
        T[0] = A[i]                                            T[0] = A[i]
        B[i] = T[0] * 2.0                        ->            B[i] = T[0] * 2.0
    C[0] = B[0]                                            for b in bound(0, 1, thread="blockIdx.x"):
                                                               C[0] = B[0]

It stands where processors' parallel loops are made into tasks (`outline_tasks`). Only the outermost parallel loops are over
blocks; those inside them run one iteration at a time. Memory of an iteration is the block's own where it is small and of a known
size, else a part of one buffer for all.
"""

from __future__ import annotations

from weft.cost import LARGEST_ON_STACK
from weft.ir import ONE, ZERO, Const, Expr, Node, Ramp, Var, broadcast, free_vars, map_nodes, substitute
from weft.loop import (
    Address,
    Alloc,
    Assert,
    Buffer,
    Call,
    Eval,
    For,
    Load,
    LoopKind,
    Program,
    Stmt,
    Store,
    Thread,
    View,
    bound_vars,
    is_hint,
    statements,
)
from weft.lower.stmt_rewriter import Steps, StmtRewriter, Visited, map_functions
from weft.support.errors import LoweringError
from weft.targets import Sight, sight_of


def bind_cores(program: Program) -> Program:
    """Returns *program* with all its computation in grids of blocks of one thread."""
    return map_functions(program, lambda f: _Bind().rewrite(f.body))


class _Bind(StmtRewriter):
    """Descends to the parallel loops, and to the statements beside these."""

    def visit(self, s: Stmt) -> Visited:
        if isinstance(s, Assert | Eval) or (isinstance(s, Call) and is_hint(s)):
            return s
        if isinstance(s, For) and s.kind is LoopKind.PARALLEL:
            return _grid(s)
        if not any(isinstance(x, For) and x.kind is LoopKind.PARALLEL for x in statements(s)):
            return _grid(For(Var("b"), ZERO, ONE, LoopKind.PARALLEL, s, ()))
        return super().visit(s)


def _grid(loop: For) -> Stmt:
    """Returns a loop over blocks, inside of the memory that its iterations have parts of."""
    body = loop.body if loop.begin is ZERO else substitute(loop.body, {loop.var: loop.begin + loop.var})
    own = _Own(loop)
    made: Stmt = For(loop.var, ZERO, loop.extent, LoopKind.BOUND, own.rewrite(body), (Thread("blockIdx.x"),))
    for b in own.shared:
        made = Alloc(b, made)
    return made


class _Own(StmtRewriter):
    """Rewrites the body of a loop over blocks; collects the buffers of which each iteration has a part."""

    def __init__(self, loop: For) -> None:
        self.loop = loop
        self.shared: list[Buffer] = []

    def visit_for(self, s: For) -> Steps:
        body = yield s.body
        kind = LoopKind.SERIAL if s.kind is LoopKind.PARALLEL else s.kind
        return For(s.var, s.begin, s.extent, kind, body, s.notes)

    def visit_alloc(self, s: Alloc) -> Steps:
        b = s.buffer
        if sight_of(b.scope) is Sight.THREAD:
            body = yield s.body
            return Alloc(b, body)
        size = b.shape[0]
        if isinstance(size, Const) and int(size.value) * b.dtype.bytes <= LARGEST_ON_STACK:
            new = Buffer(b.name, b.shape, b.dtype, "local")
            body = yield _redirected(s.body, b, new, ZERO)
            return Alloc(new, body)
        self._check_size(b)
        new = Buffer(b.name, (self.loop.extent * size,), b.dtype, b.scope)
        self.shared.append(new)
        return (yield _redirected(s.body, b, new, self.loop.var * size))

    def _check_size(self, b: Buffer) -> None:
        inside = {v for x in statements(self.loop) for v in bound_vars(x)}
        if inside & set(free_vars(b.shape[0])):
            raise LoweringError(f"the size of {b.name} changes while the grid runs")


def _redirected(body: Stmt, old: Buffer, new: Buffer, first: Expr) -> Stmt:
    """Returns *body* with the accesses of *old* made to *new*, from its element *first* on."""

    def change(n: Node) -> Node | None:
        match n:
            case Load(b, (i,)) if b is old:
                return Load(new, (_moved(i, first),))
            case Address(b, (i,)) if b is old:
                return Address(new, (_moved(i, first),))
            case Store(b, (i,), value, mask) if b is old:
                return Store(new, (_moved(i, first),), value, mask)
            case View(b, source, offset, inner) if source is old:
                return View(b, new, offset + first, inner)
        return None

    return map_nodes(body, change)


def _moved(i: Expr, first: Expr) -> Expr:
    """Returns the index *i* of one element, or of several, from the element *first* on."""
    if first is ZERO:
        return i
    if isinstance(i, Ramp):
        return Ramp(i.base + first, i.stride, i.lanes)
    return i + broadcast(first, i.dtype.lanes)
