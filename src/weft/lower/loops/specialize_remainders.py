"""Specialises the remainder tile of a register-tiled loop: one version for each number of rows that may be left.

                                                if n - 4 * t == 1:
    for i in unrolled(0, 4):                        S[0] = 0.0
        if t * 4 + i < n: S[i] = 0.0                for k in range(0, 9): S[0] = S[0] + A[t * 4, k]
    for k in range(0, 9):                           B[t * 4] = S[0]
        for i in unrolled(0, 4):           ->   elif n - 4 * t == 2:
            if t * 4 + i < n: S[i] = ...            for i in unrolled(0, 2): S[i] = 0.0
    for i in unrolled(0, 4):                        ...
        if t * 4 + i < n: B[t * 4 + i] = S[i]   elif 4 <= n - 4 * t:
                                                    all four rows

The number of rows is known only at run time, so the last tile may be partial. A branch for each row in each step of a reduction
would take several times as long as the step.

The version of one row is a product of a vector, as for the next token of a decoder: it reads each element of a panel once, and
panels one after another, which hardware prefetchers follow. There, hints of prefetches are dropped, which a tile of several rows
needs: the matrices of 12 layers of 768 take 23 ms without them, 29 with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Annotated

from weft.cost import MOST_REMAINDERS, code_budget
from weft.ir import (
    INDEX,
    ONE,
    ZERO,
    Const,
    Expr,
    Lt,
    Node,
    Var,
    conjuncts,
    eq,
    free_vars,
    index,
    linear_terms,
    map_nodes,
    minimum,
    poly_of,
    poly_to_expr,
)
from weft.loop import (
    Alloc,
    Assert,
    Buffer,
    Call,
    Eval,
    For,
    If,
    LoopKind,
    Prefetch,
    Program,
    Seq,
    Stmt,
    Store,
    bound_vars,
    loads,
    map_stmts,
    own_exprs,
    rename_fresh,
    statements,
    sub_statements,
)
from weft.lower.analysis.guard_conditions import Guards, assume, stores_in, uses_registers
from weft.lower.stmt_rewriter import map_functions
from weft.lower.tile_rewriter import TileRewriter, Versions
from weft.targets import Target


def specialize_remainders(
    program: Program,
    target: Target,
    *,
    rows: Annotated[int, "rows of the largest tile that is written out for each number of them"] = MOST_REMAINDERS,
) -> Program:
    """Returns *program*, after `partition_loops`, with a version of the last tile for each number of rows."""
    return map_functions(program, lambda f: _Count(code_budget(target).remainder_growth, rows).rewrite(f.body))


@dataclass(frozen=True)
class _Rows:
    """The rows that are *left* for a tile of at most *most*, and the guards of each row, as conditions for an unrolled loop."""

    left: Expr
    most: int
    guards: Mapping[Expr, Var]


class _Count(TileRewriter):
    def __init__(self, largest_growth: int, rows: int) -> None:
        super().__init__()
        self.largest_growth = largest_growth
        self.rows = rows
        self.guards = Guards()
        self.growth = 0

    def versions(self, code: Seq) -> Versions | None:
        """Returns the maker of a version for each number of rows of a tile, without the guards of the original one."""
        rows = self._rows(code)
        return None if rows is None else lambda tile: _counted(tile, rows)

    def _rows(self, s: Seq) -> _Rows | None:
        """Returns the rows of a tile, if *s* is the whole code of one; None for anything else, and for large tiles."""
        if sum(bool(self.guards.of(p)) for p in s.body) < 2 or not uses_registers(s):
            return None
        unrolled = _unrolled(s)
        for left, guards in self._row_guards(s, unrolled).items():
            most = max(unrolled[v] for v in guards.values())
            growth = stores_in(s) * (most - 1) // 2
            several = sum(any(g in guards for g in self.guards.of(p)) for p in s.body) > 1
            if several and most <= self.rows and self.growth + growth <= self.largest_growth:
                self.growth += growth
                return _Rows(left, most, guards)
        return None

    def _row_guards(self, s: Stmt, unrolled: Mapping[Var, int]) -> dict[Expr, dict[Expr, Var]]:
        """Returns, for each number of rows left that is known when *s* begins, the guards that end *unrolled* loops there."""
        bound = {v for t in statements(s) for v in bound_vars(t)}
        found: dict[Expr, dict[Expr, Var]] = {}
        for g in self.guards.of(s):
            for left, v in _ends(g, unrolled):
                if bound.isdisjoint(free_vars(left)) and not isinstance(left, Const):
                    found.setdefault(left, {})[g] = v
        return found


def _unrolled(s: Stmt) -> dict[Var, int]:
    """Returns how often the unrolled loops in *s* run."""
    loops = [f for f in statements(s) if isinstance(f, For) and f.kind is LoopKind.UNROLLED]
    return {f.var: int(f.extent.value) for f in loops if isinstance(f.extent, Const)}


def _counted(tile: Stmt, rows: _Rows) -> Stmt:
    """Returns *tile* for each number of rows, one after another."""
    result = tile
    if _is_guarded(tile, rows):  # without a row there is no work
        result = If(rows.left >= index(rows.most), rename_fresh(assume(tile, rows.guards)), None)
    for count in range(rows.most - 1, 0, -1):
        version = _of_rows(tile, rows, count)
        version = map_stmts(version, _without_hints) if count == 1 else version
        result = If(eq(rows.left, index(count)), rename_fresh(version), result)
    return result


def _without_hints(s: Stmt) -> Stmt | None:
    """Returns a loop without hints for buffers that it reads once and in order; None where nothing changes."""
    hints = [n for n in s.notes if isinstance(n, Prefetch) and _is_stream(s, n.buffer)] if isinstance(s, For) else []
    if not isinstance(s, For) or not hints:
        return None
    return For(s.var, s.begin, s.extent, s.kind, s.body, tuple([n for n in s.notes if n not in hints]))


def _is_stream(loop: For, buffer: Buffer) -> bool:
    """Tells whether each step of *loop* reads the elements of *buffer* that follow those of the step before, each once."""
    inner = [f for f in statements(loop.body) if isinstance(f, For) and f.extent is not ONE]
    extents = {f.var: int(f.extent.value) for f in inner if isinstance(f.extent, Const)}
    reads = [n for s in statements(loop.body) for e in own_exprs(s) for n in loads(e) if n.buffer is buffer]
    for n in reads:
        found = linear_terms(n.indices[0], [loop.var, *extents]) if len(n.indices) == 1 else None
        if found is None or len(extents) < len(inner) or set(extents) - set(found[0]):
            return False
        if found[0].get(loop.var) is not index(prod(extents.values())):
            return False
    return len(reads) == 1


def _is_guarded(s: Stmt, rows: _Rows) -> bool:
    """Tells whether all stores of *s* are guarded by a row."""
    if isinstance(s, If) and any(g in rows.guards for g in conjuncts(s.cond)):
        return s.other is None
    return not isinstance(s, Store | Eval | Call | Assert) and all(_is_guarded(t, rows) for t in sub_statements(s))


def _of_rows(tile: Stmt, rows: _Rows, count: int) -> Stmt:
    """Returns *tile* for *count* rows; loops over rows only get that extent."""
    short = {f.var for f in statements(tile) if isinstance(f, For) and _is_of_rows(f, rows)}

    def shorten(n: Node) -> Node | None:
        if isinstance(n, For) and n.var in short:
            return For(n.var, n.begin, minimum(n.extent, index(count)), n.kind, n.body, n.notes)
        return None

    rest: dict[Node, Node] = {g: v < index(count) for g, v in rows.guards.items() if v not in short}
    return assume(map_nodes(tile, shorten, memo=rest), [g for g, v in rows.guards.items() if v in short])


def _is_of_rows(loop: For, rows: _Rows) -> bool:
    """Tells whether the whole body of *loop* is guarded as a row, with the loop starting at the first row."""
    body = loop.body
    while isinstance(body, For | Alloc):
        body = body.body
    if loop.begin is not ZERO or not isinstance(body, If) or body.other is not None:
        return False
    return any(rows.guards.get(g) is loop.var for g in conjuncts(body.cond))


def _ends(guard: Expr, unrolled: Mapping[Var, int]) -> list[tuple[Expr, Var]]:
    """Returns the number of rows that *guard* leaves of an unrolled loop, and its variable: `x + v < n` leaves `n - x`."""
    if not isinstance(guard, Lt) or guard.a.dtype is not INDEX:
        return []
    room = poly_of(guard.b - guard.a)
    found = [v for v in unrolled if any(v in m for m in room)]
    if len(found) != 1 or room.pop((found[0],), 0) != -1 or any(found[0] in m for m in room):
        return []
    return [(poly_to_expr(room, INDEX), found[0])]
