"""The entry program of a model: `plan` (see `entry_plan`), and `main`, which calls the kernels in order.

It is a host program (see `loop.host_program`); `entry_declarations` adds the kernels that it calls.

def main(in0, out0, arena, constants, outside, batch):
    t1 = view(arena, 0)
    conv(in0.at(0), t1.at(0))
    ...
    if outside[0] != 0:
        outside[0] = 0
        extremes(...)
        assert ...

Kernels that watch their indices set `outside` where one is not inside of its limits, and go on with the nearest that is. Which
one it was is looked for when all have run.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.driver.entry_plan import plan_function, size_sources
from weft.graph import Array, Constant, FusedGraph, Group, Guard, MemoryPlan, Place, Value
from weft.ir import INDEX, ONE, ZERO, Const, Expr, all_of, cast, const, index, ne
from weft.loop import Address, Assert, Buffer, Call, Entry, Function, If, Load, Param, Program, Stmt, Store, View, seq
from weft.support.dtypes import i32, u8


@dataclass(frozen=True)
class Constants:
    """Where each constant lies in the block of constants, in bytes, and the whole block's size."""

    offsets: Mapping[Value, int]
    size: int


def place_constants(fused: FusedGraph) -> Constants:
    """Returns a place for every constant that kernels read, in the order of first use, each at a multiple of 64 bytes."""
    offsets: dict[Value, int] = {}
    end = 0
    for c in fused.constants:
        offsets[c] = end
        end += -(-c.nbytes // 64) * 64
    return Constants(offsets, end)


def write_constants(fused: FusedGraph, constants: Constants, block: Array) -> None:
    """Writes every constant to its place in *block*, bytes; gaps are zero, so that the same model is always the same bytes."""
    end = 0
    for c in fused.constants:
        begin = constants.offsets[c]
        block[end:begin] = 0
        end = begin + c.nbytes
        c.write(block[begin:end].view(c.dtype.numpy).reshape(c.extents))
    block[end:] = 0


def entry_program(fused: FusedGraph, plan: MemoryPlan, constants: Constants, kernels: Mapping[str, str]) -> Program:
    """Returns the program of `main` and `plan`; *kernels* has the function's name for each group's key."""
    return Program((_main(fused, plan, constants, kernels), plan_function(fused, plan)))


def _main(fused: FusedGraph, plan: MemoryPlan, constants: Constants, kernels: Mapping[str, str]) -> Function:
    """Builds the function that runs the model over the arena."""
    graph = fused.graph
    arena, weights = Buffer("arena", (plan.size,), u8), Buffer("constants", (constants.size,), u8)
    outside = Buffer("outside", (ONE,), i32)
    ins = [Buffer(f"in{n}", (elements_of(v),), v.dtype) for n, v in enumerate(graph.inputs)]
    outs = [Buffer(f"out{n}", (elements_of(v),), v.dtype) for n, v in enumerate(graph.outputs)]
    sizes = size_sources(graph)
    memory = _Memory(fused, plan, constants, ins, outs, arena, weights)
    checks = _checks(memory)
    steps: dict[bool, list[Stmt]] = {False: checks[-1], True: []}
    for n, g in enumerate(fused.groups):
        steps[g in fused.on_demand] += [_call(g, memory, kernels[g.key], plan.workspaces.get(n, ())), *checks[n]]
    body = seq(*steps[False])
    context = [arena, weights]
    if search := steps[True]:
        told, nothing = Load(outside, (ZERO,)), const(0, i32)
        body = seq(body, If(ne(told, nothing), seq(Store(outside, (ZERO,), nothing, None), *search), None))
        context.append(outside)
    params: tuple[Param, ...] = (*ins, *outs, *context, *sizes)
    words = [b.name for b in (*ins, *outs, *context)]
    words += [f"in{n}.{d}" for n, d in sizes.values()]
    return Function("main", params, body, (Entry("main", tuple(words)),))


class _Memory:
    """The buffer in which `main` finds each value: a parameter, or a view of the arena or the constants for one call."""

    def __init__(
        self,
        fused: FusedGraph,
        plan: MemoryPlan,
        constants: Constants,
        ins: Sequence[Buffer],
        outs: Sequence[Buffer],
        arena: Buffer,
        weights: Buffer,
    ) -> None:
        self.fused, self.plan, self.constants = fused, plan, constants
        self.ins, self.outs, self.arena, self.weights = ins, outs, arena, weights
        self.names = itertools.count()

    def begin(self, value: Value) -> int:
        """Returns the element of its buffer at which *value* begins: a slice may be a view of a larger tensor."""
        return self.fused.offset(value) // value.dtype.bytes

    def parameter(self, value: Value) -> Buffer | None:
        """Returns the input or output that *value* is; None for a value inside the arena or the constants."""
        place = self.plan.locations[self.fused.root(value)]
        if place.place is Place.INPUT:
            return self.ins[place.number]
        return self.outs[place.number] if place.place is Place.OUTPUT else None

    def view(self, value: Value) -> tuple[Buffer, Buffer, Expr]:
        """Returns a new buffer for *value*, the buffer that it is a view of, and its offset there, in bytes."""
        root = self.fused.root(value)
        place = self.plan.locations[root]
        made = Buffer(f"t{next(self.names)}", (elements_of(root),), root.dtype)
        if place.place is Place.CONSTANT:
            return made, self.weights, index(self.constants.offsets[root])
        return made, self.arena, place.offset


def _call(group: Group, memory: _Memory, name: str, workspaces: Sequence[Value]) -> Stmt:
    """Calls a kernel; views last for one call, so that a long model is no deep nest."""
    views: list[tuple[Buffer, Buffer, Expr]] = []
    addresses: list[Expr] = []
    for v in (*group.inputs, *group.outputs, *workspaces):
        buffer = memory.parameter(v)
        if buffer is None:
            views.append(memory.view(v))
            buffer = views[-1][0]
        addresses.append(Address(buffer, (index(memory.begin(v)),)))
    made: Stmt = Call(name, (*addresses, *group.sizes))
    for buffer, source, offset in reversed(views):
        made = View(buffer, source, offset, made)
    return made


def _checks(memory: _Memory) -> dict[int, list[Stmt]]:
    """Returns the guards as statements, by the step after which their value is known: -1 for inputs and constants."""
    made = {root: n for n, g in enumerate(memory.fused.groups) for root in map(memory.fused.root, g.outputs)}
    steps: dict[int, list[Stmt]] = {n: [] for n in range(-1, len(memory.fused.groups))}
    for g in memory.fused.graph.guards:
        for v in (g.least, g.greatest):
            step = made.get(memory.fused.root(v), -1)
            steps[step] += [_check_limit(g, v, k, memory) for k in range(len(g.limits))]
    return steps


def _check_limit(g: Guard, v: Value, k: int, memory: _Memory) -> Stmt:
    """Checks element *k* of a value of a guard; the extremes of no elements are inside of any limits."""
    if isinstance(v, Constant):
        return _assert_inside(g, v, k, index(int(v.array.reshape(-1)[k])))
    buffer = memory.parameter(v)
    view = None if buffer is not None else memory.view(v)
    where = buffer if view is None else view[0]
    assert where is not None
    check = _assert_inside(g, v, k, cast(Load(where, (index(memory.begin(v) + k),)), INDEX))
    return check if view is None else View(*view, check)


def _assert_inside(g: Guard, v: Value, k: int, value: Expr) -> Assert:
    """Stops the model with a message that names the node, the *value* of *v*, and from where to where it may be."""
    low, high = g.limits[k]
    held = [c for end, c in ((g.least, low <= value), (g.greatest, value <= high)) if end is v]
    symbolic = [e for e in (low, high) if not isinstance(e, Const)]
    texts = [str(e.value) if isinstance(e, Const) else f"{{{symbolic.index(e) + 1}}}" for e in (low, high)]
    source = g.source.replace("{", "{{").replace("}", "}}")
    message = f"{source}: {g.what} {{0}} is outside of {texts[0]} to {texts[1]}"
    return Assert(all_of(held), message, (value, *symbolic))


def elements_of(v: Value) -> Expr:
    """Returns the number of elements of *v*."""
    total: Expr = index(1)
    for s in v.shape:
        total = total * s
    return total
