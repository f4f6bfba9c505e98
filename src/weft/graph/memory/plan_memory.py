"""The static memory plan: an offset in an arena for every value that groups write; memory of dead values is reused.

Values of sizes that are known when a call begins share one arena. Each late size begins a stage: values whose sizes are known
from then on share an arena of that stage, which is taken when the call is there.

Sizes may hold symbolic dimensions. Each is split into a whole number and a symbolic factor (`4 * 64 * batch`: 256 and
`batch`); values of one factor are planned together in units of it, and each factor has its own part of the arena.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from weft.graph.core.graph_values import Value
from weft.graph.core.state_pairs import state_pairs, updated_in_place
from weft.graph.core.type_text import dim_text, type_text
from weft.graph.fusion.groups import FusedGraph, Group
from weft.graph.memory.best_fit import Lifetime, most_live, place
from weft.graph.memory.buffer_size import buffer_size
from weft.graph.memory.in_place import last_reads
from weft.graph.regions.region_operators import LOOP
from weft.ir import ONE, ZERO, Bounds, Expr, free_vars, index, maximum, prove
from weft.ops import TensorType, simplify_size
from weft.support.dtypes import bool_, i64, u8


class Place(StrEnum):
    """The kinds of memory that a value can be in."""

    ARENA = "arena"
    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    KEPT = "kept"


@dataclass(frozen=True)
class Location:
    """The memory of a value: `offset` bytes into the arena, the input, output or constant of this number."""

    place: Place
    number: int = 0
    offset: Expr = ZERO


@dataclass(frozen=True, eq=False)
class MemoryPlan:
    """The location of each value of a fused graph; `size` is the arena's in bytes, `bound` a lower bound of any plan's size.

    Arena 0 is that of sizes known when a call begins; `late` has the sizes of the arenas of later stages, by their numbers.
    `in_place` maps an output of a group to the dead input whose memory it reuses; `workspaces` are the scratch buffers of each
    group's kernel, or its regions, by the group's step. `regions` are the plans of a step's regions; `kept` has the number of the
    memory that is kept for a state of a loop that grows, by the step and the number of the state.
    """

    locations: Mapping[Value, Location]
    size: Expr
    bound: Expr
    buffers: tuple[Lifetime, ...]
    in_place: Mapping[Value, Value]
    workspaces: Mapping[int, tuple[Value, ...]] = field(default_factory=dict)
    late: Mapping[int, Expr] = field(default_factory=dict)
    regions: Mapping[int, tuple[MemoryPlan, ...]] = field(default_factory=dict)
    kept: Mapping[tuple[int, int], int] = field(default_factory=dict)

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
        late = "".join([f"; later {dim_text(size)}" for size in self.late.values()])
        lines.append(f"arena {dim_text(self.size)} bytes, lower bound {dim_text(self.bound)}{late}")
        return "\n".join(lines) + "\n"


def plan_memory(
    fused: FusedGraph,
    *,
    in_place: Mapping[Value, Value] | None = None,
    reuse: bool = True,
    workspaces: Mapping[str, Sequence[int]] | None = None,
    kept: Iterator[int] | None = None,
) -> MemoryPlan:
    """Returns the plan for the groups of *fused*, run in order.

    Model outputs, inputs and constants live outside the arena. *in_place* are the outputs that reuse the memory of other values,
    as `find_in_place` returns them. Without *reuse*, every buffer keeps its memory from the first step to the last. *workspaces*
    has, by the groups' keys, the bytes of each buffer that a kernel needs besides its inputs and outputs. *kept* gives numbers of
    kept memory, each once for a model.
    """
    numbers = kept if kept is not None else itertools.count()

    def plan_region(region: FusedGraph) -> MemoryPlan:
        return plan_memory(region, in_place=in_place, reuse=reuse, workspaces=workspaces, kept=numbers)

    regions = {step: tuple(map(plan_region, g.regions)) for step, g in enumerate(fused.groups) if g.regions}
    own = {v for g in fused.groups for v in g.outputs}
    locations = _fixed_locations(fused, numbers)
    reused = {v: taken for v, taken in (in_place or {}).items() if v in own}
    working = _workspaces(fused, workspaces or {}, regions)
    lifetimes = _lifetimes(fused, locations, reused)
    lifetimes += [Lifetime(v, *buffer_size(v), step, step) for step, values in working.items() for v in values]
    if not reuse:
        lifetimes = [replace(b, start=0, end=len(fused.groups) - 1) for b in lifetimes]
    sizes, bounds = _place_stages(fused, lifetimes, locations)
    for value, taken in reused.items():  # in order of the groups, so that a reused buffer has its location already
        locations[value] = locations[taken]
    for value in fused.aliases:
        root = locations[fused.root(value)]
        locations[value] = Location(root.place, root.number, root.offset + fused.offset(value))
    late = {stage: size for stage, size in sizes.items() if stage > 0}
    return MemoryPlan(
        locations, sizes[0], bounds[0], tuple(lifetimes), reused, working, late, regions, _growing(fused, numbers)
    )


def _place_stages(
    fused: FusedGraph, lifetimes: Sequence[Lifetime], locations: dict[Value, Location]
) -> tuple[dict[int, Expr], dict[int, Expr]]:
    """Adds the locations of buffers in the arenas of their stages; returns the arenas' sizes, and lower bounds of them."""
    sizes: dict[int, Expr] = {}
    bounds: dict[int, Expr] = {}
    for stage in sorted({0, *[fused.stage(*b.value.shape) for b in lifetimes]}):
        part = [b for b in lifetimes if fused.stage(*b.value.shape) == stage]
        offsets, sizes[stage], bounds[stage] = _place_all(part, are_late=stage > 0)
        locations.update((value, Location(Place.ARENA, stage, offset)) for value, offset in offsets.items())
    return sizes, bounds


def _growing(fused: FusedGraph, numbers: Iterator[int]) -> dict[tuple[int, int], int]:
    """Returns numbers of kept memory for the states of loops that grow, by the step and the number of the state."""
    loops = [(step, g) for step, g in enumerate(fused.groups) if g.nodes[0].operator is LOOP]
    states = [(step, k, g.outputs[k]) for step, g in loops for k in range(int(g.nodes[0].attribute("states")))]
    return {(step, k): next(numbers) for step, k, v in states if fused.is_kept(v)}


def _workspaces(
    fused: FusedGraph, needed: Mapping[str, Sequence[int]], regions: Mapping[int, Sequence[MemoryPlan]]
) -> dict[int, tuple[Value, ...]]:
    """Returns values that stand for the workspaces of kernels and regions, by step."""
    found = {
        step: tuple([Value(f"{g.name}_workspace", TensorType((index(n),), u8)) for n in needed[g.key]])
        for step, g in enumerate(fused.groups)
        if not g.regions and needed.get(g.key)
    }
    return found | {step: region_workspaces(fused, fused.groups[step], plans) for step, plans in regions.items()}


def region_workspaces(fused: FusedGraph, group: Group, plans: Sequence[MemoryPlan]) -> tuple[Value, ...]:
    """Returns the buffers that a node of control flow works in.

    The first is the arena of its regions, of which one runs at a time. A loop has a counter besides, whether it goes on, and two
    copies of each state that neither grows nor is updated in place, from one of which an iteration reads while it writes to the
    other.
    """
    size: Expr = ZERO
    for plan in plans:
        size = maximum(size, plan.size)
    arena = Value(f"{group.name}_arena", TensorType((simplify_size(size),), u8))
    if group.nodes[0].operator is not LOOP:
        return (arena,)
    counter, going = Value("counter", TensorType((ONE,), i64)), Value("going", TensorType((ONE,), bool_))
    states = [group.outputs[k] for k in alternating_states(fused, group)]
    twice = [Value(f"{v.name}_states", TensorType((index(2), *v.shape), v.dtype)) for v in states]
    return (arena, counter, going, *twice)


def alternating_states(fused: FusedGraph, loop: Group) -> list[int]:
    """Returns the numbers of the states of a loop that have two copies, each of which an iteration reads or writes."""
    states, updates = range(int(loop.nodes[0].attribute("states"))), loop.regions[0].updates
    return [k for k in states if k not in updates and not fused.is_kept(loop.outputs[k])]


def _fixed_locations(fused: FusedGraph, kept: Iterator[int]) -> dict[Value, Location]:
    """Returns the locations of inputs, constants, outputs, updates of states, and results of control flow that are kept."""
    found = {v: Location(Place.INPUT, i) for i, v in enumerate(fused.graph.inputs)}
    found.update((v, Location(Place.CONSTANT, i)) for i, v in enumerate(fused.constants))
    found.update((fused.root(v), Location(Place.OUTPUT, i)) for i, v in enumerate(fused.graph.outputs))
    for p in state_pairs(fused.graph):
        found.update((fused.root(v), Location(Place.OUTPUT, p.output)) for v in updated_in_place(p))
    for k, updates in fused.updates.items():
        found.update((v, Location(Place.OUTPUT, 1 + k)) for v in updates)
    results = [v for g in fused.groups if g.regions for v in g.outputs if fused.is_kept(v)]
    found.update((v, Location(Place.KEPT, next(kept))) for v in results)
    return found


def _lifetimes(fused: FusedGraph, fixed: Mapping[Value, Location], reused: Mapping[Value, Value]) -> list[Lifetime]:
    """Returns the buffers of the arena; values computed in place extend the lifetime of the buffer that they reuse."""
    owner: dict[Value, Value] = {}
    for value, taken in reused.items():
        owner[value] = owner.get(taken, taken)
    last = last_reads(fused)
    spans: dict[Value, tuple[int, int]] = {}
    for step, g in enumerate(fused.groups):
        for v in map(fused.root, g.outputs):
            if v not in fixed:
                buffer = owner.get(v, v)
                spans[buffer] = (spans.get(buffer, (step, step))[0], max(step, last.get(v, step)))
    return [Lifetime(v, *buffer_size(v), start, end) for v, (start, end) in spans.items()]


def _times(n: int, factor: Expr) -> Expr:
    return index(n) * factor


def _not_negative(factor: Expr) -> Expr:
    """Returns a factor of late sizes, which may be zero, so that a formula of them may be below: then it is zero too."""
    bounds = Bounds()
    for v in free_vars(factor):
        bounds = bounds.bind(v, 0, None)
    return factor if prove(factor >= ZERO, bounds) else maximum(factor, ZERO)


def _place_all(lifetimes: Sequence[Lifetime], *, are_late: bool) -> tuple[dict[Value, Expr], Expr, Expr]:
    """Returns the offset of each buffer, the size of the arena, and a lower bound of it."""
    offsets: dict[Value, Expr] = {}
    size: Expr = ZERO
    bound: Expr = ZERO
    for unit in dict.fromkeys(b.factor for b in lifetimes):
        part = [b for b in lifetimes if b.factor is unit]
        factor = _not_negative(unit) if are_late else unit
        placed, total = place(part)
        offsets.update((v, size + _times(o, factor)) for v, o in placed.items())
        size = size + _times(total, factor)
        bound = bound + _times(most_live(part), factor)
    return offsets, size, bound
