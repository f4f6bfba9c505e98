"""The numbers of dimensions that a model declares of tensors: in its outputs, in those of bodies, and in its `value_info`."""

from __future__ import annotations

from onnx import GraphProto

from weft.frontends.onnx.check import subgraphs


def declared_ranks(graph: GraphProto) -> dict[str, int]:
    """Returns the number of dimensions of each tensor whose shape *graph*, or a graph inside of it, declares, by its name."""
    found: dict[str, int] = {}
    pending = [graph]
    while pending:
        inner = pending.pop()
        for info in (*inner.value_info, *inner.output):
            if info.type.tensor_type.HasField("shape"):
                found[info.name] = len(info.type.tensor_type.shape.dim)
        pending += [g for node in inner.node for g in subgraphs(node)]
    return found
