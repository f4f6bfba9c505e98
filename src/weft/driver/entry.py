"""The entry program of a model: `plan`, which checks a call's shapes, and `main`, which calls the kernels in order.

def main(in0, out0, arena, constants, batch):
    t1 = view(arena, 0)
    conv(in0.at(0), t1.at(0))
    ...
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.codegen.llvm.entry import EntrySpec
from weft.graph.graph import Array, Graph, Value
from weft.graph.groups import FusedGraph, Group
from weft.graph.memory import MemoryPlan, Place
from weft.ir.expr import INDEX, ZERO, Const, Expr, Var, eq, index
from weft.ir.rewrite import free_vars
from weft.loop.nodes import (
    Address,
    Assert,
    Buffer,
    Call,
    Function,
    Let,
    Load,
    Param,
    Program,
    Stmt,
    Store,
    View,
    seq,
)  # fmt: skip
from weft.support.dtypes import u8
from weft.support.errors import ModelError


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
    return Program((_main(fused, plan, constants, kernels), _plan(fused.graph, plan)))


def size_sources(graph: Graph) -> dict[Var, tuple[int, int]]:
    """Returns, for each symbolic size, an input and the dimension of it that tells the size.

    Raises `ModelError` for a size that no input shows as it is.
    """
    found: dict[Var, tuple[int, int]] = {}
    for n, v in enumerate(graph.inputs):
        for d, s in enumerate(v.shape):
            if isinstance(s, Var):
                found.setdefault(s, (n, d))
    for v in (*graph.inputs, *graph.outputs):
        for s in v.shape:
            for var in free_vars(s):
                if var not in found:
                    raise ModelError(
                        f"the size {var.name} of {v.name} is not a dimension of any input",
                        hint=f'give it a number: shapes={{"{var.name}": 1}}',
                    )
    return found


def _main(fused: FusedGraph, plan: MemoryPlan, constants: Constants, kernels: Mapping[str, str]) -> Function:
    """Builds the function that runs the model over the arena."""
    graph = fused.graph
    arena, weights = Buffer("arena", (plan.size,), u8), Buffer("constants", (constants.size,), u8)
    ins = [Buffer(f"in{n}", (_elements(v),), v.dtype) for n, v in enumerate(graph.inputs)]
    outs = [Buffer(f"out{n}", (_elements(v),), v.dtype) for n, v in enumerate(graph.outputs)]
    sizes = size_sources(graph)
    memory = _Memory(fused, plan, constants, ins, outs, arena, weights)
    body = seq(*[_call(g, memory, kernels[g.key], plan.workspaces.get(n, ())) for n, g in enumerate(fused.groups)])
    params: tuple[Param, ...] = (*ins, *outs, arena, weights, *sizes)
    words = [f"in{n}" for n in range(len(ins))] + [f"out{n}" for n in range(len(outs))] + ["arena", "constants"]
    words += [f"in{n}.{d}" for n, d in sizes.values()]
    return Function("main", params, body, EntrySpec("main", tuple(words)).annotations())


class _Memory:
    """The buffer in which `main` finds each value: a parameter, or a view of the arena or the constants for one call."""

    def __init__(
        self, fused: FusedGraph, plan: MemoryPlan, constants: Constants, ins: Sequence[Buffer], outs: Sequence[Buffer],
        arena: Buffer, weights: Buffer,
    ) -> None:  # fmt: skip
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
        """Returns a new buffer for *value*, what it is a view of, and where it begins there, in bytes."""
        root = self.fused.root(value)
        place = self.plan.locations[root]
        made = Buffer(f"t{next(self.names)}", (_elements(root),), root.dtype)
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


def _elements(v: Value) -> Expr:
    total: Expr = index(1)
    for s in v.shape:
        total = total * s
    return total


def _plan(graph: Graph, plan: MemoryPlan) -> Function:
    """Builds the function that checks the inputs' shapes, and tells the outputs' shapes and the arena's size."""
    ins = [Buffer(f"in{n}_shape", (v.rank,), INDEX) for n, v in enumerate(graph.inputs)]
    outs = [Buffer(f"out{n}_shape", (v.rank,), INDEX) for n, v in enumerate(graph.outputs)]
    needed = Buffer("arena_needed", (index(1),), INDEX)
    sources = size_sources(graph)
    steps: list[Stmt] = []
    for n, v in enumerate(graph.inputs):
        steps += [_check(v, d, s, ins[n]) for d, s in enumerate(v.shape) if sources.get(_var(s)) != (n, d)]
    steps += [Assert(r.condition, r.message, r.values) for r in graph.requirements]
    steps += [Store(outs[n], (index(d),), s, None) for n, v in enumerate(graph.outputs) for d, s in enumerate(v.shape)]
    steps.append(Store(needed, (ZERO,), plan.size, None))
    body = seq(*[_check_positive(graph.inputs[n], d, ins[n]) for n, d in sources.values()], *steps)
    for var, (n, d) in reversed(sources.items()):
        body = Let(var, Load(ins[n], (index(d),)), body)
    words = [f"in{n}.shape" for n in range(len(ins))] + [f"out{n}.shape" for n in range(len(outs))]
    return Function(
        "plan", (*ins, *outs, needed), body, EntrySpec("plan", (*words, "arena_needed")).annotations()
    )  # fmt: skip


def _var(e: Expr) -> Var:
    return e if isinstance(e, Var) else Var("none")


def _check(v: Value, d: int, expected: Expr, shape: Buffer) -> Assert:
    """Checks one size against the model's."""
    given = Load(shape, (index(d),))
    wanted = str(expected.value) if isinstance(expected, Const) else "{1}"
    message = f"input {v.name}: dimension {d} is {{0}}, but the model takes {wanted}"
    return Assert(eq(given, expected), message, (given, expected))


def _check_positive(v: Value, d: int, shape: Buffer) -> Assert:
    given = Load(shape, (index(d),))
    return Assert(index(0) < given, f"input {v.name}: dimension {d} is {{0}}, but it must be at least 1", (given,))
