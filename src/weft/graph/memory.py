"""The static memory plan: a place for every value that groups write, in one arena, reused when its contents are dead.

Sizes may hold symbolic dimensions. Each is split into a whole number and a symbolic factor (`4 * 64 * batch`: 256 and
`batch`); values of one factor are planned together in units of it, and each factor has its own part of the arena. The placement
is greedy best fit by size, as in Pisarchyk and Lee, "Efficient memory management for deep neural net inference" (2020), under
several orders, the best of them kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from weft.graph.facts import ALIGNMENT, facts_of
from weft.graph.graph import Value
from weft.graph.groups import FusedGraph, Group
from weft.graph.text import dim_text, type_text
from weft.ir.expr import ONE, ZERO, Const, Expr, Mul, index


class Place(StrEnum):
    """Where a value's memory is."""

    ARENA = "arena"
    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"


@dataclass(frozen=True)
class Location:
    """The memory of a value: `offset` bytes into the arena, or into the input, output or constant of this number."""

    place: Place
    number: int = 0
    offset: Expr = ZERO


@dataclass(frozen=True)
class Lifetime:
    """A buffer in the arena: `size` bytes times the symbolic `factor`, written in step `start`, last read in step `end`."""

    value: Value
    size: int
    factor: Expr
    start: int
    end: int

    def overlaps(self, other: Lifetime) -> bool:
        """Tells whether both hold contents in some step."""
        return self.start <= other.end and other.start <= self.end


@dataclass(frozen=True, eq=False)
class MemoryPlan:
    """Where each value of a fused graph lives; `size` is the arena's in bytes, `bound` what no plan can be below.

    `in_place` maps an output of a group to the dead input whose memory it takes over.
    """

    locations: Mapping[Value, Location]
    size: Expr
    bound: Expr
    buffers: tuple[Lifetime, ...]
    in_place: Mapping[Value, Value]

    def __str__(self) -> str:
        rows = [("buffer", "type", "bytes", "steps", "offset")]
        for b in self.buffers:
            size = dim_text(_times(b.size, b.factor))
            rows.append(
                (
                    b.value.name,
                    type_text(b.value.type),
                    size,
                    f"{b.start}-{b.end}",
                    dim_text(self.locations[b.value].offset),
                )
            )
        widths = [max(len(r[c]) for r in rows) for c in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)).rstrip() for r in rows]
        return "\n".join([*lines, f"arena {dim_text(self.size)} bytes, lower bound {dim_text(self.bound)}"]) + "\n"


def plan_memory(fused: FusedGraph, *, in_place: bool = False, reuse: bool = True) -> MemoryPlan:
    """Returns the plan for the groups of *fused*, run in order.

    Model outputs, inputs and constants live outside the arena. With *in_place*, an output takes over the memory of an input that
    dies in its group and that the group reads only at the output's own index; kernels must then not be told that their
    parameters never overlap. Without *reuse*, every buffer keeps its memory from the first step to the last.
    """
    locations = _fixed_locations(fused)
    reused = _reuse_in_place(fused, locations) if in_place else {}
    lifetimes = _lifetimes(fused, locations, reused)
    if not reuse:
        lifetimes = [replace(b, start=0, end=len(fused.groups) - 1) for b in lifetimes]
    offsets, size, bound = _place_all(lifetimes)
    for value, offset in offsets.items():
        locations[value] = Location(Place.ARENA, 0, offset)
    for value, taken in reused.items():  # in order of the groups, so that what is taken has its place already
        locations[value] = locations[taken]
    for value in fused.aliases:
        root = locations[fused.root(value)]
        locations[value] = Location(root.place, root.number, root.offset + fused.offset(value))
    return MemoryPlan(locations, size, bound, tuple(lifetimes), reused)


def _fixed_locations(fused: FusedGraph) -> dict[Value, Location]:
    """Returns the places of inputs, constants and outputs."""
    found = {v: Location(Place.INPUT, i) for i, v in enumerate(fused.graph.inputs)}
    found.update((v, Location(Place.CONSTANT, i)) for i, v in enumerate(fused.constants))
    found.update((fused.root(v), Location(Place.OUTPUT, i)) for i, v in enumerate(fused.graph.outputs))
    return found


def _last_reads(fused: FusedGraph) -> dict[Value, int]:
    """Returns the last step in which each root value is read."""
    return {fused.root(v): step for step, g in enumerate(fused.groups) for v in g.inputs}


def _reuse_in_place(fused: FusedGraph, fixed: Mapping[Value, Location]) -> dict[Value, Value]:
    """Returns, for each output that can take over a dying input's memory, the root value of that input."""
    last = _last_reads(fused)
    reused: dict[Value, Value] = {}
    for step, g in enumerate(fused.groups):
        if len(g.outputs) != 1 or g.outputs[0] in fixed:
            continue
        for v in g.inputs:
            root = fused.root(v)
            dies = last[root] == step and root not in fixed and [fused.root(u) for u in g.inputs].count(root) == 1
            if dies and _size(v) == _size(root) and _fits(g, v):
                reused[g.outputs[0]] = root
                last[root] = -1
                break
    return reused


def _fits(group: Group, v: Value) -> bool:
    """Tells whether the group reads *v* only at the index that it writes, with elements of one size."""
    output = group.outputs[0]
    return v.shape == output.shape and v.dtype.bytes == output.dtype.bytes and reads_at_own_index(group, v)


def reads_at_own_index(group: Group, v: Value) -> bool:
    """Tells whether each element of the group's output needs, of *v*, only the element at its own index."""
    reached = {v}
    for n in group.nodes:
        for i, u in enumerate(n.inputs):
            if u in reached:
                if not facts_of(n).same_index(i):
                    return False
                reached.update(n.outputs)
    return True


def _lifetimes(fused: FusedGraph, fixed: Mapping[Value, Location], reused: Mapping[Value, Value]) -> list[Lifetime]:
    """Returns the buffers of the arena; values computed in place extend the buffer they take over."""
    owner: dict[Value, Value] = {}
    for value, taken in reused.items():
        owner[value] = owner.get(taken, taken)
    last = _last_reads(fused)
    spans: dict[Value, tuple[int, int]] = {}
    for step, g in enumerate(fused.groups):
        for v in g.outputs:
            if v not in fixed:
                buffer = owner.get(v, v)
                spans[buffer] = (spans.get(buffer, (step, step))[0], max(step, last.get(v, step)))
    return [Lifetime(v, *_size(v), start, end) for v, (start, end) in spans.items()]


def _size(v: Value) -> tuple[int, Expr]:
    """Returns the size of *v* in bytes, aligned, as a whole number and a symbolic factor."""
    whole, factors = v.dtype.bytes, list[Expr]()
    stack = list(v.shape)
    while stack:
        e = stack.pop()
        if isinstance(e, Const):
            whole *= int(e.value)
        elif isinstance(e, Mul):
            stack += [e.a, e.b]
        else:
            factors.append(e)
    factor: Expr = ONE
    for f in sorted(factors, key=dim_text):
        factor = factor * f
    return -(-whole // ALIGNMENT) * ALIGNMENT, factor


def _times(n: int, factor: Expr) -> Expr:
    return index(n) * factor


def _place_all(lifetimes: Sequence[Lifetime]) -> tuple[dict[Value, Expr], Expr, Expr]:
    """Returns the offset of each buffer, the size of the arena, and a lower bound of it."""
    offsets: dict[Value, Expr] = {}
    size: Expr = ZERO
    bound: Expr = ZERO
    for factor in dict.fromkeys(b.factor for b in lifetimes):
        part = [b for b in lifetimes if b.factor is factor]
        placed, total = place(part)
        offsets.update((v, size + _times(o, factor)) for v, o in placed.items())
        size = size + _times(total, factor)
        bound = bound + _times(most_live(part), factor)
    return offsets, size, bound


def most_live(buffers: Sequence[Lifetime]) -> int:
    """Returns the largest number of bytes that hold contents in one step."""
    change: dict[int, int] = {}
    for b in buffers:
        change[b.start] = change.get(b.start, 0) + b.size
        change[b.end + 1] = change.get(b.end + 1, 0) - b.size
    live = most = 0
    for step in sorted(change):
        live += change[step]
        most = max(most, live)
    return most


IMPROVEMENTS = 8
"""How often an order is changed for the better before the next is tried."""

EFFORT = 1_000_000
"""Pairs of buffers looked at while improving an order: bounds the time that large graphs take."""

_ORDERS: tuple[Callable[[Lifetime], tuple[int, ...]], ...] = (
    lambda b: (-b.size, b.start),
    lambda b: (-b.size * (b.end - b.start + 1), b.start),
    lambda b: (b.start, -b.size),
    lambda b: (b.start - b.end, -b.size),
)


def place(buffers: Sequence[Lifetime]) -> tuple[dict[Value, int], int]:
    """Returns the offset of each buffer and the bytes that all take: the best of several orders, and of their improvements.

    An order is improved by placing first what ended on top, which is what made the arena so large.
    """
    bound = most_live(buffers)
    best: tuple[dict[Value, int], int] = {}, 0
    for key in _ORDERS:
        order = sorted(buffers, key=key)
        for _ in range(1 + min(IMPROVEMENTS, EFFORT // max(1, len(order) ** 2))):
            offsets = _place_in_order(order)
            total = max((offsets[b.value] + b.size for b in order), default=0)
            if total < best[1] or not best[0]:
                best = offsets, total
            if best[1] == bound:
                return best
            order.sort(key=lambda b: offsets[b.value] + b.size < total)
    return best


def _place_in_order(buffers: Iterable[Lifetime]) -> dict[Value, int]:
    """Gives each buffer, in order, the smallest gap it fits in among those that live at the same time, else the end."""
    offsets: dict[Value, int] = {}
    done: list[Lifetime] = []
    for b in buffers:
        taken = sorted((offsets[o.value], offsets[o.value] + o.size) for o in done if o.overlaps(b))
        offsets[b.value] = _smallest_gap(taken, b.size)
        done.append(b)
    return offsets


def _smallest_gap(taken: Iterable[tuple[int, int]], size: int) -> int:
    """Returns the offset of the tightest gap of *size* between sorted intervals, or the end of the last."""
    best, tightest, end = -1, 0, 0
    for low, high in taken:
        gap = low - end
        if gap >= size and (best < 0 or gap < tightest):
            best, tightest = end, gap
        end = max(end, high)
    return best if best >= 0 else end
