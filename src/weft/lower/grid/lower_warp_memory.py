"""Lowers the memory of a warp to registers and shuffles.

    W = alloc("warp", f32[32])                          W = alloc("register", f32[1])
    W[tx] = P[0]                                        W[0] = P[0]
    call("weft.barrier.warp", W.at(0))          ->      V = alloc("register", f32[1])
    P[0] = P[0] + W[(tx + 16) % 32]                     call("weft.shuffle.warp", V.at(0), W.at(0), (tx + 16) % 32)
                                                        P[0] = P[0] + V[0]

Each thread has the element that it stores, and asks others for those that it loads. All threads of a warp have to make a shuffle,
so one for a load under a condition on which they may differ is made before that condition. Where this can't be, or a thread
stores elements of others, a kernel keeps its memory of warps, which no code generator has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.ir import ZERO, Bounds, Const, Expr, Node, Var, assume, free_vars, index, map_nodes, reads_memory, simplify
from weft.loop import (
    NOTHING,
    WARP_BARRIER,
    WARP_SHUFFLE,
    Address,
    Alloc,
    Assert,
    Buffer,
    Call,
    Eval,
    For,
    Function,
    If,
    Kernel,
    Let,
    Load,
    Program,
    Stmt,
    Store,
    View,
    While,
    bound_vars,
    find_note,
    loads,
    own_exprs,
    seq,
    statements,
    stores,
    sub_statements,
)
from weft.lower.analysis.grid_shape import THREADS, axis_of
from weft.lower.stmt_rewriter import Steps, StmtRewriter, Visited, extent_bounds, map_functions, size_bounds
from weft.targets import WARP, Sight, Target, sight_of


def lower_warp_memory(program: Program, target: Target) -> Program:
    """Returns *program*, of kernels with flat buffers, whose warps exchange values by shuffles."""
    warp = target.grid.warp if target.grid else 1
    return map_functions(program, lambda f: f.body if find_note(f.notes, Kernel) is None else _lowered(f, warp))


def _lowered(kernel: Function, warp: int) -> Stmt:
    used = {s.buffer for s in statements(kernel.body) if isinstance(s, Alloc) and s.buffer.scope == WARP.name}
    place = _place_in_warp(kernel, warp) if used else None
    if place is None or not _may_be_lowered(kernel.body, used, place):
        return kernel.body
    registers = {b: Buffer(b.name, (index(1),), b.dtype, "register") for b in used}
    return _Exchange(registers, place).rewrite(kernel.body)


@dataclass(frozen=True)
class _Place:
    """The number *lane* of a thread in its warp, of *warp* threads, the *rows* that may be those of a warp in a buffer that has
    one for each, and the variables that *vary* in a warp; within *bounds*, those of all loops around."""

    lane: Expr
    warp: int
    rows: tuple[Expr, ...]
    bounds: Bounds
    vary: frozenset[Var]

    def inside(self, s: Stmt) -> _Place:
        """Returns the bounds, and the variables that vary among threads, inside of *s*."""
        if isinstance(s, For):
            vary = self.vary | {s.var} if axis_of(s) is None and self.varies(s.begin, s.extent) else self.vary
            return replace(self, bounds=extent_bounds(self.bounds, s), vary=vary)
        if isinstance(s, Let) and self.varies(s.value):
            return replace(self, vary=self.vary | {s.var})
        return self

    def varies(self, *values: Expr) -> bool:
        """Tells whether values may differ between the threads of a warp; of a block's memory all read the same."""
        own = (Sight.THREAD, Sight.WARP)
        read = [n for e in values for n in loads(e)]
        return any(not self.vary.isdisjoint(free_vars(e)) for e in values) or any(
            sight_of(n.buffer.scope) in own for n in read
        )

    def parts(self, s: Stmt) -> bool:
        """Tells whether the threads of a warp may go different ways at *s*."""
        if isinstance(s, For):
            return axis_of(s) is None and self.varies(s.begin, s.extent)
        return isinstance(s, If | While) and self.varies(s.cond)

    def row_and_lane(self, at: Expr) -> tuple[Expr, Expr]:
        """Returns which row of *warp* elements the element is in, and its number there."""
        return simplify(at // index(self.warp), self.bounds), simplify(at % index(self.warp), self.bounds)


def _place_in_warp(kernel: Function, warp: int) -> _Place | None:
    """Returns the place of a thread of *kernel*; None where its blocks are no whole warps."""
    bounds, count = size_bounds(kernel), 1
    number: Expr = ZERO
    threads = {axis_of(s): s for s in statements(kernel.body) if axis_of(s) in THREADS}
    for axis in THREADS:
        s = threads.get(axis)
        if not isinstance(s, For):
            continue
        if not isinstance(s.extent, Const):
            return None
        bounds, number, count = extent_bounds(bounds, s), number * s.extent + s.var, count * int(s.extent.value)
    if count % warp:
        return None
    lane, last = simplify(number % index(warp), bounds), threads.get(THREADS[-1])
    whole = isinstance(last, For) and isinstance(last.extent, Const) and int(last.extent.value) % warp == 0
    rows = (ZERO, simplify(last.var // index(warp), bounds)) if whole and isinstance(last, For) else (ZERO,)
    return _Place(lane, warp, rows, bounds, frozenset(free_vars(lane)))


@dataclass(frozen=True)
class _Spot:
    """A statement, the *place* of a thread there, the outermost statement around it at which threads *part*, with itself, and
    the variables bound between the two."""

    stmt: Stmt
    place: _Place
    part: Stmt | None = None
    bound: frozenset[Var] = frozenset()


def _spots(root: Stmt, place: _Place) -> Iterator[_Spot]:
    pending = [_Spot(root, place)]
    while pending:
        spot = pending.pop()
        s = spot.stmt
        if spot.part is None and spot.place.parts(s):
            spot = replace(spot, part=s)
        yield spot
        inside, bound = spot.place.inside(s), spot.bound | set(bound_vars(s)) if spot.part else spot.bound
        for n, x in enumerate(sub_statements(s)):
            known = replace(inside, bounds=assume(s.cond, inside.bounds)) if isinstance(s, If) and n == 0 else inside
            pending.append(_Spot(x, known, spot.part, bound))


def _may_be_lowered(root: Stmt, used: set[Buffer], place: _Place) -> bool:
    """Tells whether all accesses of the buffers *used* can be registers and shuffles."""
    spots = list(_spots(root, place))
    found = _stored_rows([x for x in spots if isinstance(x.stmt, Store) and x.stmt.buffer in used], place)
    if found is None or any(_escapes(x.stmt, used) for x in spots):
        return False
    read = [(n, x) for x in spots for e in own_exprs(x.stmt) for n in loads(e) if n.buffer in used]
    return all(n.buffer in found and _may_be_shuffled(n, x, found[n.buffer]) for n, x in read)


def _stored_rows(stored: Sequence[_Spot], place: _Place) -> dict[Buffer, Expr] | None:
    """Returns the row of each buffer in which threads store the elements of their own numbers; None if they store others."""
    found: dict[Buffer, Expr] = {}
    for x in stored:
        s = x.stmt
        assert isinstance(s, Store)
        row, lane = x.place.row_and_lane(s.indices[0])
        is_own = simplify(lane - place.lane, x.place.bounds) is ZERO and row in place.rows
        if not is_own or s.mask is not None or found.setdefault(s.buffer, row) is not row:
            return None
    return found


def _escapes(s: Stmt, used: set[Buffer]) -> bool:
    """Tells whether *s* takes the address of a buffer, for anything but a barrier."""
    return (isinstance(s, View) and s.source in used) or (_uses(s, used) and not _is_barrier(s))


def _may_be_shuffled(n: Load, x: _Spot, row: Expr) -> bool:
    """Tells whether a load is one of its own warp's row, and of an element that is known before threads part."""
    if simplify(x.place.row_and_lane(n.indices[0])[0] - row, x.place.bounds) is not ZERO or isinstance(x.stmt, While):
        return False
    if x.part is None:
        return True
    is_known = x.bound.isdisjoint(free_vars(n)) and not reads_memory(n.indices[0])
    return is_known and all(s.buffer is not n.buffer for s in stores(x.part))


def _uses(s: Stmt, used: set[Buffer]) -> bool:
    """Tells whether a call is given the address of one of the buffers *used*."""
    return isinstance(s, Call) and any(isinstance(a, Address) and a.buffer in used for a in s.args)


def _is_barrier(s: Stmt) -> bool:
    return isinstance(s, Call) and s.callee == WARP_BARRIER


class _Exchange(StmtRewriter):
    """Gives each thread *registers* in the place of its elements of buffers, and shuffles in the place of loads."""

    def __init__(self, registers: Mapping[Buffer, Buffer], place: _Place) -> None:
        self.registers = registers
        self.place = place
        self.apart = False
        self.taken: dict[Load, Buffer] = {}

    def visit(self, s: Stmt) -> Visited:
        return self._together(s) if not self.apart and self.place.parts(s) else self._inside(s)

    def _together(self, s: Stmt) -> Steps:
        """Makes all shuffles for *s* before its threads part."""
        self.apart = True
        made = self._inside(s)
        body = made if isinstance(made, Stmt) else (yield from made)
        self.apart = False
        return self._behind_shuffles(body)

    def _inside(self, s: Stmt) -> Visited:
        outer = self.place
        inner = outer.inside(s)
        return super().visit(s) if inner is outer else self._with_place(s, inner)

    def _with_place(self, s: Stmt, inner: _Place) -> Steps:
        outer, self.place = self.place, inner
        made = super().visit(s)
        body = made if isinstance(made, Stmt) else (yield from made)
        self.place = outer
        return body

    def expr(self, e: Expr) -> Expr:
        return map_nodes(e, self._register) if loads(e) else e

    def _register(self, n: Node) -> Node | None:
        """Returns the register that a shuffle leaves an element in."""
        if not isinstance(n, Load) or n.buffer not in self.registers:
            return None
        new = self.taken.setdefault(n, Buffer(f"{n.buffer.name}_taken", (index(1),), n.buffer.dtype, "register"))
        return Load(new, (ZERO,))

    def _behind_shuffles(self, s: Stmt) -> Stmt:
        """Returns *s* behind the shuffles that it needs, and forgets these."""
        taken, self.taken = self.taken, {}
        for n, new in reversed(taken.items()):
            lane = self.place.row_and_lane(n.indices[0])[1]
            own = Address(self.registers[n.buffer], (ZERO,))
            s = Alloc(new, seq(Call(WARP_SHUFFLE, (Address(new, (ZERO,)), own, lane)), s))
        return s

    def _leaf(self, made: Visited) -> Stmt:
        assert isinstance(made, Stmt)
        return made if self.apart else self._behind_shuffles(made)

    def visit_store(self, s: Store) -> Visited:
        to = self.registers.get(s.buffer)
        return self._leaf(super().visit_store(s) if to is None else Store(to, (ZERO,), self.expr(s.value), None))

    def visit_eval(self, s: Eval) -> Visited:
        return self._leaf(super().visit_eval(s))

    def visit_assert(self, s: Assert) -> Visited:
        return self._leaf(super().visit_assert(s))

    def visit_call(self, s: Call) -> Visited:
        return NOTHING if _uses(s, set(self.registers)) else self._leaf(super().visit_call(s))

    def visit_let(self, s: Let) -> Steps:
        value = self.expr(s.value)
        if self.apart:
            return Let(s.var, value, (yield s.body))
        taken, self.taken = self.taken, {}
        made = Let(s.var, value, (yield s.body))
        self.taken = taken
        return self._behind_shuffles(made)

    def visit_alloc(self, s: Alloc) -> Steps:
        body = yield s.body
        return Alloc(self.registers.get(s.buffer, s.buffer), body)
