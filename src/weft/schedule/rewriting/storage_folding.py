"""Buffers that hold a window of a dimension: element x of it lives at x modulo the window's size."""

from __future__ import annotations

from weft.ir import ONE, ZERO, Expr, Node, index, map_nodes
from weft.loop import Address, Alloc, Buffer, Function, Load, Note, Range, Region, Store, View, statements, with_buffers
from weft.schedule.cursors.state import refuse


def with_folded_storage(fn: Function, old: Buffer, dimension: int, size: int) -> Function:
    """Returns *fn* with only *size* elements along a dimension of *old*; the caller knows that no more are in use at a time.

    Refuses a buffer whose address is taken, that is seen through a view, or that has strides.
    """
    _check(fn, old)
    shape = [index(size) if d == dimension else s for d, s in enumerate(old.shape)]
    new = Buffer(old.name, shape, old.dtype, old.scope)

    def at(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple([i % index(size) if d == dimension else i for d, i in enumerate(indices)])

    def change(n: Node) -> Node | None:
        match n:
            case Load(b, indices) if b is old:
                return Load(new, at(indices))
            case Store(b, indices, value, mask) if b is old:
                return Store(new, at(indices), value, mask)
            case Region(b, ranges) if b is old:
                return Region(new, tuple([_range(r, size) if d == dimension else r for d, r in enumerate(ranges)]))
            case Alloc(b, body) if b is old:
                return Alloc(new, body)
            case Note():
                return with_buffers(n, {old: new})
        return None

    return fn.with_body(map_nodes(fn.body, change))


def _range(r: Range, size: int) -> Range:
    return Range(r.begin % index(size), ONE) if r.extent is ONE else Range(ZERO, index(size))


def _check(fn: Function, buffer: Buffer) -> None:
    if buffer.strides is not None:
        refuse(f"{buffer.name} has strides of its own", hint="align it afterwards")
    for s in statements(fn.body):
        if isinstance(s, View) and s.source is buffer:
            refuse(f"{buffer.name} is seen through a view", s, "take this step before the view is made")
        if any(isinstance(k, Address) and k.buffer is buffer for k in s.children()):
            refuse(f"the address of {buffer.name} is taken", s, "take this step before choosing an instruction")
