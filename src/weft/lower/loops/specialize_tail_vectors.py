"""Specialises the last tile along a vectorised axis: one version for each number of vectors that may be left.

                                                    if n - 16 * t <= 8:
    for j in vectorized(0, 16):                         for j in vectorized(0, 8):
        if t * 16 + j < n: S[j] = 0.0                       if t * 16 + j < n: S[j] = 0.0
    for k in range(0, 9):                               ...
        for j in vectorized(0, 16):                 else:
            if t * 16 + j < n: S[j] = ...      ->       for j in vectorized(0, 8): S[j] = 0.0
    for j in vectorized(0, 16):                         for j in vectorized(8, 16):
        if t * 16 + j < n: C[t * 16 + j] = S[j]             if t * 16 + j < n: S[j] = 0.0
                                                        ...

How many elements are left is known only at run time. Vectors of which none is left would be computed under their masks all the
same, in each step of a reduction, and each mask takes a register and two instructions there. Only the last vector of a version
has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from weft.cost import code_budget
from weft.ir import (
    INDEX,
    ZERO,
    Const,
    Expr,
    Lt,
    Node,
    Var,
    conjuncts,
    free_vars,
    index,
    map_nodes,
    poly_of,
    poly_to_expr,
)
from weft.loop import (
    For,
    Function,
    If,
    LoopKind,
    Program,
    Seq,
    Stmt,
    Store,
    bound_vars,
    rename_fresh,
    seq,
    statements,
    stores,
)
from weft.lower.analysis.guard_conditions import assume, stores_in, uses_registers
from weft.lower.stmt_rewriter import map_functions
from weft.lower.tile_rewriter import TileRewriter, Versions
from weft.targets import Target


def specialize_tail_vectors(program: Program, target: Target) -> Program:
    """Returns *program*, after `partition_loops`, with a version of the last tile for each number of its vectors."""
    return map_functions(program, lambda f: _specialized(f, target))


def _specialized(function: Function, target: Target) -> Stmt:
    """Returns the body of *function* with such versions; where all sizes are known, every tail is."""
    sizes = {p for p in function.params if isinstance(p, Var)}
    return _Specialize(sizes, target).rewrite(function.body) if sizes else function.body


@dataclass(frozen=True)
class _Tail:
    """The elements that are *left* for a tile of vectors of *lanes*, and the guard of each of its vectorised loops."""

    left: Expr
    width: int
    lanes: int
    guards: dict[For, Expr]

    @property
    def vectors(self) -> int:
        return self.width // self.lanes

    def pieces(self, count: int) -> list[tuple[int, int]]:
        """Returns where the loops of a version of *count* vectors begin and how long they are; the last one has the guard."""
        whole = [1 << b for b in reversed(range(count.bit_length())) if (count - 1) >> b & 1]
        sizes = [n * self.lanes for n in (*whole, 1)]
        return [(sum(sizes[:k]), size) for k, size in enumerate(sizes)]


class _Specialize(TileRewriter):
    def __init__(self, sizes: Set[Var], target: Target) -> None:
        super().__init__()
        self.sizes = sizes
        self.target = target
        self.room = code_budget(target).remainder_growth

    def versions(self, code: Seq) -> Versions | None:
        """Returns the maker of a version for each number of vectors of a tile's tail."""
        tail = self._tail(code)
        return None if tail is None else lambda tile: _versions(tile, tail)

    def _tail(self, s: Seq) -> _Tail | None:
        """Returns the tail of a tile of several vectors, if *s* is the whole code of one, and there is room for its versions."""
        loops = [f for f in statements(s) if isinstance(f, For) and f.kind is LoopKind.VECTORIZED]
        width = _common_width(loops)
        if width is None or not uses_registers(s) or _stores_outside(s, loops):
            return None
        lanes, guards = self._lanes(loops), self._guards(s, loops)
        if guards is None or width <= lanes or width % lanes:
            return None
        tail = _Tail(guards[0], width, lanes, guards[1])
        growth = stores_in(s) * (sum(len(tail.pieces(n)) for n in range(1, tail.vectors + 1)) - 1)
        if growth > self.room:
            return None
        self.room -= growth
        return tail

    def _guards(self, s: Seq, loops: Sequence[For]) -> tuple[Expr, dict[For, Expr]] | None:
        """Returns how many elements are left for all *loops* in *s*, if a size decides that, and the guard of each."""
        ends = [dict(_ends(f)) for f in loops]
        known = {v for t in statements(s) for v in bound_vars(t)}
        left = next((e for e in ends[0] if self._is_open(e, known) and all(e in found for found in ends)), None)
        return None if left is None else (left, {f: found[left] for f, found in zip(loops, ends, strict=True)})

    def _is_open(self, left: Expr, bound: Set[Var]) -> bool:
        """Tells whether the count *left* depends on a size, and is known before any of the variables *bound* inside."""
        found = set(free_vars(left))
        return bound.isdisjoint(found) and not self.sizes.isdisjoint(found)

    def _lanes(self, loops: Sequence[For]) -> int:
        """Returns how many elements of the widest type that *loops* store a register has."""
        return min(self.target.lanes(s.buffer.dtype.bits) for f in loops for s in stores(f.body))


def _common_width(loops: Sequence[For]) -> int | None:
    """Returns the extent of all *loops*, if they begin at zero and have the same; None otherwise."""
    widths = {f.extent for f in loops}
    width = next(iter(widths), None)
    is_one = len(widths) == 1 and isinstance(width, Const) and all(f.begin is ZERO for f in loops)
    return int(width.value) if is_one and isinstance(width, Const) else None


def _stores_outside(s: Stmt, loops: Sequence[For]) -> bool:
    """Tells whether *s* stores to registers elsewhere than in *loops*."""
    inside = {t for f in loops for t in statements(f)}
    return any(isinstance(t, Store) and t.buffer.in_registers and t not in inside for t in statements(s))


def _ends(loop: For) -> Iterator[tuple[Expr, Expr]]:
    """Yields how many iterations of *loop* the guards of its whole body leave, and these: `x + v < n` leaves `n - x`."""
    for g in conjuncts(loop.body.cond) if isinstance(loop.body, If) and loop.body.other is None else ():
        if isinstance(g, Lt) and g.a.dtype is INDEX:
            room = poly_of(g.b - g.a)
            if room.pop((loop.var,), 0) == -1 and not any(loop.var in free_vars(a) for m in room for a in m):
                yield poly_to_expr(room, INDEX), g


def _versions(tile: Stmt, tail: _Tail) -> Stmt:
    """Returns *tile* for each number of vectors, one after another."""
    result = rename_fresh(_of_vectors(tile, tail, tail.vectors))
    for count in range(tail.vectors - 1, 0, -1):
        version = rename_fresh(_of_vectors(tile, tail, count))
        result = If(tail.left <= index(count * tail.lanes), version, result)
    return result


def _of_vectors(tile: Stmt, tail: _Tail, count: int) -> Stmt:
    """Returns *tile* for *count* vectors, of which the last alone is guarded."""

    def cut(n: Node) -> Node | None:
        if isinstance(n, Seq):  # loops in it may be several now
            return seq(*n.body) if any(isinstance(s, Seq) for s in n.body) else None
        if not isinstance(n, For) or n not in tail.guards:
            return None
        *whole, last = [
            For(n.var, index(begin), index(size), n.kind, n.body, n.notes) for begin, size in tail.pieces(count)
        ]
        return seq(*[rename_fresh(assume(f, [tail.guards[n]])) for f in whole], last)

    return map_nodes(tile, cut)
