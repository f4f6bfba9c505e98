"""The entry program of a model: `plan` (see `entry_plan`), and `main`, which calls the kernels in order (see `host_body`).

It is a host program (see `loop.host_program`); `entry_declarations` adds the kernels that it calls.

def main(in0, out0, arena, constants, outside, batch):
    t1 = view(arena, 0)
    conv(in0.at(0), t1.at(0))
    ...
    if outside[0] != 0:
        outside[0] = 0
        extremes(...)
        assert ...
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from weft.driver.host.entry_plan import plan_function, size_sources, with_bound_lengths
from weft.driver.host.host_body import OUTSIDE, HostBody, late_shape
from weft.driver.host.host_control import control_flow
from weft.driver.host.host_memory import Constants, HostMemory, arenas_of, elements_of, kept_buffers
from weft.driver.host.tensors_there import TensorsThere
from weft.graph import FusedGraph, MemoryPlan, Value, bound_lengths
from weft.ir import INDEX, ZERO, Expr, Var, substitute
from weft.loop import Alloc, Buffer, Entry, Function, LateMemory, Let, Param, Program, Stmt, View
from weft.support.dtypes import DType, u8


def place_constants(fused: FusedGraph) -> Constants:
    """Returns a place for every constant that kernels read, in the order of first use, each at a multiple of 64 bytes."""
    offsets: dict[Value, int] = {}
    end = 0
    for c in fused.constants:
        offsets[c] = end
        end += -(-c.nbytes // 64) * 64
    return Constants(offsets, end)


def entry_program(fused: FusedGraph, plan: MemoryPlan, constants: Constants, kernels: Mapping[str, str]) -> Program:
    """Returns the program of `main` and `plan`; *kernels* has the function's name for each group's key."""
    return Program((_main(fused, plan, constants, kernels), plan_function(fused, plan)))


def _main(fused: FusedGraph, plan: MemoryPlan, constants: Constants, kernels: Mapping[str, str]) -> Function:
    """Builds the function that runs the model over the arena."""
    graph = fused.graph
    lengths = bound_lengths(graph)
    sizes = size_sources(graph)
    shown = {s: var if s.is_direct else Var(f"in{s.number}_{s.dimension}", INDEX) for var, s in sizes.items()}
    told = {var: s.size(shown[s]) for var, s in sizes.items() if not s.is_direct}

    def param(name: str, size: Expr, dtype: DType) -> Buffer:
        size = substitute(size, lengths) if lengths else size
        return Buffer(name, (substitute(size, told) if told else size,), dtype)

    arena, weights = param("arena", plan.size, u8), Buffer("constants", (constants.size,), u8)
    ins = [param(f"in{n}", elements_of(v), v.dtype) for n, v in enumerate(graph.inputs)]
    outs = [param(f"out{n}", elements_of(v), v.dtype) for n, v in enumerate(graph.outputs)]
    given = [b for b, v in zip(outs, graph.outputs, strict=True) if not fused.stage(*v.shape)]
    arenas, kept = arenas_of(plan, arena), kept_buffers(fused, plan)
    memory = HostMemory(fused, plan, constants, weights, ins, outs, arenas, itertools.count(), kept)
    there = TensorsThere(memory)

    def ask(number: int, body: Stmt) -> Stmt:
        v = graph.outputs[number]
        asked = Buffer(f"asked{number}", late_shape(v), v.dtype, LateMemory(is_kept=False, number=number).scope)
        return Alloc(asked, View(outs[number], asked, ZERO, there.late_output(number, asked, body)))

    body = there.around(HostBody(there.memory, kernels, ask, control_flow).statements())
    context = [arena, weights, *([OUTSIDE] if any(f.on_demand for f in fused.all_graphs) else [])]
    body = with_bound_lengths(graph, body)
    for var, size in told.items():
        body = Let(var, size, body)
    beside = there.params()
    params: tuple[Param, ...] = (*ins, *given, *context, *beside, *shown.values())
    words = [*[b.name for b in (*ins, *given, *context)], *beside.values()]
    words += [f"in{s.number}.{s.dimension}" for s in shown]
    return Function("main", params, body, (Entry("main", tuple(words)),))
