"""Pads rows of register tiles to whole vectors where their length is odd: the lanes beyond the end are dead.

    alloc S[12]                                     alloc S[16]
    for i in unrolled(0, 2):                        for i in unrolled(0, 2):
        for j in vectorized(0, 6):                      for j in vectorized(0, 8):
            S[i * 6 + j] = A[i, j]           ->             S[i * 8 + j] = (A[i, j] if j < 6 else 0)
    for j in vectorized(0, 6):                      for j in vectorized(0, 8):
        B[j] = S[j] + S[6 + j]                          if j < 6: B[j] = S[j] + S[8 + j]

Six elements would be a vector of four lanes and one of two; now they are one of eight. A load for the added lanes may lie outside
of its buffer, and is then predicated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.ir import (
    DIVIDES,
    DIVISIONS,
    TRUE,
    ZERO,
    Bounds,
    Const,
    Expr,
    Node,
    Select,
    Var,
    const,
    free_vars,
    index,
    map_nodes,
    mentions,
    nodes_with,
    poly_of,
    prove,
    simplify,
)
from weft.loop import (
    Alloc,
    Buffer,
    For,
    Function,
    If,
    Load,
    LoopKind,
    Program,
    Seq,
    Stmt,
    Store,
    buffers_of,
    loads,
    own_exprs,
    replace_in_notes,
    statements,
    stores,
    sub_statements,
)
from weft.lower.stmt_rewriter import BoundedRewriter, Steps, Visited, map_functions, size_bounds
from weft.targets import Target


def pad_register_tiles(program: Program, target: Target) -> Program:
    """Returns *program*, which is flat, with rows of registers that fill whole vectors, if *target* has masked stores."""
    if not target.isa.masked_memory:
        return program
    return map_functions(program, lambda f: _padded(f, target))


@dataclass(frozen=True)
class Row:
    """A row's number of elements, and that of its vectors' lanes."""

    length: int
    padded: int


@dataclass(frozen=True)
class Rows:
    """The rows of a buffer, and how many elements apart they are."""

    row: Row
    step: int

    def moved(self, i: Expr, lane: Var) -> Expr:
        """Returns the index in padded rows of the element *i*, which is at *lane* of its row."""
        return i if self.step == self.row.padded else simplify((i - lane) // self.step * self.row.padded + lane)


def _padded(function: Function, target: Target) -> Stmt:
    body = function.body
    loops = {s: row for s in statements(body) if isinstance(s, For) and (row := _row(s, target)) is not None}
    found = _registers(body, loops) if loops else {}
    return _Pad(loops, found, size_bounds(function)).rewrite(body) if found else body


def _row(loop: For, target: Target) -> Row | None:
    """Returns the row that a vectorized loop works on, if it stores all of one and fills no whole vectors."""
    if loop.kind is not LoopKind.VECTORIZED or loop.begin is not ZERO or not isinstance(loop.extent, Const):
        return None
    if not all(isinstance(s, Store | If | Seq) for s in statements(loop.body)):
        return None
    if any(isinstance(n, DIVISIONS) and not isinstance(n.b, Const) for n in nodes_with(DIVIDES, loop.body)):
        return None  # loads for the lanes beyond may give zero
    length = int(loop.extent.value)
    rest = length % min([target.lanes(s.buffer.dtype.bits) for s in stores(loop.body)], default=1)
    return Row(length, length - rest + (1 << rest.bit_length())) if rest.bit_count() > 1 else None


def _registers(body: Stmt, loops: dict[For, Row]) -> dict[Buffer, Rows]:
    """Returns the registers that can be padded: a loop that uses one of them uses no others."""
    buffers = [s.buffer for s in statements(body) if isinstance(s, Alloc) and s.buffer.in_registers]
    found = {b: rows for b in buffers if (rows := _rows_of(b, body, loops)) is not None}
    while True:
        mixed = [f for f in loops if any(b.in_registers and b not in found for b in buffers_of(f))]
        left_alone = {b for f in mixed for b in buffers_of(f) if b in found}
        if not left_alone:
            return found
        found = {b: rows for b, rows in found.items() if b not in left_alone}


def _rows_of(buffer: Buffer, body: Stmt, loops: dict[For, Row]) -> Rows | None:
    """Returns the rows of *buffer* if every use of it is an element of one, in one of *loops*, and all rows are alike."""
    rows: set[Row] = set()
    factors: set[int] = set()
    stack: list[tuple[Stmt, For | None]] = [(body, None)]
    while stack:
        s, loop = stack.pop()
        loop = s if isinstance(s, For) and s in loops else loop
        stack += [(k, loop) for k in sub_statements(s)]
        for i in _indices(s, buffer):
            terms = None if i is None or loop is None else _terms(i, loop.var)
            if terms is None or loop is None:
                return None
            rows.add(loops[loop])
            factors |= terms
    if len(rows) != 1:
        return None
    (row,) = rows
    return next((Rows(row, n) for n in (row.padded, row.length) if all(k % n == 0 for k in factors)), None)


def _indices(s: Stmt, buffer: Buffer) -> Iterator[Expr | None]:
    """Yields the indices at which *s* itself uses *buffer*; None for a use of another kind."""
    for e in own_exprs(s):
        yield from [x.indices[0] for x in loads(e) if x.buffer is buffer]
    if isinstance(s, Store) and s.buffer is buffer:
        yield s.indices[0]
    elif not isinstance(s, Store | Alloc) and not sub_statements(s) and buffer in buffers_of(s):
        yield None


def _terms(i: Expr, lane: Var) -> set[int] | None:
    """Returns the factors of the index of a row's first element, where *i* is that of the element at *lane*; else None."""
    terms = dict(poly_of(i))
    if terms.pop((lane,), 0) != 1 or any(lane in free_vars(a) for m in terms for a in m):
        return None
    return set(terms.values())


class _Pad(BoundedRewriter):
    """Pads the rows of some registers, and extends the loops over them to the padded rows' ends."""

    def __init__(self, loops: dict[For, Row], registers: dict[Buffer, Rows], bounds: Bounds) -> None:
        super().__init__(bounds)
        self.loops, self.registers = loops, registers
        self.made = {b: Buffer(b.name, (_size(b, rows),), b.dtype, b.scope) for b, rows in registers.items()}
        self.lane: Var | None = None
        self.inside: Expr = TRUE

    def expr(self, e: Expr) -> Expr:
        """Rewrites an expression."""
        return e if self.lane is None else map_nodes(e, self._load)

    def _load(self, n: Node) -> Node | None:
        if not isinstance(n, Load) or self.lane is None:
            return None
        if n.buffer in self.made:
            return Load(self.made[n.buffer], self._at(n))
        return None if self._is_inside(n) else Select(self.inside, n, const(0, n.dtype))

    def _is_inside(self, n: Load) -> bool:
        """Tells whether the load *n* stays inside its buffer in the added lanes, too."""
        assert self.lane is not None
        if not any(mentions(i, self.lane) for i in n.indices):
            return True
        ranges = zip(n.indices, n.buffer.shape, strict=True)
        return all(prove(i >= ZERO, self.bounds) and prove(i < size, self.bounds) for i, size in ranges)

    def _at(self, n: Load | Store) -> tuple[Expr, ...]:
        assert self.lane is not None  # all uses of these registers are in such loops
        return (self.registers[n.buffer].moved(n.indices[0], self.lane),)

    def visit_alloc(self, s: Alloc) -> Steps:
        body = yield s.body
        return Alloc(self.made.get(s.buffer, s.buffer), body)

    def visit_for(self, s: For) -> Steps:
        loop = s
        padded = s in self.loops and any(b in self.made for b in buffers_of(s))
        if padded:
            row = self.loops[s]
            loop = For(s.var, s.begin, index(row.padded), s.kind, s.body, s.notes)
            self.lane, self.inside = s.var, s.var < row.length
        body = yield from self.loop_body(loop)
        if padded:
            self.lane = None
        return For(s.var, s.begin, loop.extent, s.kind, body, replace_in_notes(s.notes, self.made))

    def visit_store(self, s: Store) -> Visited:
        """Rewrites a store: to padded registers in all lanes, to memory in the original lanes only."""
        if self.lane is None:
            return s
        value, mask = self.expr(s.value), None if s.mask is None else self.expr(s.mask)
        if s.buffer in self.made:
            return Store(self.made[s.buffer], self._at(s), value, mask)
        return If(self.inside, Store(s.buffer, self.exprs(s.indices), value, mask), None)


def _size(b: Buffer, rows: Rows) -> Expr:
    """Returns how many elements the padded rows of a buffer take."""
    return simplify((b.shape[0] + (rows.step - 1)) // rows.step * rows.row.padded)
