"""The accesses of statements without blocks, and the unit of a machine that runs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.ir import ONE, Expr, Var, substitute
from weft.loop import Address, Buffer, Call, Stmt, Store, addresses_touched, loads, statements
from weft.targets import Target, Unit
from weft.targets.instructions import INTRINSICS


@dataclass(frozen=True, eq=False)
class UnitAccess:
    """An access of a statement: to the elements of *buffer* from *first* on, at most *length* of them; None if unknown."""

    buffer: Buffer
    writes: bool
    first: Expr | None
    length: Expr | None


def touches(s: Store | Call) -> Iterator[UnitAccess]:
    """Yields the reads and writes of *s*; an undeclared call may write all of its arguments."""
    for x in loads(s):
        yield _element(x.buffer, x.indices, writes=False)
    if isinstance(s, Store):
        yield _element(s.buffer, s.indices, writes=True)
        return
    known = INTRINSICS.get(s.callee)
    if known is None or len(known.semantics.params) != len(s.args):
        read, written = addresses_touched(s)
        for given in dict.fromkeys([*read, *written]):
            yield UnitAccess(given.buffer, given in written, None, None)
        return
    written = addresses_touched(s)[1]
    values = {p: a for p, a in zip(known.semantics.params, s.args, strict=True) if isinstance(p, Var)}
    for p, a in zip(known.semantics.params, s.args, strict=True):
        if isinstance(p, Buffer) and isinstance(a, Address):
            flat = a.indices[0] if len(a.indices) == 1 else None
            yield UnitAccess(a.buffer, a in written, flat, None if flat is None else _span(p, values))


def _element(b: Buffer, indices: tuple[Expr, ...], *, writes: bool) -> UnitAccess:
    plain = len(indices) == 1 and indices[0].dtype.lanes == 1
    return UnitAccess(b, writes, indices[0], ONE) if plain else UnitAccess(b, writes, None, None)


def _span(p: Buffer, values: dict[Var, Expr]) -> Expr:
    """Returns how many elements lie from the first to the last of an operand."""
    length: Expr = ONE
    for size, stride in zip(p.shape, p.row_major_strides(), strict=True):
        length = length + (size - ONE) * substitute(stride, values)
    return length


def written_by(s: Call) -> list[Buffer]:
    """Returns the buffers that a call may write."""
    return list(dict.fromkeys(t.buffer for t in touches(s) if t.writes))


def unit_of(s: Store | Call, target: Target) -> Unit | None:
    """Returns the unit of *target* that runs *s*, or None if there is none."""
    if isinstance(s, Call):
        return next((u for u in target.units if s.callee in u.instructions), None)
    read = {x.buffer.scope for x in loads(s)}
    return next((u for u in target.units if s.buffer.scope in u.fills or read.intersection(u.empties)), None)


def only_unit(root: Stmt, target: Target) -> Unit | None:
    """Returns the one unit of *target* that runs all of *root*, or None if there is no such unit."""
    found = {unit_of(s, target) for s in statements(root) if isinstance(s, Store | Call)} if target.units else set()
    return found.pop() if len(found) == 1 else None
