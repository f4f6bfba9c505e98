"""Drops the guards of a tile's remainder from sums in a thread's registers: elements beyond the end are summed, but never read.

    for i: if x * 4 + i < n: c[i] = 0.0                          for i: c[i] = 0.0
    for k, i: if x * 4 + i < n: c[i] = c[i] + A[i] * B[k]   ->   for k, i: c[i] = c[i] + A[i] * B[k]
    for i: if x * 4 + i < n: C[x * 4 + i] = c[i]                 for i: if x * 4 + i < n: C[x * 4 + i] = c[i]

All accesses of an element of `c` are under a condition on where it is, the same for all. So without the condition, the values
that other elements hold are read by their own sums alone, provided that these load inside of their buffers. With conditions in
the innermost loop a thread would wait for each comparison, and its compiler keep fewer operations apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import cache
from itertools import pairwise

from weft.ir import (
    EMPTY,
    ZERO,
    Bounds,
    Const,
    Expr,
    Var,
    all_of,
    conjuncts,
    free_vars,
    linear_terms,
    prove,
    reads_memory,
    substitute,
)
from weft.loop import (
    Alloc,
    Buffer,
    For,
    If,
    Program,
    Stmt,
    Store,
    bound_vars,
    loads,
    statements,
    sub_statements,
)
from weft.lower.analysis.store_accesses import StoreAccess, store_accesses
from weft.lower.stmt_rewriter import Steps, StmtRewriter, extent_bounds, map_functions
from weft.targets import Sight, sight_of


def unguard_register_sums(program: Program) -> Program:
    """Returns *program*, with flat buffers and before it has vectors, without such conditions."""
    return map_functions(program, lambda f: _Unguard().rewrite(f.body))


class _Unguard(StmtRewriter):
    def __init__(self) -> None:
        self.needless: dict[Buffer, set[Expr]] = {}
        self.bounds = EMPTY

    def visit_for(self, s: For) -> Steps:
        outer, self.bounds = self.bounds, extent_bounds(self.bounds, s)
        body = yield s.body
        self.bounds = outer
        return For(s.var, s.begin, s.extent, s.kind, body, s.notes)

    def visit_alloc(self, s: Alloc) -> Steps:
        if sight_of(s.buffer.scope) is Sight.THREAD and s.buffer.dtype.is_float:
            self.needless[s.buffer] = _needless(s.body, s.buffer, self.bounds)
        body = yield s.body
        return Alloc(s.buffer, body)

    def visit_if(self, s: If) -> Steps:
        written = {x.buffer if isinstance(x, Store) else None for x in _leaves(s.then)}
        buffer = written.pop() if len(written) == 1 and s.other is None else None
        needless = self.needless.get(buffer, set()) if buffer is not None else set()
        kept = [c for c in conjuncts(s.cond) if c not in needless]
        then = yield s.then
        other = None if s.other is None else (yield s.other)
        return If(all_of(kept), then, other) if kept else then


def _leaves(s: Stmt) -> Iterator[Stmt]:
    """Yields the statements inside of loops."""
    stack = [s]
    while stack:
        inner = stack.pop()
        below = sub_statements(inner)
        stack += below
        if not below:
            yield inner


def _needless(body: Stmt, buffer: Buffer, bounds: Bounds) -> set[Expr]:
    """Returns the conditions that stores to *buffer* need not have."""
    uses = store_accesses(body, buffer)
    bound = {v for s in statements(body) for v in bound_vars(s)}
    if not uses or any(len(u.indices) > 1 or u.store.mask is not None for u in uses):
        return set()
    places = [_places(u) for u in uses]
    if None in places:
        return set()
    named = [_conditions(u, p or {}, bound) for u, p in zip(uses, places, strict=True)]
    shared = set.intersection(*[set(n.values()) for n in named])
    found: set[Expr] = set()
    for u, conditions in zip(uses, named, strict=True):
        mine = {c for c, of_place in conditions.items() if of_place in shared}
        if u.store.buffer is buffer and mine:
            if not _reads_inside(u, buffer, bounds):
                return set()
            found |= mine
    return found


def _places(u: StoreAccess) -> dict[Var, int] | None:
    """Returns the strides of the loops that move the index; None unless each element is that of one iteration of them."""
    terms = linear_terms(u.indices[0], [f.var for f in u.loops])
    if terms is None or terms[1] is not ZERO:
        return None
    strides: list[tuple[int, int, Var]] = []
    for f in u.loops:
        stride = terms[0].get(f.var, ZERO)
        if stride is ZERO:
            continue
        if not isinstance(stride, Const) or not isinstance(f.extent, Const) or f.begin is not ZERO:
            return None
        strides.append((int(stride.value), int(f.extent.value), f.var))
    strides.sort(key=lambda x: x[0])
    if any(stride <= 0 for stride, _, _ in strides) or any(a[0] * a[1] > b[0] for a, b in pairwise(strides)):
        return None
    return {v: stride for stride, _, v in strides}


def _conditions(u: StoreAccess, places: dict[Var, int], bound: Set[Var]) -> dict[Expr, Expr]:
    """Returns the conditions of a store that tell where its element is, each with its loops named by their strides."""
    names = {v: _place(stride) for v, stride in places.items()}
    return {
        c: substitute(c, names) for c in u.guards if not reads_memory(c) and bound & set(free_vars(c)) <= set(names)
    }


@cache
def _place(stride: int) -> Var:
    return Var(f"place_{stride}")


def _reads_inside(u: StoreAccess, buffer: Buffer, bounds: Bounds) -> bool:
    """Tells whether all that a store loads lies in its buffer, whatever its conditions are."""
    for f in u.loops:
        bounds = extent_bounds(bounds, f)
    reads = [x for x in loads(u.store.value) if x.buffer is not buffer]
    return all(
        len(x.indices) == 1 and prove(x.indices[0] >= ZERO, bounds) and prove(x.indices[0] < x.buffer.shape[0], bounds)
        for x in reads
    )
