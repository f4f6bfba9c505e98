"""The uses of a function's local buffers: one record for each access region, in terms of the loops around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from weft.ir import ONE, TRUE, ZERO, Bounds, Expr, Node, Var, accesses, conjuncts, free_vars, map_nodes, simplify
from weft.loop import (
    Address,
    Alloc,
    AxisKind,
    Block,
    Buffer,
    Call,
    Eval,
    For,
    Function,
    If,
    Let,
    Load,
    Region,
    Seq,
    Stmt,
    StmtPlace,
    Store,
    TensorInstruction,
    View,
    While,
    bound_vars,
    find_note,
    loads,
    meet,
    own_exprs,
    statements,
    sub_statements,
)
from weft.lower.analysis.instruction_accesses import fixed_dimensions
from weft.lower.stmt_rewriter import extent_bounds, size_bounds

Values = dict[Node, Node]


@dataclass(eq=False)
class Place(StmtPlace):
    """A statement in its place in the tree, number `child` of its parent; `order` is its number in pre-order."""

    child: int
    order: int
    start: Bounds

    @cached_property
    def bounds(self) -> Bounds:
        """The ranges of the loop variables inside the statement."""
        outer = self.parent.bounds if self.parent else self.start
        return extent_bounds(outer, self.stmt) if isinstance(self.stmt, For) else outer


@dataclass(frozen=True, eq=False)
class Use:
    """An access: the box of *buffer* that is accessed at *place*, each dimension from its first to its last index.

    `defines` tells that all of the box is written, independently of previous contents, once the loops over *reduced* have run;
    but only where all of *guard* holds, the conditions that exclude elements inside the buffer. The guard of a read has all of
    its conditions in its block.
    """

    buffer: Buffer
    place: Place
    box: tuple[tuple[Expr, Expr], ...]
    _: KW_ONLY
    reads: bool
    defines: bool = False
    reduced: frozenset[Var] = frozenset()
    guard: tuple[Expr, ...] = ()


@dataclass(frozen=True, eq=False)
class Uses:
    """All uses of the buffers that a function allocates, in program order, and where they are allocated."""

    of: dict[Buffer, list[Use]]
    allocs: dict[Buffer, Place]


def find_uses(function: Function) -> Uses:
    """Collects the uses of the buffers allocated in *function*."""
    found = Uses({}, {})
    start = size_bounds(function)
    stack: list[tuple[Stmt, Place | None, int, Values]] = [(function.body, None, 0, {})]
    order = 0
    while stack:
        s, parent, child, values = stack.pop()
        place = Place(s, parent, parent.depth + 1 if parent else 0, child, order, start)
        order += 1
        if isinstance(s, Alloc):
            found.of[s.buffer] = []
            found.allocs[s.buffer] = place
        inner = _axis_values(s, values) if isinstance(s, Block) else values
        if isinstance(s, Block) and not any(isinstance(k, Block) for p in sub_statements(s) for k in statements(p)):
            for use in _block_uses(s, place, inner):
                _add(found, use)
            order += sum(1 for p in sub_statements(s) for _ in statements(p))
            continue
        for use in _own_uses(s, place, values):
            _add(found, use)
        stack += [(k, place, n, inner) for n, k in reversed(list(enumerate(sub_statements(s))))]
    return found


def _add(found: Uses, use: Use) -> None:
    if use.buffer in found.of:
        found.of[use.buffer].append(use)


def _axis_values(s: Block, values: Values) -> Values:
    """Returns the values of the axes in scope inside *s*; the memo of expressions rewritten outside is not carried over."""
    known: Values = {v: e for v, e in values.items() if isinstance(v, Var)}
    bindings = [_at(b, values) for b in s.bindings]
    known.update(zip([a.var for a in s.axes], bindings, strict=True))
    return known


def _at(e: Expr, values: Values) -> Expr:
    return map_nodes(e, None, memo=values) if values else e


def _own_uses(s: Stmt, place: Place, values: Values) -> Iterator[Use]:
    """Yields the uses in a statement outside blocks; those in the predicate and bindings of a block are among them."""
    if isinstance(s, Store):
        yield _point(s.buffer, s.indices, place, values, reads=False)
    if isinstance(s, View):
        yield _whole(s.source, place)
    for e in own_exprs(s):
        for n in accesses(e):
            if isinstance(n, Load):
                yield _point(n.buffer, n.indices, place, values, reads=True)
            elif isinstance(n, Address):
                yield _passed(s, n, place, values)


def _point(buffer: Buffer, indices: tuple[Expr, ...], place: Place, values: Values, *, reads: bool) -> Use:
    at = [_at(i, values) for i in indices]
    whole_store = not reads and isinstance(place.stmt, Store) and place.stmt.mask is None
    if any(i.dtype.lanes != 1 for i in at):
        return Use(buffer, place, _all_of(buffer), reads=reads)
    return Use(buffer, place, tuple([(i, i) for i in at]), reads=reads, defines=whole_store)


def _whole(buffer: Buffer, place: Place) -> Use:
    return Use(buffer, place, _all_of(buffer), reads=True)


def _passed(s: Stmt, a: Address, place: Place, values: Values) -> Use:
    """Returns the use of a buffer of which *s* passes an address."""
    fixed = fixed_dimensions(s, a) if isinstance(s, Call) else 0
    at = [_at(i, values) for i in a.indices[:fixed]]
    return Use(a.buffer, place, (*[(i, i) for i in at], *_all_of(a.buffer)[fixed:]), reads=True)


def _all_of(buffer: Buffer) -> tuple[tuple[Expr, Expr], ...]:
    return tuple([(ZERO, s - ONE) for s in buffer.shape])


def _block_uses(s: Block, place: Place, values: Values) -> Iterator[Use]:
    """Yields the uses of a block that contains no other: its declared regions, reads first."""
    for e in (*s.bindings, s.predicate):
        for n in loads(e):
            yield _whole(n.buffer, place)
    own = {r.buffer for r in s.reads}
    guard = tuple([_at(c, values) for c in conjuncts(s.predicate)])
    for r in s.reads:
        yield Use(r.buffer, place, _box(r, values), reads=True, guard=guard)
    exact = _writes_all(s)
    guard = tuple([_at(c, values) for c in _beside_domain(s)])
    reduced = frozenset(v for a in s.axes if a.kind is not AxisKind.SPATIAL for v in free_vars(_at(a.var, values)))
    for r in s.writes:
        plain = exact and r.buffer not in own and (s.init is not None or not reduced)
        if s.init is not None:  # each update reads the result of the one before
            yield Use(r.buffer, place, _box(r, values), reads=True)
        yield Use(r.buffer, place, _box(r, values), reads=False, defines=plain, reduced=reduced, guard=guard)


def _box(r: Region, values: Values) -> tuple[tuple[Expr, Expr], ...]:
    ends = [(x.begin, x.begin if x.extent is ONE else x.begin + x.extent - ONE) for x in r.ranges]
    return tuple([(_at(first, values), _at(last, values)) for first, last in ends])


def _writes_all(s: Block) -> bool:
    """Answers whether the block's body certainly writes all of the regions that *s* declares.

    Plain stores to single elements do, tensor instructions too, and calls are trusted; conditional or widened writes do not.
    """
    if find_note(s.notes, TensorInstruction) is not None:
        return True
    points = {r.buffer for r in s.writes if all(x.extent is ONE for x in r.ranges)}
    for k in statements(s.body):
        if isinstance(k, Store):
            if k.mask is not None or k.buffer not in points:
                return False
        elif not isinstance(k, Let | Seq | Call | Eval):
            return False
    return True


def _beside_domain(s: Block) -> list[Expr]:
    """Returns the predicate's conditions that exclude elements inside the domain; nothing reads those outside."""
    if s.predicate is TRUE:
        return []
    domain: set[Expr] = set()
    for a, b in zip(s.axes, s.bindings, strict=True):
        domain |= {b < a.extent, simplify(b < a.extent), b >= ZERO, simplify(b >= ZERO)}
    return [c for c in conjuncts(s.predicate) if c not in domain and simplify(c) not in domain]


def common_place(uses: list[Use]) -> Place:
    """Returns the innermost place that holds all of *uses*."""
    common = uses[0].place
    for u in uses[1:]:
        common = meet(common, u.place)
    return common


def vars_between(outer: Place | None, inner: Place) -> list[Var]:
    """Returns the variables bound from *outer* (itself excluded) down to *inner*, outermost first."""
    found: list[Var] = []
    for p in reversed(inner.below(outer)):
        if not isinstance(p.stmt, Block):
            found += bound_vars(p.stmt)
    return found[::-1]


def is_conditional(outer: Place, inner: Place) -> bool:
    """Answers whether *inner* may be skipped, or repeated unpredictably, when *outer* runs."""
    return any(isinstance(p.stmt, If | While) for p in inner.outwards() if p is not inner and p.depth > outer.depth)
