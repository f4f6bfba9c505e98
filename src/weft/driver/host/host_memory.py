"""Where a host program finds each value of a graph: in a parameter, or in an arena or the constants, of which a view is made.

t1 = view(arena, 256, f32[n * 64])
relu(in0.at(0), t1.at(0), n)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.graph import FusedGraph, MemoryPlan, Place, Value
from weft.ir import ONE, ZERO, Expr, index, maximum
from weft.loop import Address, Buffer, LateMemory, Stmt, View
from weft.support.dtypes import u8


@dataclass(frozen=True)
class Constants:
    """Where each constant lies in the block of constants, in bytes, and the whole block's size."""

    offsets: Mapping[Value, int]
    size: int


@dataclass(frozen=True, eq=False)
class HostMemory:
    """The memory that one graph of a model runs in: its inputs, outputs, and arenas by stage, and the block of constants."""

    fused: FusedGraph
    plan: MemoryPlan
    constants: Constants
    weights: Buffer
    ins: Sequence[Buffer]
    outs: Sequence[Buffer]
    arenas: Mapping[int, Buffer]
    names: Iterator[int]
    kept: Mapping[Value, Buffer]

    def views(self) -> Views:
        """Returns an empty collection of views, for one statement."""
        return Views(self, [])


@dataclass(frozen=True, eq=False)
class Views:
    """The views that one statement needs. They last for it alone, so that a long model is no deep nest."""

    memory: HostMemory
    made: list[tuple[Buffer, Buffer, Expr]]

    def buffer(self, value: Value) -> Buffer:
        """Returns the buffer of the memory that *value* is in."""
        m = self.memory
        root = m.fused.root(value)
        place = m.plan.locations[root]
        if place.place is Place.INPUT:
            return m.ins[place.number]
        if place.place is Place.OUTPUT:
            return m.outs[place.number]
        if place.place is Place.KEPT:
            return m.kept[root]
        buffer = Buffer(f"t{next(m.names)}", (elements_of(root),), root.dtype)
        if place.place is Place.CONSTANT:
            self.made.append((buffer, m.weights, index(m.constants.offsets[root])))
        else:
            self.made.append((buffer, m.arenas[place.number], place.offset))
        return buffer

    def begin(self, value: Value) -> Expr:
        """Returns the element of its buffer at which *value* begins: a slice may be a view of a larger tensor."""
        return index(self.memory.fused.offset(value) // value.dtype.bytes)

    def address(self, value: Value) -> Address:
        """Returns the address of the first element of *value*."""
        return Address(self.buffer(value), (self.begin(value),))

    def around(self, statement: Stmt) -> Stmt:
        """Returns the statement with the views that it needs."""
        for buffer, source, offset in reversed(self.made):
            statement = View(buffer, source, offset, statement)
        return statement


def arenas_of(plan: MemoryPlan, first: Buffer) -> Mapping[int, Buffer]:
    """Returns the arenas by stage: *first* is that of sizes known at the beginning."""
    return {0: first, **{stage: Buffer(f"arena{stage}", (size,), u8) for stage, size in plan.late.items()}}


def kept_buffers(fused: FusedGraph, plan: MemoryPlan) -> Mapping[Value, Buffer]:
    """Returns the buffers of results of control flow whose sizes it tells itself: they are in the context's kept memory."""
    kept = {v: where.number for v, where in plan.locations.items() if where.place is Place.KEPT}
    return {v: kept_buffer(f"kept{number}", v, number) for v, number in kept.items()}


def kept_buffer(name: str, v: Value, number: int) -> Buffer:
    """Returns a buffer for *v* in the kept memory of this *number*."""
    elements: Expr = ONE
    for s in v.shape:
        elements = elements * maximum(s, ZERO)
    return Buffer(name, (elements,), v.dtype, LateMemory(is_kept=True, number=number).scope)


def elements_of(v: Value) -> Expr:
    """Returns the number of elements of *v*."""
    total: Expr = index(1)
    for s in v.shape:
        total = total * s
    return total
