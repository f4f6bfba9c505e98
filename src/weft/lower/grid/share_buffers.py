"""Moves allocations that several threads see to a common place: shared memory into the block, global memory out of the grid.

    for i in bound(0, 4, thread="blockIdx.x"):             for i in bound(0, 4, thread="blockIdx.x"):
        for k in range(0, 8):                                  S = alloc("shared", f32[16, 2])
            for j in bound(0, 16, thread="threadIdx.x"):       for k in range(0, 8):
                S = alloc("shared", f32[2])          ->            for j in bound(0, 16, thread="threadIdx.x"):
                S[0] = A[i, j, k]                                      S[j, 0] = A[i, j, k]
                ...                                                    ...

A buffer of each iteration of a bound loop becomes a row of one buffer for all iterations. Iterations of a serial loop then reuse
the same memory: barriers are inserted after this pass.
"""

from __future__ import annotations

from weft.ir import ONE, Const, Expr, Node, free_vars, index, map_nodes
from weft.loop import Address, Alloc, Buffer, For, Load, Program, Stmt, Store, View
from weft.lower.analysis.grid_shape import THREADS, axis_of, is_over_blocks
from weft.lower.stmt_rewriter import Steps, StmtRewriter, map_functions
from weft.support.errors import LoweringError
from weft.targets import Grid, Sight, Target, sight_of


def share_buffers(program: Program, target: Target) -> Program:
    """Returns *program* with the memory of warps and blocks allocated in the block, and that of the grid outside of it.

    Refuses memory that *target* does not have.
    """
    return map_functions(program, lambda f: _Share(target).rewrite(f.body))


class _Share(StmtRewriter):
    """Removes the allocations inside a kernel, and puts them back around the body of its blocks, or around the kernel."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.bound: list[For] = []
        self.loops: list[For] = []
        self.of_block: dict[For, list[Buffer]] = {}
        self.of_grid: list[Buffer] = []

    def visit_alloc(self, s: Alloc) -> Steps:
        self._check_scope(s.buffer)
        sight = sight_of(s.buffer.scope)
        if not self.bound:
            if sight is not Sight.GRID:
                raise LoweringError(
                    f"{s.buffer.name} is in {s.buffer.scope} memory, but used outside of a loop over blocks",
                    hint="compute it inside the loop that is bound to blockIdx, or put it into global memory",
                )
            body = yield s.body
            return Alloc(s.buffer, body)
        if sight is Sight.THREAD:
            body = yield s.body
            return Alloc(s.buffer, body)
        self._check_size(s.buffer)
        rows = [f for f in self.bound if sight is Sight.GRID or (sight is Sight.BLOCK and not is_over_blocks(f))]
        new = _with_rows(s.buffer, rows, (self.target.grid or Grid()).warp)
        (
            self.of_grid if sight is Sight.GRID else self.of_block[next(filter(is_over_blocks, reversed(self.bound)))]
        ).append(new)
        return (yield _redirected(s.body, s.buffer, new, tuple([f.var - f.begin for f in rows])))

    def _check_scope(self, b: Buffer) -> None:
        if self.target.scope(b.scope) is None:
            known = ", ".join([s.name for s in self.target.scopes])
            raise LoweringError(
                f"{b.name} is in {b.scope} memory, which {self.target.name} does not have", hint=f"use one of {known}"
            )

    def _check_size(self, b: Buffer) -> None:
        inside = {f.var for f in self.loops}
        if any(v in inside for size in b.shape for v in free_vars(size)):
            raise LoweringError(f"the size of {b.name}, which threads share, changes while the grid runs")

    def visit_for(self, s: For) -> Steps:
        is_bound, outer = axis_of(s) is not None, len(self.loops)
        if is_bound:
            self.bound.append(s)
        if is_over_blocks(s):
            self.of_block[s] = []
        if self.bound:
            self.loops.append(s)
        body = yield s.body
        del self.loops[outer:]
        if not is_bound:
            return For(s.var, s.begin, s.extent, s.kind, body, s.notes)
        self.bound.pop()
        if is_over_blocks(s):
            body = _allocated(self.of_block.pop(s), body)
        made: Stmt = For(s.var, s.begin, s.extent, s.kind, body, s.notes)
        if not self.bound:
            made = _allocated(self.of_grid, made)
        return made


def _allocated(buffers: list[Buffer], body: Stmt) -> Stmt:
    """Allocates *buffers*, and forgets them."""
    while buffers:
        body = Alloc(buffers.pop(), body)
    return body


def _with_rows(b: Buffer, rows: list[For], warp: int) -> Buffer:
    """Returns a buffer with a copy of *b* for each iteration of the loops.

    Where neighbouring threads have rows of their own in shared memory, these begin in different banks for the threads of a warp,
    of so many threads, see `_in_different_banks`.
    """
    if not rows:
        return b
    strides = None if b.strides is None else list(b.strides)
    if sight_of(b.scope) is Sight.BLOCK and axis_of(rows[-1]) == THREADS[-1] and b.rank == 1 and strides is None:
        return _in_different_banks(b, rows, warp)
    if strides is not None:
        step = strides[0] * b.shape[0]
        for f in reversed(rows):
            strides.insert(0, step)
            step = step * f.extent
    return Buffer(b.name, (*[f.extent for f in rows], *b.shape), b.dtype, b.scope, strides)


def _in_different_banks(b: Buffer, rows: list[For], warp: int) -> Buffer:
    """Returns a buffer whose rows are an odd number of elements apart, or an odd multiple of the elements of a row that threads
    of one warp access, where fewer than a warp have rows."""
    size, neighbours = b.shape[0], rows[-1].extent
    threads = int(neighbours.value) if len(rows) == 1 and isinstance(neighbours, Const) else 1
    share = warp // threads if threads > 1 and warp % threads == 0 else 1
    step: Expr = size
    if isinstance(size, Const):
        step = index((-(-int(size.value) // share) | 1) * share)
    strides: list[Expr] = [ONE]
    for f in reversed(rows):
        strides.insert(0, step)
        step = step * f.extent
    return Buffer(b.name, (*[f.extent for f in rows], size), b.dtype, b.scope, strides)


def _redirected(body: Stmt, old: Buffer, new: Buffer, row: tuple[Expr, ...]) -> Stmt:
    """Returns *body* with accesses of *old* redirected to a row of *new*."""
    if not row:
        return body

    def change(n: Node) -> Node | None:
        match n:
            case Load(b, indices) if b is old:
                return Load(new, (*row, *indices))
            case Address(b, indices) if b is old:
                return Address(new, (*row, *indices))
            case Store(b, indices, value, mask) if b is old:
                return Store(new, (*row, *indices), value, mask)
            case View(_, source) if source is old:
                raise LoweringError(f"{old.name} is seen through a view, but threads are to have rows of it")
        return None

    return map_nodes(body, change)
