"""Where a host program finds each value of a graph: in a parameter, or in an arena or the constants, of which a view is made.

t1 = view(arena, 256, f32[n * 64])
relu(in0.at(0), t1.at(0), n)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.driver.host.crossings import HOSTED, NONE_CROSS, Crossings
from weft.graph import FusedGraph, Group, MemoryPlan, Place, Value
from weft.ir import ONE, ZERO, Expr, index, maximum
from weft.loop import Address, Buffer, LateMemory, Stmt, View, copy
from weft.support.dtypes import u8


@dataclass(frozen=True)
class Constants:
    """Where each constant lies in the block of constants, in bytes, and the whole block's size."""

    offsets: Mapping[Value, int]
    size: int


@dataclass(frozen=True, eq=False)
class HostMemory:
    """The memory that one graph of a model runs in: its inputs, outputs, and arenas by stage, and the block of constants.

    In a model for a device, some of whose kernels the host's processor runs, values are in the device's memory, and those of
    these kernels in the memory *beside* it; *crossings* tells which are copied from one to the other.
    """

    fused: FusedGraph
    plan: MemoryPlan
    constants: Constants
    weights: Buffer
    ins: Sequence[Buffer]
    outs: Sequence[Buffer]
    arenas: Mapping[int, Buffer]
    names: Iterator[int]
    kept: Mapping[Value, Buffer]
    crossings: Crossings = NONE_CROSS
    beside: HostMemory | None = None

    def of(self, group: Group) -> HostMemory:
        """Returns the memory in which a group's kernel works."""
        return self.beside if group.on_processor and self.beside is not None else self

    def near(self, value: Value) -> HostMemory:
        """Returns the memory from which the host program itself reads *value*."""
        is_there = self.beside is not None and self.fused.root(value) in self.crossings.made_there
        return self.beside if is_there and self.beside is not None else self

    def copies(self, group: Group) -> list[Stmt]:
        """Returns the copies of a group's results to the other memory, where they have readers."""
        if self.beside is None:
            return []
        to, source, crossing = self, self.beside, self.crossings.to_device
        if not group.on_processor:
            to, source, crossing = source, to, self.crossings.to_processor
        return [_copied(v, to, source) for v in group.outputs if self.fused.root(v) in crossing]

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
        buffer = Buffer(f"t{next(m.names)}", (elements_of(root),), root.dtype, m.weights.scope)
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


def _copied(v: Value, to: HostMemory, source: HostMemory) -> Stmt:
    """Returns the copy of a value from one memory to the other."""
    there, here = to.views(), source.views()
    made = copy(there.buffer(v), there.begin(v), here.buffer(v), here.begin(v), elements_of(v))
    return there.around(here.around(made))


def hosted(b: Buffer, suffix: str = "host") -> Buffer:
    """Returns a buffer like *b* in the memory beside a device's, of its name and a *suffix*."""
    return Buffer(f"{b.name}_{suffix}", b.shape, b.dtype, HOSTED)


def memory_beside(
    memory: HostMemory, ins: Sequence[Buffer], outs: Sequence[Buffer], arena: Buffer, weights: Buffer
) -> HostMemory:
    """Returns the memory of the host's processor beside a device's *memory*: the same values, in the same places."""
    late = {stage: hosted(b) for stage, b in memory.arenas.items() if stage > 0}
    return replace(memory, ins=ins, outs=outs, arenas={0: arena, **late}, weights=weights)


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
