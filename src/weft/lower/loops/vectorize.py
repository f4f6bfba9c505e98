"""Turns vectorized loops into vector code: the loop goes, its variable becomes a vector of consecutive numbers.

    for j in vectorized(0, 48):                   for p in unrolled(0, 3):
        C[j] = A[j] * s[0]            ->              C[ramp(p * 16, 1, 16)] = A[ramp(p * 16, 1, 16)] * broadcast(s[0], 16)

A vector is as wide as one, two or four of the target's registers, of the widest type in the loop; longer loops become loops
over vectors, and the remainder takes narrower ones. Conditions that differ between lanes become masks of the stores under them.
Loops with calls or other effects in them run one iteration at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.cost import UNROLLED_VECTORS
from weft.ir import (
    DIVIDES,
    INDEX,
    Bounds,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Node,
    Not,
    Ramp,
    Select,
    Var,
    all_of,
    as_ramp,
    broadcast,
    conjuncts,
    free_vars,
    index,
    nodes_with,
    post_order,
    prove,
    reads_memory,
    substitute,
)
from weft.loop import (
    Alloc,
    Buffer,
    For,
    Function,
    If,
    Let,
    Load,
    LoopKind,
    Program,
    Stmt,
    Store,
    for_,
    loads,
    own_exprs,
    rename_fresh,
    replace_in_notes,
    seq,
    statements,
    stores,
)
from weft.lower.analysis.guard_conditions import uses_registers
from weft.lower.analysis.widen import NotVectorizable, Widen
from weft.lower.stmt_rewriter import (
    BoundedRewriter,
    Steps,
    StmtRewriter,
    Visited,
    extent_bounds,
    map_functions,
    size_bounds,
)
from weft.support.errors import LoweringError
from weft.targets import Target


def vectorize(program: Program, target: Target) -> Program:
    """Returns *program* without vectorized loops.

    Raises `LoweringError` for a loop whose iterations write the same element: that is a reduction, not a vector.
    """
    return map_functions(program, lambda f: _Vectorize(f, target).rewrite(f.body))


class _Vectorize(BoundedRewriter):
    """Finds vectorized loops, innermost first."""

    def __init__(self, function: Function, target: Target) -> None:
        super().__init__(size_bounds(function))
        self.target = target

    def visit_for(self, s: For) -> Steps:
        body = yield from self.loop_body(s)
        loop = For(s.var, s.begin, s.extent, s.kind, body, s.notes)
        return loop if s.kind is not LoopKind.VECTORIZED else _vector_loop(loop, self.bounds, self.target)


def _vector_loop(loop: For, bounds: Bounds, target: Target) -> Stmt:
    lanes = 1 if _has_vectors(loop.body) else target.access_lanes(_widest(loop.body))
    own = uses_registers(loop.body) or any(isinstance(s, Alloc) for s in statements(loop.body))
    try:
        made = _pieces(
            loop, lanes, bounds, masks=target.isa.masked_memory and not own, longest=target.isa.longest_vector
        )
        if not target.isa.lane_conditions and _has_lane_conditions(made):
            raise NotVectorizable
        return made
    except NotVectorizable:
        return For(loop.var, loop.begin, loop.extent, LoopKind.SERIAL, loop.body, loop.notes)


def _has_vectors(body: Stmt) -> bool:
    """Tells whether a loop inside has become vectors already: there are no vectors of vectors."""
    return any(s.value.dtype.lanes > s.buffer.dtype.lanes for s in stores(body))


def _has_lane_conditions(body: Stmt) -> bool:
    """Tells whether lanes are compared by their places, or access memory under conditions of their own, or not in a row."""
    if any(s.mask is not None or any(map(_is_gathered, s.indices)) for s in stores(body)):
        return True
    return any(_is_of_places(n) for s in statements(body) for e in own_exprs(s) for n in post_order(e))


def _is_of_places(n: Node) -> bool:
    if isinstance(n, Select) and n.cond.dtype.lanes > 1:
        return reads_memory(n.then) or reads_memory(n.other)
    if isinstance(n, Load):
        return any(map(_is_gathered, n.indices))
    return isinstance(n, Expr) and n.dtype.is_bool and any(isinstance(x, Ramp) for x in n.children())


def _is_gathered(index: Expr) -> bool:
    """Tells whether the lanes of an index are no arithmetic sequence."""
    return index.dtype.lanes > 1 and not isinstance(as_ramp(index), Ramp)


def _pieces(loop: For, lanes: int, bounds: Bounds, *, masks: bool, longest: int | None) -> Stmt:
    """Cuts *loop* into vectors of *lanes* and a remainder of narrower ones; a remainder of unknown length is a serial loop.

    With *masks*, a remainder that would take several vectors is a single masked one. Buffers private to an iteration have no room
    for the masked-off lanes. A language may have no vectors with more lanes than the *longest*.
    """
    if lanes == 1:
        raise NotVectorizable
    if not isinstance(loop.extent, Const):
        if prove(loop.extent < lanes, bounds):
            raise NotVectorizable
        whole, left = loop.extent // lanes, Var(loop.var.name)
        body = substitute(rename_fresh(loop.body), {loop.var: loop.begin + whole * lanes + left})
        return seq(_run(loop, loop.body, whole, lanes, bounds), for_(left, loop.extent % lanes, body))
    extent = int(loop.extent.value)
    wide = _unit(loop, extent, lanes)
    lanes = min(wide, longest or wide)
    parts: list[Stmt] = []
    if extent >= lanes:
        parts.append(_run(loop, loop.body, index(extent // lanes), lanes, bounds))
    done = extent // lanes * lanes
    rest = extent - done
    if masks and rest.bit_count() > 1:
        inside = If(loop.var < loop.begin + extent, rename_fresh(loop.body) if parts else loop.body, None)
        return seq(*parts, _widened(loop, inside, loop.begin + done, 1 << rest.bit_length(), bounds))
    for width in _powers_of_two(rest):
        body = rename_fresh(loop.body) if parts else loop.body
        first = loop.begin + done
        parts.append(_widened(loop, body, first, width, bounds) if width > 1 else substitute(body, {loop.var: first}))
        done += width
    return seq(*parts)


def _unit(loop: For, extent: int, lanes: int) -> int:
    """Returns the lanes of the vectors that a loop is cut into, given those of a register.

    Two or four registers make one vector: the code is the same, and costs less to generate. A vector that crosses a multiple of a
    divisor in an index would access memory that is not contiguous, so one register is enough there.
    """
    registers, rest = divmod(extent, lanes)
    whole = [extent] if rest == 0 and registers in (2, 4) else []
    wide = whole if registers <= UNROLLED_VECTORS else [4 * lanes]
    divisors = _divisors(loop) if wide else set()
    return next((w for w in wide if all(d % w == 0 or d < lanes for d in divisors)), lanes)


def _divisors(loop: For) -> set[int]:
    """Returns the constant divisors of expressions with the loop's variable."""
    found: set[int] = set()
    for s in statements(loop.body):
        for n in (n for e in own_exprs(s) for n in nodes_with(DIVIDES, e)):
            if isinstance(n, FloorDiv | FloorMod) and isinstance(n.b, Const) and loop.var in free_vars(n.a):
                found.add(int(n.b.value))
    return found


def _powers_of_two(n: int) -> Iterator[int]:
    for bit in reversed(range(n.bit_length())):
        if n >> bit & 1:
            yield 1 << bit


def _run(loop: For, body: Stmt, count: Expr, lanes: int, bounds: Bounds) -> Stmt:
    """Returns *count* vectors of *lanes*, one after another."""
    if isinstance(count, Const) and int(count.value) == 1:
        return _widened(loop, body, loop.begin, lanes, bounds)
    short = isinstance(count, Const) and int(count.value) <= UNROLLED_VECTORS
    part = Var(f"{loop.var.name}_v")
    inside = bounds.bind(part, 0, count - 1)
    vectors = _widened(loop, body, loop.begin + part * lanes, lanes, inside)
    return for_(part, count, vectors, LoopKind.UNROLLED if short else LoopKind.SERIAL)


def _widened(loop: For, body: Stmt, first: Expr, lanes: int, bounds: Bounds) -> Stmt:
    return _Body(loop.var, Widen(loop.var, first, lanes, bounds)).rewrite(body)


def _widest(body: Stmt) -> int:
    """Returns the bits of the widest type that *body* computes with; half-width floats are computed in single precision."""
    kinds = {s.buffer.dtype for s in stores(body)}
    only_copies = True
    for s in statements(body):
        for e in (s.value,) if isinstance(s, Store) else own_exprs(s):
            kinds |= {n.dtype for n in _values(e) if n.dtype is not INDEX}
            only_copies = only_copies and isinstance(e, Load | Const)
    return max([32 if k.is_float and k.bits < 32 and not only_copies else max(8, k.bits) for k in kinds], default=8)


def _values(e: Expr) -> Iterator[Expr]:
    """Yields the nodes of *e* but those in the indices of its loads."""
    seen: set[Node] = set()
    stack: list[Node] = [e]
    while stack:
        n = stack.pop()
        if n in seen:
            continue
        seen.add(n)
        if isinstance(n, Expr) and not n.dtype.is_bool:
            yield n
        if not isinstance(n, Load):
            stack += n.children()


class _Body(StmtRewriter):
    """Rewrites the body of a vectorized loop."""

    def __init__(self, lane: Var, wide: Widen) -> None:
        self.lane = lane
        self.wide = wide

    def expr(self, e: Expr) -> Expr:
        """Returns an expression that all lanes must agree on."""
        made = self.wide(e)
        if made.dtype.lanes != 1:
            raise NotVectorizable
        return made

    def visit_for(self, s: For) -> Steps:
        begin, extent = self.expr(s.begin), self.expr(s.extent)
        loop = For(s.var, begin, extent, s.kind, s.body, s.notes)
        before = self.wide.enter(bounds=extent_bounds(self.wide.bounds, loop))
        body = yield s.body
        self.wide.leave(before)
        return For(s.var, begin, extent, s.kind, body, replace_in_notes(s.notes, self.wide.expanded))

    def visit_let(self, s: Let) -> Steps:
        value = self.wide(s.value)
        if value.dtype is s.var.dtype:
            body = yield s.body
            return Let(s.var, value, body)
        var = Var(s.var.name, value.dtype)
        self.wide.bind(s.var, var)
        body = yield s.body
        return Let(var, value, body)

    def visit_if(self, s: If) -> Steps:
        shared, varying = self._split(s.cond)
        if not varying:
            then = yield s.then
            other = None if s.other is None else (yield s.other)
            return If(all_of(shared), then, other)
        cond = all_of(varying)
        then = yield from self._masked(cond, s.then, s.cond)
        if s.other is None:
            return If(all_of(shared), then, None) if shared else then
        whole = cond if not shared else cond & broadcast(all_of(shared), self.wide.lanes)
        other = yield from self._masked(Not(whole), s.other)
        return seq(If(all_of(shared), then, None) if shared else then, other)

    def _split(self, cond: Expr) -> tuple[list[Expr], list[Expr]]:
        """Returns the conditions of a conjunction that all lanes agree on, and those that they don't; the former go first.

        Conditions with loads keep their order, since the ones before may guard the memory that they read.
        """
        parts = [self.wide(c) for c in ([cond] if reads_memory(cond) else conjuncts(cond))]
        return [c for c in parts if c.dtype.lanes == 1], [c for c in parts if c.dtype.lanes != 1]

    def _masked(self, mask: Expr, s: Stmt, cond: Expr | None = None) -> Steps:
        outer = self.wide.mask
        before = self.wide.enter(mask=mask if outer is None else outer & mask, cond=cond)
        made = yield s
        self.wide.leave(before)
        return made

    def visit_alloc(self, s: Alloc) -> Steps:
        """Gives each lane its own copy of a buffer that belongs to the iteration."""
        b = s.buffer
        if b.rank != 1 or b.dtype.lanes != 1:
            raise NotVectorizable
        wide = self.wide.expanded[b] = Buffer(b.name, (b.shape[0] * self.wide.lanes,), b.dtype, b.scope)
        body = yield s.body
        return Alloc(wide, body)

    def visit_store(self, s: Store) -> Visited:
        if len(s.indices) != 1 or s.buffer.dtype.lanes != 1 or s.mask is not None:
            raise NotVectorizable
        buffer, i = self.wide.index(s.buffer, self.wide(s.indices[0]))
        value = self.wide(s.value)
        if i.dtype.lanes != 1:
            return Store(buffer, (i,), self.wide.full(s.value), self.wide.mask)
        if self.wide.mask is not None:
            raise NotVectorizable
        if value.dtype.lanes != 1 or any(x.buffer is s.buffer for x in loads(s.value)):
            raise LoweringError(
                f"the iterations of the vectorized loop {self.lane.name} all write the same element of {s.buffer.name}",
                hint="vectorize a loop over a spatial axis, or rfactor the reduction",
            )
        return Store(buffer, (i,), value, None)

    visit_seq = StmtRewriter.visit_seq

    def default(self, s: Stmt) -> Visited:
        raise NotVectorizable
