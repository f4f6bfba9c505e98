"""Lets stores to registers fill all lanes where the lanes that a mask leaves out are never looked at.

    alloc S[16]                                 alloc S[16]
    if l < 3: S[l] = 0.0                        S[l] = 0.0
    if l < 3: S[l] = S[l] + A[l]       ->       S[l] = S[l] + (A[l] if l < 3 else 0.0)
    if l < 3: B[l] = S[l]                       if l < 3: B[l] = S[l]

All that reads the buffer, or writes it, is under one and the same mask, so that no other lane ever leaves it; or under masks that
leave out the same elements at the end of each row. A masked sum would be two instructions, or one that waits for the mask.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from math import gcd

from weft.ir import ONE, ZERO, Bounds, Broadcast, Expr, Lt, Ramp, Var, free_vars, plus, poly_of, prove
from weft.loop import (
    Alloc,
    Buffer,
    For,
    Program,
    Stmt,
    Store,
    bound_vars,
    buffers_of,
    loads,
    own_exprs,
    statements,
    sub_statements,
)
from weft.lower.stmt_rewriter import Steps, StmtRewriter, Visited, extent_bounds, map_functions


def unmask_register_stores(program: Program) -> Program:
    """Returns *program*, after `vectorize`, with plain stores to registers whose other lanes are never looked at."""
    return map_functions(program, lambda f: _Unmask().rewrite(f.body))


class _Unmask(StmtRewriter):
    def __init__(self) -> None:
        self.plain: set[Buffer] = set()

    def visit_alloc(self, s: Alloc) -> Steps:
        if s.buffer.in_registers and _never_leave(s.body, s.buffer):
            self.plain.add(s.buffer)
        body = yield s.body
        return Alloc(s.buffer, body)

    def visit_store(self, s: Store) -> Visited:
        return Store(s.buffer, s.indices, s.value, None if s.buffer in self.plain else s.mask)


@dataclass(frozen=True)
class _Use:
    """A vector of a buffer that is read or written: where it begins, how long it is, and the mask of the store that does."""

    begin: Expr
    lanes: int
    mask: Expr | None

    @property
    def row(self) -> tuple[Expr, Expr] | None:
        """Returns what a mask `ramp(first, 1, lanes) < size` compares: its lanes are elements of a row, from *first* on."""
        m = self.mask
        if (
            not isinstance(m, Lt)
            or not isinstance(m.a, Ramp)
            or m.a.stride is not ONE
            or not isinstance(m.b, Broadcast)
        ):
            return None
        return m.a.base, m.b.value


def _never_leave(body: Stmt, buffer: Buffer) -> bool:
    """Tells whether *buffer* is used by stores under masks only, which leave out the same elements everywhere in *body*."""
    bounds, bound = Bounds(), set[Var]()
    uses: list[_Use] = []
    for s in statements(body):
        bound.update(bound_vars(s))
        bounds = extent_bounds(bounds, s) if isinstance(s, For) else bounds
        if not isinstance(s, Store):
            if buffer in _named_by(s):
                return False
            continue
        used = [x.indices for x in loads(s.value) if x.buffer is buffer] + [s.indices] * (s.buffer is buffer)
        if buffer in [x.buffer for i in s.indices for x in loads(i)]:
            return False
        for i in used:
            if len(i) != 1 or not isinstance(i[0], Ramp) or i[0].stride is not ONE:
                return False
            uses.append(_Use(i[0].base, i[0].lanes, s.mask))
    return _has_one_mask(uses, bound) or _are_same_ends(uses, bound, bounds)


def _has_one_mask(uses: Sequence[_Use], bound: Set[Var]) -> bool:
    """Tells whether all masks are the same, lane by lane, of vectors of which any two are one or have no element in common."""
    mask = uses[0].mask if uses and len({u.mask for u in uses}) == 1 else None
    if mask is None or loads(mask) or not bound.isdisjoint(free_vars(mask)):
        return False
    apart = gcd(*[k for u in uses for k in poly_of(u.begin).values()])
    return apart == 0 or apart >= uses[0].lanes  # they begin at multiples of it


def _are_same_ends(uses: Sequence[_Use], bound: Set[Var], bounds: Bounds) -> bool:
    """Tells whether the masks leave out the end of each row, the same of all rows, where vectors are parts of a row each."""
    rows = [(u, u.row) for u in uses]
    known = [(u, *r) for u, r in rows if r is not None]
    sizes = {size for _, _, size in known}
    if len(known) < len(uses) or len(sizes) != 1 or any(loads(n) or not bound.isdisjoint(free_vars(n)) for n in sizes):
        return False
    apart = gcd(*[k for u, first, _ in known for k in plus(poly_of(u.begin), poly_of(first), -1).values()])
    return apart == 0 or all(
        prove(first >= ZERO, bounds) and prove(first + u.lanes <= apart, bounds) for u, first, _ in known
    )


def _named_by(s: Stmt) -> list[Buffer]:
    """Returns the buffers that *s*, which is no store, uses itself."""
    return buffers_of(s) if not sub_statements(s) else [x.buffer for e in own_exprs(s) for x in loads(e)]
