"""Chooses, for each convolution in channel blocks, between computing it directly and by Winograd's method.

    y = conv2d_blocked(x, pack_conv_weight(w), b)     becomes     y = conv2d_winograd(x, pack_winograd_weight(w), b)

A strided convolution is one at stride 1 over the phases of its input, which become channels. Over volumes, the method is applied
to frames, and the taps along the first dimension are further terms of the products. All stages run patch by patch where
the values between them would not stay in the second-level cache otherwise.

The choice is by `cost.winograd`, among the plans of `winograd_plans`. A layer is left alone where the method would cost
accuracy: its error, sampled with the layer's own weights (`winograd_error`), must stay within `LARGEST_ERROR` of the output's
maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated

from weft.cost import Layer, Planner, Winograd, subject_of, winograd_panel
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.layout.winograd_error import (
    LARGEST_ERROR,
    normal_inputs,
    phase_weight,
    sampled_error,
    sampled_outputs,
    taps_as_channels,
    typical_elements,
)
from weft.graph.layout.winograd_nodes import by_winograd, weight_phases
from weft.graph.layout.winograd_plans import Channels, layer_of, tile_sizes, winograd_plans
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.support.dtypes import f32


def choose_winograd(
    graph: Graph,
    planner: Planner,
    *,
    largest_error: Annotated[
        float, "error that a layer may have by the method, relative to its largest output"
    ] = LARGEST_ERROR,
) -> Graph:
    """Returns *graph* with Winograd's method where it is cheaper and accurate enough."""
    draw = cache(normal_inputs)  # layers of one shape share them
    held = sum(v.nbytes for v in {v for n in graph.nodes for v in n.inputs if isinstance(v, Constant)})

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        found = _layer(node)
        if found is None or inputs[0] is None:
            return None
        layer, w, kernel = found
        at_stride_one = cache(
            lambda: phase_weight(taps_as_channels(sampled_outputs(typical_elements(w))), layer.strides)
        )
        error = cache(lambda tile, size: sampled_error(at_stride_one(), tile, size, draw))

        def is_accurate(plan: Winograd) -> bool:
            return plan.is_direct or all(error(plan.tile, n) <= largest_error for n in tile_sizes(plan, layer))

        others = held - (w.nbytes if isinstance(w, Constant) else 0)
        plan = planner.decide(
            subject_of(node.output.name), Winograd, lambda m: winograd_plans(layer, m, others), is_accurate
        )
        if plan.is_direct:
            return None
        weight = weight_phases(new, w, w.name, layer)
        panel = winograd_panel(layer.outputs, planner.lanes(32))
        u = new.add("pack_winograd_weight", [weight], tile=plan.tile, block=panel, name=f"{w.name}_winograd")
        bias = inputs[2] if len(inputs) > 2 else None
        return [by_winograd(new, node, [inputs[0], u, bias], plan, layer, kernel)]

    return rewrite_graph(graph, rule)


def _layer(node: Node) -> tuple[Layer, Value, tuple[int, ...]] | None:
    """Returns a convolution that the method applies to, its weight as the model has it, and its taps."""
    if node.op != "conv2d_blocked" or node.attribute("group") != 1 or node.output.dtype is not f32:
        return None
    packed = node.inputs[1].producer if node.inputs[1] is not None else None
    w = packed.inputs[0] if packed is not None and packed.op == "pack_conv_weight" else None
    x = node.inputs[0]
    if w is None or w.static_shape is None or x is None:
        return None
    read, block = (int(getattr(v.shape[-1], "value", 0)) for v in (x, node.output))
    layer = layer_of(node, Channels(w.static_shape, read, block, changing=not isinstance(w, Constant)))
    return None if layer is None else (layer, w, w.static_shape[2:])
