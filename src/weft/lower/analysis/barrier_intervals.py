"""The tree of statements in a block of threads, and the memory that threads access in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field

from weft.ir import ONE, ZERO, Bounds, Const, Expr, Var, assume, simplify, substitute
from weft.loop import (
    ATOMICS,
    Address,
    Buffer,
    Call,
    For,
    If,
    Stmt,
    StmtPlace,
    Store,
    View,
    addresses_touched,
    loads,
    own_exprs,
    statements,
    sub_statements,
)
from weft.lower.analysis.grid_shape import THREADS, axis_of, is_over_threads
from weft.lower.analysis.instruction_accesses import fixed_dimensions
from weft.support.errors import LoweringError
from weft.targets import Sight, sight_of


@dataclass(eq=False)
class ThreadSpot(StmtPlace):
    """A statement in its place in the tree, with its number in the pre-order of `StmtRewriter.visit`."""

    child: int
    number: int
    children: list[ThreadSpot] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class ThreadAccess:
    """An access of a statement: an element of *buffer*, or all of it where the indices are None.

    Along an axis of threads with no loop around the statement, every thread makes the access if `by_all`, else only thread 0.
    Atomic updates of one element need no order.
    """

    spot: ThreadSpot
    buffer: Buffer
    indices: tuple[Expr, ...] | None
    _: KW_ONLY
    writes: bool
    by_all: bool
    is_atomic: bool = False


def tree(root: Stmt) -> list[ThreadSpot]:
    """Returns the spots of *root* in pre-order."""
    spots: list[ThreadSpot] = []
    stack: list[tuple[Stmt, ThreadSpot | None, int]] = [(root, None, 0)]
    while stack:
        s, parent, child = stack.pop()
        spot = ThreadSpot(s, parent, parent.depth + 1 if parent else 0, child, len(spots))
        spots.append(spot)
        if parent is not None:
            parent.children.append(spot)
        stack += [(k, spot, n) for n, k in reversed(list(enumerate(sub_statements(s))))]
    return spots


def thread_extents(root: Stmt) -> dict[str, int]:
    """Returns how many threads a block needs along each axis: as many as the longest loop over it has iterations."""
    extents: dict[str, int] = {}
    for s in statements(root):
        if isinstance(s, For) and is_over_threads(s):
            axis = str(axis_of(s))
            if not isinstance(s.extent, Const):
                raise LoweringError(f"the loop {s.var.name} over {axis} has no constant number of iterations")
            extents[axis] = max(extents.get(axis, 1), int(s.extent.value))
    return {axis: extents[axis] for axis in THREADS if axis in extents}


def position(spot: ThreadSpot, axis: str) -> Expr | None:
    """Returns which thread along *axis* runs *spot*; None if no loop around says so."""
    for p in spot.outwards():
        if isinstance(p.stmt, For) and axis_of(p.stmt) == axis:
            return p.stmt.var - p.stmt.begin if p.stmt.begin is not ZERO else p.stmt.var
    return None


def within(bounds: Bounds, chain: list[ThreadSpot], names: dict[Var, Expr]) -> Bounds:
    """Returns *bounds* inside *chain*, a series of spots one in another, whose variables go by other *names*."""
    for n, p in enumerate(chain):
        s, inner = p.stmt, chain[n + 1] if n + 1 < len(chain) else None
        if isinstance(s, For):
            v = names.get(s.var, s.var)
            assert isinstance(v, Var)
            begin, extent = substitute(s.begin, names), substitute(s.extent, names)
            bounds = bounds.bind(v, begin, simplify(begin + extent - ONE, bounds))
        elif isinstance(s, If) and inner is not None and inner.child == 0:
            bounds = assume(substitute(s.cond, names), bounds)
    return bounds


def accesses(spots: list[ThreadSpot]) -> Iterator[ThreadAccess]:
    """Yields the accesses of the statements at *spots*; a statement's reads come before its writes."""
    for spot in spots:
        s = spot.stmt
        alone = _is_for_one(s)
        for n in [x for e in own_exprs(s) for x in loads(e)]:
            yield ThreadAccess(spot, n.buffer, n.indices, writes=False, by_all=not alone)
        if isinstance(s, Call):
            atomic = s.callee in ATOMICS
            for writes, addresses in enumerate(addresses_touched(s)):
                for a in addresses:
                    at = _indices(spot, s, a)
                    yield ThreadAccess(spot, a.buffer, at, writes=bool(writes), by_all=not alone, is_atomic=atomic)
        if isinstance(s, Store):
            yield ThreadAccess(spot, s.buffer, s.indices, writes=True, by_all=not alone)
        elif isinstance(s, View):
            yield ThreadAccess(spot, s.source, None, writes=False, by_all=True)
            yield ThreadAccess(spot, s.source, None, writes=True, by_all=True)


def _indices(spot: ThreadSpot, call: Call, a: Address) -> tuple[Expr, ...] | None:
    """Returns the indices of an element that *call* accesses, any of several where it has a variable; None for any element."""
    fixed = fixed_dimensions(call, a, within(Bounds(), spot.below(None), {}))
    return (*a.indices[:fixed], *[Var("any") for _ in a.indices[fixed:]]) if fixed else None


def _is_for_one(s: Stmt) -> bool:
    """Tells whether only one of the threads without a loop around *s* may run it: it writes memory that others see."""
    if isinstance(s, Store):
        return sight_of(s.buffer.scope) is not Sight.THREAD
    written = addresses_touched(s)[1] if isinstance(s, Call) else []
    return any(sight_of(a.buffer.scope) is not Sight.THREAD for a in written)
