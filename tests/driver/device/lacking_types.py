"""Cases of ONNX's own suite that need types which a device lacks: those of inputs, outputs, constants, or named by an attribute.

python -m tests.driver.device.lacking_types NAMES --target webgpu      # NAMES: a file with a name in each line

What a share of the suite is taken of is told by the models themselves, not by what was refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto
from onnx.backend.test.loader import load_model_tests

from weft.targets import Target, parse_target

NAMING = ("to", "dtype", "output_dtype", "softmax_precision", "stash_type")
"""Attributes that name a type."""

WIDE = (TensorProto.DOUBLE, TensorProto.COMPLEX128)


def _of_type(t: TypeProto) -> Iterator[int]:
    if t.HasField("tensor_type"):
        yield t.tensor_type.elem_type
    elif t.HasField("sequence_type"):
        yield from _of_type(t.sequence_type.elem_type)
    elif t.HasField("optional_type"):
        yield from _of_type(t.optional_type.elem_type)


def _of_attribute(a: AttributeProto) -> Iterator[int]:
    if a.name in NAMING and a.type == AttributeProto.INT:
        yield a.i
    if a.type in (AttributeProto.STRINGS, AttributeProto.STRING) and a.name in ("value_string", "value_strings"):
        yield TensorProto.STRING
    for tensor in (a.t, *a.tensors):
        yield tensor.data_type
    for graph in (a.g, *a.graphs):
        yield from types_of(graph)


def _of_nodes(nodes: Sequence[NodeProto]) -> Iterator[int]:
    for node in nodes:
        for a in node.attribute:
            yield from _of_attribute(a)


def interface_types(graph: GraphProto) -> Iterator[int]:
    """Yields the element types of a graph's inputs and outputs."""
    for value in (*graph.input, *graph.output):
        yield from _of_type(value.type)


def types_of(graph: GraphProto) -> Iterator[int]:
    """Yields the element types that a graph names: of its inputs, outputs and constants, and in attributes."""
    yield from interface_types(graph)
    yield from [t.data_type for t in graph.initializer]
    yield from _of_nodes(graph.node)


def model_types(model: ModelProto) -> set[int]:
    """Returns the element types that a model names, in its functions, too."""
    return {*types_of(model.graph), *[t for f in model.functions for t in _of_nodes(f.node)]}


def lacking(types: set[int], target: Target) -> set[int]:
    """Returns those of *types* that a device lacks: no device has strings."""
    missing = {TensorProto.STRING, *(WIDE if "f64" in target.isa.missing_types else ())}
    return types & missing


def suite(names: set[str]) -> Iterator[tuple[str, ModelProto]]:
    """Yields the cases of such names that come with the package; the networks beside them have no type but f32."""
    for kind in ("node", "simple", "pytorch-converted", "pytorch-operator"):
        for case in load_model_tests(kind=kind):
            if case.name in names:
                yield case.name, case.model or onnx.load(Path(str(case.model_dir)) / "model.onnx")


def main() -> None:
    """Prints the names of the cases, and how many there are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", type=Path)
    parser.add_argument("--target", default="webgpu")
    given = parser.parse_args()
    names, target = set(given.names.read_text().split()), parse_target(given.target)
    inside = at_interface = 0
    for name, model in suite(names):
        if found := lacking(model_types(model), target):
            inside += 1
            at_interface += bool(lacking(set(interface_types(model.graph)), target))
            print(name, *sorted(TensorProto.DataType.Name(t) for t in found))
    print(f"{inside} of {len(names)} need what {target.name} lacks, {at_interface} for inputs or outputs")


if __name__ == "__main__":
    main()
