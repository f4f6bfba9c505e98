"""The nodes that a convolution by Winograd's method consists of."""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import Layer, Winograd
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value


def weight_phases(new: Graph, weight: Value, name: str, layer: Layer) -> Value:
    """Returns the *weight* of a layer, called *name*, cut into the phases of its strides: as it is at stride 1."""
    if layer.phases == 1:
        return weight
    return new.add("split_weight_phases", [weight], name=f"{name}_phases", strides=layer.strides)


def by_winograd(
    new: Graph, node: Node, operands: Sequence[Value | None], plan: Winograd, layer: Layer, kernel: Sequence[int]
) -> Value:
    """Returns the convolution *node* by the method: *operands* are its input, transformed weight and bias, if it has one."""
    return new.add(
        "conv2d_winograd",
        operands,
        source=node.source,
        name=node.output.name,
        tile=plan.tile,
        kernel=kernel,
        channels=layer.outputs,
        block=layer.block,
        strides=layer.strides,
        pads=node.attribute("pads"),
        patch=plan.patch,
        mixed=plan.mixed,
    )
