"""The package of a compiled model: its code, linked, its constants, and the signature of a call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from weft.codegen import Code, Image, compile_program, link
from weft.driver.device.device_package import device_package
from weft.driver.host.host_memory import Constants
from weft.driver.host.host_operators import needed_features
from weft.driver.kernel import Kernel
from weft.driver.runnable import with_image
from weft.driver.states import state_specs
from weft.graph import FusedGraph, Value, size_text
from weft.loop import Program, definitions
from weft.lower import expand_copies
from weft.native import _rt
from weft.runtime.lazy_constants import LazyConstants
from weft.runtime.package import Package, TensorSpec
from weft.targets import Target


def make_package(
    fused: FusedGraph,
    weights: _rt.Block | LazyConstants,
    constants: Constants,
    host: Program,
    kernels: Mapping[str, Kernel],
    target: Target,
) -> Package:
    """Returns all that the runtime needs of a model: its *host* program, linked with its *kernels*, or bytes that launch them.

    *weights* has all constants, each where *constants* says.
    """
    graph = fused.graph
    made = Package(
        image=b"",
        plan=0,
        main=0,
        constants=weights,
        inputs=_specs(zip([v.name for v in graph.inputs], graph.inputs, strict=True), fused),
        outputs=_specs(zip(graph.output_names, graph.outputs, strict=True), fused),
        states=state_specs(fused, constants),
        target=target.title,
        machine=target.isa.machine,
        features=needed_features(graph, target),
    )
    if target.kind == "grid":
        return device_package(made, host, kernels, target)
    code = _linked(host, kernels, target)
    made = replace(made, asserts=code.messages)
    return with_image(made, code) if isinstance(code, Image) else replace(made, source=code.text)


def _linked(host: Program, kernels: Mapping[str, Kernel], target: Target) -> Code:
    """Returns the code of a whole model: its host program and the kernels that it calls."""
    entry = compile_program(definitions(expand_copies(host)), target)
    return link([entry, *[k.module for k in kernels.values()]], target)


def _specs(values: Iterable[tuple[str, Value]], fused: FusedGraph) -> tuple[TensorSpec, ...]:
    dimensions = fused.graph.dimensions.values()
    named = {d.name: d.sizes for d in dimensions}

    def spec(name: str, v: Value) -> TensorSpec:
        sizes = tuple([int(t) if (t := size_text(s, dimensions)).isdigit() else t for s in v.shape])
        ranges = {str(s): named[str(s)] for s in sizes if s in named}
        return TensorSpec(name, v.dtype, sizes, late=bool(fused.stage(*v.shape)), ranges=ranges)

    return tuple([spec(name, v) for name, v in values])
