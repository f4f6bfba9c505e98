"""Drops masks of stores to registers where the masked-off lanes are dead.

    alloc S[16]                                 alloc S[16]
    if l < 3: S[l] = 0.0                        S[l] = 0.0
    if l < 3: S[l] = S[l] + A[l]       ->       S[l] = S[l] + (A[l] if l < 3 else 0.0)
    if l < 3: B[l] = S[l]                       if l < 3: B[l] = S[l]

All reads and writes of these elements are under one and the same mask, so that no other lane is observable; or under masks that
exclude the same elements at the end of each row. A masked sum would be two instructions, or one that depends on the mask. Vectors
without a mask may be beside them in each row.
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
    loads,
    statements,
    stores,
)
from weft.lower.analysis.store_accesses import StoreAccess, store_accesses
from weft.lower.stmt_rewriter import Steps, StmtRewriter, Visited, extent_bounds, map_functions


def unmask_register_stores(program: Program) -> Program:
    """Returns *program*, after `vectorize`, with plain stores to registers whose masked-off lanes are dead."""

    def change(body: Stmt) -> Stmt:
        return _Unmask().rewrite(body) if any(s.mask is not None for s in stores(body)) else body

    return map_functions(program, lambda f: change(f.body))


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
class _Vector:
    """A vector of a buffer that a store reads or writes: its first index, its length, and the mask of the store."""

    begin: Expr
    lanes: int
    mask: Expr | None

    @property
    def row(self) -> tuple[Expr, Expr] | None:
        """Returns the operands of a mask `ramp(first, 1, lanes) < size`: its lanes are elements of a row, from *first* on."""
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
    """Tells whether the masked stores that use *buffer* exclude the same elements everywhere in *body*, which no others use."""
    uses = store_accesses(body, buffer)
    vectors = None if uses is None else _vectors(uses)
    if vectors is None:
        return False
    bounds, bound = Bounds(), set[Var]()
    for s in statements(body):
        bound.update(bound_vars(s))
        bounds = extent_bounds(bounds, s) if isinstance(s, For) else bounds
    masked, plain = ([v for v in vectors if (v.mask is not None) is m] for m in (True, False))
    if not all(_are_apart(a, b) for a in set(masked) for b in set(plain)):
        return False
    return _has_one_mask(masked, bound) or _are_same_ends(masked, bound, bounds)


def _vectors(uses: Sequence[StoreAccess]) -> list[_Vector] | None:
    """Returns the vectors that the stores load and store; None where one of them accesses other elements than neighbours."""
    used = [(i, u.store.mask) for u in uses for i in u.indices]
    found = [_Vector(i.base, i.lanes, m) for i, m in used if isinstance(i, Ramp) and i.stride is ONE]
    return found if len(found) == len(used) else None


def _are_apart(a: _Vector, b: _Vector) -> bool:
    """Tells whether two vectors never overlap, whatever rows they are in: the variables in their indices count rows."""
    terms = [dict(poly_of(v.begin)) for v in (a, b)]
    first, second = (t.pop((), 0) for t in terms)
    row = gcd(*[k for t in terms for k in t.values()])
    if row == 0:
        return first + a.lanes <= second or second + b.lanes <= first
    return a.lanes <= (second - first) % row <= row - b.lanes


def _has_one_mask(vectors: Sequence[_Vector], bound: Set[Var]) -> bool:
    """Tells whether all masks are the same, lane by lane, and any two of the vectors are equal or disjoint."""
    mask = vectors[0].mask if vectors and len({v.mask for v in vectors}) == 1 else None
    if mask is None or loads(mask) or not bound.isdisjoint(free_vars(mask)):
        return False
    apart = gcd(*[k for v in vectors for k in poly_of(v.begin).values()])
    return apart == 0 or apart >= vectors[0].lanes  # they begin at multiples of it


def _are_same_ends(vectors: Sequence[_Vector], bound: Set[Var], bounds: Bounds) -> bool:
    """Tells whether each vector is part of a row, and the masks exclude the same end of each row."""
    rows = [(v, v.row) for v in vectors]
    known = [(v, *r) for v, r in rows if r is not None]
    sizes = {size for _, _, size in known}
    if (
        len(known) < len(vectors)
        or len(sizes) != 1
        or any(loads(n) or not bound.isdisjoint(free_vars(n)) for n in sizes)
    ):
        return False
    apart = gcd(*[k for v, first, _ in known for k in plus(poly_of(v.begin), poly_of(first), -1).values()])
    return apart == 0 or all(
        prove(first >= ZERO, bounds) and prove(first + v.lanes <= apart, bounds) for v, first, _ in known
    )
