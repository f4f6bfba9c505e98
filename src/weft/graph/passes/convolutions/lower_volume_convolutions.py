"""Makes convolutions over images of those over volumes: the taps along the first spatial dimension become channels.

    y = conv2d(x, w, b)     becomes     v = concat(x[:, 0:D:s], x[:, 1:D+1:s], ...)     with x as [N, D, C, H, W]
                                        y = conv2d(v, w', b)                            images [N*D', KD*C, H, W]

A frame is copied once for each tap that reads it, which is little beside the KH * KW * OC products with each copied element; the
resulting convolution is optimized as any over images. It is done for low precision, whose products are of images; Winograd's
method takes volumes as they are (`choose_winograd`).
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.graph.core.evaluator import Evaluator
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.passes.fold_constants import rewrite_and_fold
from weft.graph.rewriting.rewriter import Inputs

FRAMES_FIRST = (0, 2, 1, 3, 4)
"""The order of dimensions that swaps channels and the first spatial one."""


def lower_volume_convolutions(graph: Graph, evaluator: Evaluator) -> Graph:
    """Returns *graph* with convolutions over images for those over volumes in one group; *evaluator* reorders their weights."""

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        return [_by_images(new, node, inputs)] if _is_volume(node) else None

    return rewrite_and_fold(graph, evaluator, rule)


def _is_volume(node: Node) -> bool:
    if node.op != "conv2d" or node.output.rank != len("NCDHW") or node.attribute("group") != 1:
        return False
    return isinstance(node.inputs[1], Constant)


def _by_images(new: Graph, node: Node, inputs: Inputs) -> Value:
    """Returns the convolution *node*, computed by one over all frames of all volumes."""
    x, w, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
    assert x is not None  # a convolution reads something
    assert isinstance(w, Constant)  # _is_volume asks for it
    outputs, channels, taps, *kernel = w.extents
    (stride, *strides), (dilation, *dilations) = node.attribute("strides"), node.attribute("dilations")
    before, *near, after, bottom, right = node.attribute("pads")
    frames = new.add("transpose", [x], perm=FRAMES_FIRST, source=node.source)
    if before or after:
        frames = new.add("pad", [frames], pads=(0, before, 0, 0, 0, 0, after, 0, 0, 0), source=node.source)
    count = node.output.shape[2]
    copies = [
        new.add(
            "slice",
            [frames],
            axes=(1,),
            starts=(k * dilation,),
            ends=(k * dilation + (count - 1) * stride + 1,),
            steps=(stride,),
            source=node.source,
        )
        for k in range(taps)
    ]
    stacked = copies[0] if taps == 1 else new.add("concat", copies, axis=2, source=node.source)
    images = new.add("reshape", [stacked], shape=(x.shape[0] * count, taps * channels, *x.shape[3:]))
    weight = new.add("transpose", [w], perm=FRAMES_FIRST)
    weight = new.add("reshape", [weight], shape=(outputs, taps * channels, *kernel), name=f"{w.name}_images")
    y = new.add(
        "conv2d",
        [images, weight, bias],
        source=node.source,
        strides=tuple(strides),
        dilations=tuple(dilations),
        pads=(*near, bottom, right),
    )
    y = new.add("reshape", [y], shape=(x.shape[0], count, outputs, *y.shape[2:]), source=node.source)
    return new.add("transpose", [y], perm=FRAMES_FIRST, source=node.source, name=node.output.name)
