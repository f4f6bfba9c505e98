"""The nodes that a convolution by Winograd's method consists of."""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import Layer, Winograd
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value


def weight_phases(new: Graph, weight: Value, name: str, layer: Layer) -> Value:
    """Returns the *weight* of a layer, called *name*, cut into the phases of its strides: as it is at stride 1.

    That of volumes, [OC, IC, KD, KH, KW], becomes one of images whose channels are those of each tap along frames.
    """
    window = layer.window
    if window is not None:
        outputs, channels, _, *kernel = weight.shape
        frames = new.add("transpose", [weight], perm=(0, 2, 1, 3, 4), name=f"{name}_frames")
        apart = new.add("reshape", [frames], shape=(outputs * window.taps, channels, *kernel))
        phases = _in_phases(new, apart, name, layer)
        of_taps = outputs, window.taps * layer.inputs, *phases.shape[2:]
        return new.add("reshape", [phases], shape=of_taps, name=f"{name}_taps")
    return _in_phases(new, weight, name, layer)


def _in_phases(new: Graph, weight: Value, name: str, layer: Layer) -> Value:
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
        strides=node.attribute("strides"),
        pads=node.attribute("pads"),
        patch=plan.patch,
        mixed=plan.mixed,
    )
