"""The keys of tuning records: kernels and graphs as entries of a database."""

from __future__ import annotations

from weft.driver.kernel_request import KernelRequest
from weft.graph import Graph, dim_text, graph_text, type_text
from weft.loop import Buffer, structure_text
from weft.records import GRAPH, KERNEL, Workload
from weft.support.digest import digest
from weft.support.knobs import PRETUNED, Switches


def kernel_workload(request: KernelRequest) -> Workload:
    """Returns the workload of a kernel, whose digest is `KernelRequest.workload`."""
    structure, sizes = structure_text(request.nameless)
    types = [
        f"{p.dtype}[{', '.join(map(dim_text, p.shape))}]" for p in request.program.entry.params if isinstance(p, Buffer)
    ]
    return Workload(KERNEL, request.text, request.flags, digest(structure), sizes, " ".join([request.name, *types]))


def graph_workload(graph: Graph, switches: Switches) -> Workload:
    """Returns the workload of a graph as the model has it: its text, and the switches that decide the questions of its passes."""
    without = [name for name in switches.without if name != PRETUNED.name]
    parts = [f"opt_level={switches.opt_level}", f"precision={switches.precision}", *without, *switches.passes]
    text = graph_text(graph)
    label = " ".join([graph.name, *[f"{v.name}: {type_text(v.type)}" for v in graph.inputs]])
    return Workload(GRAPH, text, " ".join(parts), digest(text), (), label)
