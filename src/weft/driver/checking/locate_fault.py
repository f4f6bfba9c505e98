"""Locates a miscompilation by bisection: the graph pass, or the kernel and the step of its compilation.

Every representation has a meaning of its own, so each form that a model has on its way can be run: the graph after each pass, and
of a kernel its formulas, its schedule, and the program after each lowering pass. The first that differs is at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from weft.codegen import backend_of, link_here
from weft.codegen.interp import run
from weft.driver.build import Compilation
from weft.driver.checking.agreement import Array, difference
from weft.driver.checking.reference import run_graph, sizes_of, steps_of, values_of
from weft.driver.evaluate import NativeEvaluator, evaluation_target
from weft.driver.kernel import Kernel
from weft.driver.kernel_request import KernelRequest
from weft.driver.measure.same_seeds import same_seeds
from weft.graph import GRAPH_PASSES, Constant, Graph, GraphReport, Group, Value, optimize
from weft.ir import Const, Expr, Var, simplify, substitute
from weft.loop import Buffer, Program
from weft.lower import ProgramReport, lower, serialize_loops
from weft.native import _rt
from weft.support.knobs import Switches

T = TypeVar("T")

MOST_STEPS: Final = 20_000_000
"""Steps of a kernel's loops up to which the forms of it are interpreted, in some seconds each."""


@dataclass(frozen=True)
class Fault:
    """The place of a fault: a pass, or the step that made a kernel; *nodes* are those of the model that the kernel is for."""

    step: str
    kernel: str = ""
    nodes: str = ""

    def __str__(self) -> str:
        if not self.kernel:
            return self.step
        return f"{self.step} of kernel {self.kernel}" + (f", made for {self.nodes}" if self.nodes else "")


def locate_fault(made: Compilation, switches: Switches, inputs: Mapping[str, Array], wanted: Sequence[Array]) -> Fault:
    """Returns where the model of *made* goes wrong, whose source graph gives *wanted* for *inputs*."""
    graphs: list[tuple[str, Graph]] = []

    def note(report: GraphReport) -> None:
        if len(graphs) < len(GRAPH_PASSES):  # those behind are of regions
            graphs.append((report.name, report.after))

    evaluator = NativeEvaluator(evaluation_target(made.target))
    last = optimize(made.source, made.target, evaluator, switches, trace=note)
    forms = [*graphs, ("optimize_regions", last), ("fuse", made.fused.graph)]

    def is_wrong(graph: Graph) -> bool:
        return any(difference(a, b) for a, b in zip(run_graph(graph, inputs), wanted, strict=True))

    found = first_wrong(forms, is_wrong)
    if found is not None:
        return Fault(f"the graph pass {found}")
    return _kernel_at_fault(made, values_of(made.fused.graph, inputs)) or Fault(
        "the host program, or the plan of its memory: each kernel alone is right"
    )


def first_wrong(forms: Sequence[tuple[str, T]], is_wrong: Callable[[T], bool]) -> str | None:
    """Returns the name of the first of *forms* that is wrong, where all behind it are, too; None where the last is right.

    A form that is the very one before it is not at fault. Bisects: each form is run as rarely as can be.
    """
    distinct = [f for k, f in enumerate(forms) if k == 0 or f[1] is not forms[k - 1][1]]
    if not is_wrong(distinct[-1][1]):
        return None
    low, high = 0, len(distinct) - 1  # high is wrong
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_wrong(distinct[middle][1]) else (middle + 1, high)
    return distinct[high][0]


@dataclass(frozen=True)
class _Call:
    """A call of a kernel: its arguments, and the outputs that its formulas give."""

    group: Group
    arrays: list[Array]
    sizes: list[int]
    wanted: list[Array]

    def is_wrong(self, made: Sequence[Array]) -> bool:
        return any(difference(a, b) for a, b in zip(made, self.wanted, strict=True))


def _kernel_at_fault(made: Compilation, known: Mapping[Value, Array]) -> Fault | None:
    """Returns the first kernel, outside of regions, that alone is wrong; *known* are the values by the reference."""
    sizes = sizes_of(made.fused.graph, {v: known[v] for v in made.fused.graph.inputs})
    for late in made.fused.graph.late_sizes:
        sizes[late.size] = Const(int(known[late.value].reshape(-1)[late.element]), late.size.dtype)
    for group in [g for g in made.fused.groups if not g.regions]:
        call = _call(group, known, sizes)
        if all(a.size for a in call.wanted) and call.is_wrong(_ran(made.kernels[group.key], made, call)):
            return Fault(_step(made.requests[group.key], made, call), made.kernels[group.key].name, group.source)
    return None


def _call(group: Group, known: Mapping[Value, Array], sizes: Mapping[Var, Expr]) -> _Call:
    arrays = [np.ascontiguousarray(v.array if isinstance(v, Constant) else known[v]) for v in group.inputs]
    numbers = [simplify(substitute(v, sizes)) for v in group.sizes]
    return _Call(
        group, arrays, [int(n.value) for n in numbers if isinstance(n, Const)], [known[v] for v in group.outputs]
    )


def _empty(call: _Call) -> list[Array]:
    return [np.empty_like(a, order="C") for a in call.wanted]


@same_seeds()
def _ran(kernel: Kernel, made: Compilation, call: _Call) -> list[Array]:
    """Returns the outputs of a kernel's machine code."""
    outputs = _empty(call)
    workspaces = [np.empty(n, np.uint8) for n in kernel.workspaces]
    image = link_here([kernel.module], made.target)
    mapped = _rt.Image(image.code, image.readonly)
    given = [a.reshape(-1).view(np.uint8) for a in (*call.arrays, *outputs)]
    _rt.call(mapped, image.symbols[kernel.name], [*given, *workspaces], call.sizes)
    return outputs


def _step(request: KernelRequest, made: Compilation, call: _Call) -> str:
    """Returns the step of a kernel's making that is at fault, the code where all of its forms are right."""
    forms = [("the formulas", request.program), *_forms(request, made)]
    if len(call.sizes) < len(call.group.sizes) or steps_of(request.program) > MOST_STEPS:
        return "a step in the making"
    found = first_wrong(forms, lambda program: call.is_wrong(_interpreted(program, call)))
    return found or f"the code by the backend {backend_of(made.target).name}"


def _forms(request: KernelRequest, made: Compilation) -> list[tuple[str, Program]]:
    """Returns the forms of a kernel by the steps that make them: scheduled, and after each lowering pass."""
    schedule = request.schedule(made.target).program
    scheduled = schedule if request.parallel else serialize_loops(schedule)
    reports: list[ProgramReport] = []
    _ = lower(scheduled, made.target, Switches(passes=request.passes), trace=reports.append)
    return [("the schedule", scheduled), *[(f"the lowering pass {r.name}", r.after) for r in reports]]


@same_seeds()
def _interpreted(program: Program, call: _Call) -> list[Array]:
    """Returns the outputs of a form of a kernel; lowered ones take flat arrays."""
    outputs = _empty(call)
    buffers = [p for p in program.entry.params if isinstance(p, Buffer)]
    given = [*call.arrays, *outputs]
    run(
        program, [*[a.reshape(-1) if p.rank != a.ndim else a for p, a in zip(buffers, given, strict=True)], *call.sizes]
    )
    return outputs
