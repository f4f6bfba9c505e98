"""What statements without blocks touch, and which unit of a machine runs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.ir.expr import ONE, Expr, Var
from weft.ir.rewrite import substitute
from weft.loop.nodes import Address, Buffer, Call, Stmt, Store
from weft.loop.visit import loads, statements
from weft.targets.intrinsics import INTRINSICS
from weft.targets.target import Target, Unit


@dataclass(frozen=True, eq=False)
class Touch:
    """An access of a statement: to the elements of *buffer* from *first* on, at most *length* of them; None if unknown."""

    buffer: Buffer
    writes: bool
    first: Expr | None
    length: Expr | None


def touches(s: Store | Call) -> Iterator[Touch]:
    """Yields what *s* reads and writes; a call of anything but a tensor instruction may write whatever it is given."""
    for x in loads(s):
        yield _element(x.buffer, x.indices, writes=False)
    if isinstance(s, Store):
        yield _element(s.buffer, s.indices, writes=True)
        return
    known = INTRINSICS.get(s.callee)
    if known is None or len(known.semantics.params) != len(s.args):
        for a in s.args:
            if isinstance(a, Address):
                yield Touch(a.buffer, True, None, None)
        return
    written = {r.buffer for r in known.writes}
    values = {p: a for p, a in zip(known.semantics.params, s.args, strict=True) if isinstance(p, Var)}
    for p, a in zip(known.semantics.params, s.args, strict=True):
        if isinstance(p, Buffer) and isinstance(a, Address):
            flat = a.indices[0] if len(a.indices) == 1 else None
            yield Touch(a.buffer, p in written, flat, None if flat is None else _span(p, values))


def _element(b: Buffer, indices: tuple[Expr, ...], *, writes: bool) -> Touch:
    plain = len(indices) == 1 and indices[0].dtype.lanes == 1
    return Touch(b, writes, indices[0], ONE) if plain else Touch(b, writes, None, None)


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
