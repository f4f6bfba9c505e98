"""Loads the columns of an unrolled loop together: a square tile is loaded by rows and transposed in registers.

                                                  a = let(x[ramp(i, 1, 4)])
    for u in unrolled(0, 4):                      b = let(x[ramp(i + n, 1, 4)])
        y[ramp(4 * u, 1, 4)] = \
            x[ramp(i + u, n, 4)]        ->        ... shuffles of a, b, c, d
                                                  y[ramp(0, 1, 4)] = column
                                                  y[ramp(4, 1, 4)] = column_1 ...

Lanes that lie apart would be gathered, one by one and again in each iteration; the rows are contiguous, and a network of
shuffles turns them (`transposition_network`). On a Zen 5 that takes a third of the gathers' time. Lanes that a mask leaves
out are rows of zeros. Where fewer iterations are left than a vector has lanes, rows are read in part, if the machine has masks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.cost import is_gathered, is_transposed
from weft.ir import (
    ONE,
    ZERO,
    And,
    Broadcast,
    Const,
    Expr,
    Lt,
    Node,
    Or,
    Ramp,
    Select,
    Var,
    const,
    free_vars,
    index,
    map_nodes,
    poly_of,
    post_order,
    simplify,
    substitute,
)
from weft.loop import (
    Alloc,
    Buffer,
    Call,
    For,
    If,
    Let,
    Load,
    LoopKind,
    Program,
    Stmt,
    View,
    While,
    bound_vars,
    loads,
    rename_fresh,
    seq,
    statements,
    stores,
)
from weft.lower.analysis.lane_masks import decided_lanes, guarded_loads
from weft.lower.loops.transposition_network import transposed
from weft.lower.stmt_rewriter import Steps, StmtRewriter, map_functions
from weft.targets import Target


def transpose_strided_loads(program: Program, target: Target) -> Program:
    """Returns *program*, whose loops are vectorized, with the strided loads of unrolled loops transposed in registers."""

    def change(body: Stmt) -> Stmt:
        return _Transpose(target).rewrite(body) if any(map(_is_strided, loads(body))) else body

    return map_functions(program, lambda f: change(f.body))


def _is_strided(n: Load) -> bool:
    at = n.indices[0] if len(n.indices) == 1 else None
    return isinstance(at, Ramp) and is_gathered(int(at.stride.value) if isinstance(at.stride, Const) else None)


class _Transpose(StmtRewriter):
    """Writes out unrolled loops with such loads, the inner ones first."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.roots: dict[Buffer, Buffer] = {}  # of views

    def visit_view(self, s: View) -> Steps:
        self.roots[s.buffer] = self.roots.get(s.source, s.source)
        body = yield s.body
        return View(s.buffer, s.source, s.offset, body)

    def visit_for(self, s: For) -> Steps:
        body = yield s.body
        made = For(s.var, s.begin, s.extent, s.kind, body, s.notes)
        if s.kind is not LoopKind.UNROLLED or not isinstance(s.extent, Const) or not isinstance(s.begin, Const):
            return made
        found = list(self._columns(made))
        return _WriteOut(made, self.target).written_out(found) if found else made

    def _columns(self, loop: For) -> Iterator[_Column]:
        """Yields the strided loads in *loop* that certainly run, and whose iterations read neighbours."""
        strided = [n for n in loads(loop.body) if _is_strided(n)]
        if not strided or any(_may_skip(n, loop.var) for n in post_order(loop.body)):
            return
        inside = {v for s in statements(loop.body) for v in bound_vars(s)}
        changed = {s.buffer for s in statements(loop.body) if isinstance(s, Alloc | View)}
        changed |= {self.roots.get(s.buffer, s.buffer) for s in stores(loop.body)}
        wanted = guarded_loads(loop.body, strided)
        for n in strided:
            at, rows = n.indices[0], wanted.get(n)
            read = [x.buffer for x in post_order(n) if isinstance(x, Load)]  # a row may be one that data tells
            if rows is None or any(b in changed or self.roots.get(b, b) in changed for b in read):
                continue
            if not isinstance(at, Ramp) or not inside.isdisjoint(free_vars(at)):
                continue
            count = min(n.dtype.lanes, _constant(loop.extent))
            if _moves_by_one(at, loop.var) and is_transposed(n.dtype, count, self.target):
                yield _Column(n, at, tuple(rows))


def _constant(e: Expr) -> int:
    assert isinstance(e, Const)
    return int(e.value)


def _may_skip(n: Node, iteration: Var) -> bool:
    """Tells whether *n* may skip the statements inside, or run them in different lanes in each *iteration*."""
    if isinstance(n, Select | And | Or):
        decides = n.cond if isinstance(n, Select) else n.a
        return decides.dtype.lanes == 1 or iteration in free_vars(decides)
    return isinstance(n, If | While | Call) or (isinstance(n, For) and n.kind is not LoopKind.UNROLLED)


def _moves_by_one(at: Ramp, v: Var) -> bool:
    """Tells whether the lanes of *at* all move to the next element where *v* grows by one."""
    moving = {m: k for m, k in poly_of(at.base).items() if any(v in free_vars(x) for x in m)}
    return moving == {(v,): 1} and v not in free_vars(at.stride)


@dataclass(frozen=True)
class _Column:
    """A strided load: a column of a tile, of which *rows* tells the lanes that are wanted."""

    load: Load
    at: Ramp
    rows: tuple[bool, ...]


def _padded(body: Stmt, c: _Column) -> list[Select]:
    """Returns the selections in *body* that put zeros where *c* has rows that are not wanted, which are zeros already."""
    zero = const(0, c.load.dtype)
    found = [n for n in post_order(body) if isinstance(n, Select) and n.then is c.load and n.other is zero]
    return [n for n in found if decided_lanes(n.cond) == c.rows]


class _WriteOut:
    """Writes the iterations of a loop one after another, and before the first of each tile its rows and their shuffles."""

    def __init__(self, loop: For, target: Target) -> None:
        self.loop = loop
        self.target = target
        self.parts: list[tuple[Var, Expr] | Stmt] = []
        self.padded: dict[Load, list[Select]] = {}

    def written_out(self, columns: Sequence[_Column]) -> Stmt:
        """Returns the loop's iterations, with *columns* replaced by those of tiles."""
        loop = self.loop
        first, extent = _constant(loop.begin), _constant(loop.extent)
        self.padded = {c.load: _padded(loop.body, c) for c in columns}
        known: dict[Load, list[Expr]] = {}
        for k in range(extent):
            for c in columns:
                lanes = c.load.dtype.lanes
                if k % lanes == 0 and is_transposed(c.load.dtype, min(lanes, extent - k), self.target):
                    known[c.load] = self._tile(c, index(first + k), min(lanes, extent - k))
                elif k % lanes == 0:
                    known.pop(c.load, None)
            placed: dict[Node, Node] = {n: made[k % len(made)] for n, made in known.items()}
            placed |= {s: placed[n] for n, same in self.padded.items() if n in placed for s in same}
            self.parts.append(self._iteration(index(first + k), placed))
        body: Stmt = seq()
        for part in reversed(self.parts):
            body = seq(part, body) if isinstance(part, Stmt) else Let(*part, body)
        return body

    def _iteration(self, at: Expr, columns: dict[Node, Node]) -> Stmt:
        body = map_nodes(rename_fresh(self.loop.body), None, memo=columns)
        return _SIMPLE.rewrite(substitute(body, {self.loop.var: at}))

    def _tile(self, c: _Column, at: Expr, columns: int) -> list[Expr]:
        """Binds the rows of the tile that begins in iteration *at*, and its shuffles; returns its columns."""
        dtype = c.load.dtype
        zero = const(0, dtype)
        rows: list[Expr] = []
        for r, wanted in enumerate(c.rows):
            begin = simplify(substitute(c.at.base + r * c.at.stride, {self.loop.var: at}))
            row: Expr = Load(c.load.buffer, (Ramp(begin, ONE, dtype.lanes),))
            if columns < dtype.lanes:
                row = Select(Lt(Ramp(ZERO, ONE, dtype.lanes), Broadcast(index(columns), dtype.lanes)), row, zero)
            rows.append(self._named("row", row) if wanted else zero)
        per_part = self.target.isa.shuffle_bytes // dtype.element.bytes
        return transposed(rows, per_part, lambda e: self._named("mixed", e))

    def _named(self, name: str, value: Expr) -> Var:
        made = Var(name, value.dtype)
        self.parts.append((made, value))
        return made


class _Simplify(StmtRewriter):
    """Simplifies expressions where a variable has become a number."""

    def expr(self, e: Expr) -> Expr:
        return simplify(e)


_SIMPLE = _Simplify()
