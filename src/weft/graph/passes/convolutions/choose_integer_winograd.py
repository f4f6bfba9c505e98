"""Chooses, for each convolution of bytes on rows of 16 bits, between dot products and Winograd's method in whole numbers.

    y = conv2d_grouped(x, pack_conv_weight_groups(w))   becomes   y = conv2d_winograd(x, pack_winograd_weight_groups(w))

Rows hold bytes less their zero point (`choose_dot_products`), and leave room for what the method makes of them. With constant
weights it is known whether all numbers fit (`winograd_range`), and then the method is exact: it is a choice of cost alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from weft.cost import DIRECT, Candidate, Layer, Planner, Winograd, subject_of, terms_of_words, winograd_panel
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.layout.winograd_error import phase_weight
from weft.graph.layout.winograd_nodes import by_winograd, weight_phases
from weft.graph.layout.winograd_plans import Channels, layer_of, tile_sizes, winograd_plans
from weft.graph.layout.winograd_range import is_in_range
from weft.graph.passes.quantized.quantized_patterns import operand_of
from weft.graph.rewriting.call_patterns import is_known
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.support.dtypes import i8, i16, i32
from weft.targets import Target
from weft.targets.instructions import group_of


def choose_integer_winograd(graph: Graph, planner: Planner) -> Graph:
    """Returns *graph* with Winograd's method in whole numbers where it is cheaper, and all of them fit."""
    held = sum(v.nbytes for v in {v for n in graph.nodes for v in n.inputs if isinstance(v, Constant)})

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        found = _layer(node)
        if found is None or inputs[0] is None:
            return None
        layer, w = found
        at_stride_one = phase_weight(w.array, layer.strides)
        fits = cache(lambda tile, size: is_in_range(at_stride_one, tile, size))

        def is_exact(plan: Winograd) -> bool:
            return plan.is_direct or all(fits(plan.tile, n) for n in tile_sizes(plan, layer))

        plan = planner.decide(
            subject_of(node.output.name), Winograd, lambda m: _plans(layer, m, held - w.nbytes), is_exact
        )
        if plan.is_direct:
            return None
        missing = layer.inputs // layer.phases - w.extents[1]
        weight: Value = w if missing == 0 else new.add("pad", [w], pads=(0, 0, 0, 0, 0, missing, 0, 0))
        u = new.add(
            "pack_winograd_weight_groups",
            [weight_phases(new, weight, w.name, layer)],
            name=f"{w.name}_winograd",
            tile=plan.tile,
            block=winograd_panel(layer.outputs, planner.lanes(i32.bits)),
            group=group_of(i16),
        )
        return [by_winograd(new, node, [inputs[0], u], plan, layer, w.extents[2:])]

    return rewrite_graph(graph, rule)


def _plans(layer: Layer, target: Target, others: int) -> list[Candidate[Winograd]]:
    """Returns the plans of the method, and dot products, with the terms that the machine has for words."""
    terms = terms_of_words(target)
    return [Candidate(DIRECT, 0.0)] if terms is None else winograd_plans(replace(layer, terms=terms), target, others)


def _layer(node: Node) -> tuple[Layer, Constant] | None:
    """Returns a convolution that the method applies to, and its weight as the model has it."""
    x, packed, zero = (*node.inputs, None, None)[:3] if node.op == "conv2d_grouped" else (None, None, None)
    w = operand_of("pack_conv_weight_groups", packed)
    if x is None or x.dtype is not i16 or zero is not None or not is_known(w) or w.dtype is not i8:
        return None
    read, block = (int(getattr(v.shape[-1], "value", 0)) for v in (x, node.output))
    outputs, inputs, *window = w.extents
    if block % read or len(window) != len(("height", "width")):
        return None
    layer = layer_of(node, Channels((outputs, -(-inputs // read) * read, *window), read, block, any_part=True))
    return None if layer is None else (layer, w)
