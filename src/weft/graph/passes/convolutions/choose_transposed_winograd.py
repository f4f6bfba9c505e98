"""Chooses, for each transposed convolution in channel blocks, between computing its phases directly and by Winograd's method.

    y = conv_transpose2d_blocked(x, pack_conv_transpose_weight(w), b)
        becomes     y = conv_transpose2d_winograd(x, pack_transposed_winograd_weight(w), b)

By `cost.winograd`, and by the limit to the error that `winograd_error` has for convolutions: a phase is one, of KH/sh x KW/sw
taps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import prod
from typing import Annotated

import numpy as np

from weft.cost import Layer, Planner, Winograd, subject_of, winograd_panel
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Array, Constant, Value
from weft.graph.layout.winograd_error import LARGEST_ERROR, SAMPLES, sampled_error, typical_elements
from weft.graph.layout.winograd_plans import winograd_plans
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.support.dtypes import f32

LARGEST_TAPS = 3
"""More taps in a tile of four would need more points than keep the error small."""


def choose_transposed_winograd(
    graph: Graph,
    planner: Planner,
    *,
    largest_error: Annotated[
        float, "error that a layer may have by the method, relative to its largest output"
    ] = LARGEST_ERROR,
) -> Graph:
    """Returns *graph* with Winograd's method where it is cheaper and accurate enough."""
    held = sum(v.nbytes for v in {v for n in graph.nodes for v in n.inputs if isinstance(v, Constant)})

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        found = _layer(node)
        if found is None:
            return None
        layer, w, kernel = found
        strides, taps = node.attribute("strides"), layer.taps
        error = cache(lambda tile: phase_error(typical_elements(w), strides, taps, tile))
        others = held - (w.nbytes if isinstance(w, Constant) else 0)
        plan = planner.decide(
            subject_of(node.output.name),
            Winograd,
            lambda m: winograd_plans(layer, m, others),
            lambda plan: plan.is_direct or error(plan.tile) <= largest_error,
        )
        if plan.is_direct:
            return None
        tile, block = plan.tile, winograd_panel(layer.outputs, planner.lanes(32))
        u = new.add(
            "pack_transposed_winograd_weight",
            [w],
            name=f"{w.name}_winograd",
            tile=tile,
            taps=taps,
            block=block,
            strides=strides,
        )
        attributes = {a: node.attribute(a) for a in ("strides", "pads", "output_padding")}
        made = new.add(
            "conv_transpose2d_winograd",
            [inputs[0], u, inputs[2] if len(inputs) > 2 else None],
            source=node.source,
            name=node.output.name,
            tile=tile,
            kernel=kernel,
            channels=layer.outputs,
            **attributes,
        )
        return [made]

    return rewrite_graph(graph, rule)


def _layer(node: Node) -> tuple[Layer, Value, tuple[int, ...]] | None:
    """Returns a transposed convolution that the method applies to, its weight as the model has it, and its taps."""
    w = _weight(node)
    if w is None or w.static_shape is None:
        return None
    x, shape = node.inputs[0], node.output.sample_shape
    if x is None or shape is None or x.sample_shape is None:
        return None
    (inputs, outputs, *kernel), strides, pads = w.static_shape, node.attribute("strides"), node.attribute("pads")
    taps = {-(-k // s) for k, s in zip(kernel, strides, strict=True)}
    lanes = shape[4]
    if x.sample_shape[4] != lanes or outputs % lanes or inputs != x.sample_shape[1] * lanes:
        return None
    if len(taps) != 1 or not 2 <= max(taps) <= LARGEST_TAPS:
        return None
    rows, columns = (-(-shape[2 + d] // s) for d, s in enumerate(strides))
    beginnings = prod((s - 1 + p) // s - p // s + 1 for s, p in zip(strides, pads, strict=False))
    phases, size = prod(strides), max(taps)
    sizes = shape[0], rows, columns, inputs, outputs, size, phases * size**2 * inputs
    layer = Layer(*sizes, (1, 1), lanes, output_phases=phases, beginnings=beginnings, padded=False)
    return replace(layer, changing=not isinstance(w, Constant)), w, w.static_shape[2:]


def _weight(node: Node) -> Value | None:
    """Returns the weight of a transposed convolution in blocks, in single precision, before it was packed; None for others."""
    if node.op != "conv_transpose2d_blocked" or node.output.dtype is not f32:
        return None
    packed = node.inputs[1].producer if node.inputs[1] is not None else None
    return packed.inputs[0] if packed is not None and packed.op == "pack_conv_transpose_weight" else None


def phase_error(w: Array, strides: Sequence[int], taps: int, m: int) -> float:
    """Returns the largest error of some tiles of any phase, as `sampled_error` does for a convolution; w [IC, OC, KH, KW]."""
    some = w[:, :: max(1, w.shape[1] // SAMPLES)].transpose(1, 0, 2, 3)
    padded = np.pad(some, [(0, 0), (0, 0), *[(0, taps * s - k) for s, k in zip(strides, w.shape[2:], strict=True)]])
    sh, sw = strides
    kernels = [padded[:, :, py::sh, px::sw][:, :, ::-1, ::-1] for py in range(sh) for px in range(sw)]
    return max(sampled_error(k, m) for k in kernels)
