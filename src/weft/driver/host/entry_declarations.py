"""The host program of a model: its entry functions, and a declaration of each kernel with its parameters.

@function(external="cpu")
def conv2d_relu(p0: f32[1728], p1: f32[n * 3072], t0: f32[n * 8192], work0: u8[4096], n: i64):
    pass
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from weft.driver.host.entry import entry_program
from weft.driver.host.host_memory import Constants, elements_of
from weft.graph import FusedGraph, Group, MemoryPlan, Value
from weft.loop import NOTHING, Buffer, External, Function, Program


def host_program(
    fused: FusedGraph,
    plan: MemoryPlan,
    constants: Constants,
    kernels: Mapping[str, str],
    modules: Mapping[str, str],
) -> Program:
    """Returns `main` and `plan`, and the kernels that they call as declarations.

    By the key of a group, *kernels* has the name of its function, and *modules* that of the module which has the code.
    """
    entry = entry_program(fused, plan, constants, kernels)
    declared: dict[str, Function] = {}
    for group, workspaces in _kernels(fused, plan):
        if group.key not in declared:
            declared[group.key] = _declaration(group, kernels[group.key], modules[group.key], workspaces)
    return Program((*entry.functions, *declared.values()))


def _kernels(fused: FusedGraph, plan: MemoryPlan) -> Iterator[tuple[Group, Sequence[Value]]]:
    """Yields the groups that have kernels, with the workspaces of these, those of regions too."""
    for n, g in enumerate(fused.groups):
        if g.regions:
            for region, of_region in zip(g.regions, plan.regions[n], strict=True):
                yield from _kernels(region, of_region)
        else:
            yield g, plan.workspaces.get(n, ())
    for versions in fused.versions.values():
        yield from [(v.group, ()) for v in versions]


def _declaration(group: Group, name: str, module: str, workspaces: Sequence[Value]) -> Function:
    """Returns the declaration of a group's kernel: it takes inputs, outputs, workspaces, then sizes."""
    named = (("p", group.inputs), ("t", group.outputs), ("work", workspaces))
    buffers = [Buffer(f"{word}{n}", (elements_of(v),), v.dtype) for word, values in named for n, v in enumerate(values)]
    return Function(name, (*buffers, *group.sizes), NOTHING, (External(module),))
