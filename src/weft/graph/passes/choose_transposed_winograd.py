"""Chooses, for each transposed convolution in channel blocks, between computing its phases directly and by Winograd's method.

    y = conv_transpose2d_blocked(x, pack_conv_transpose_weight(w), b)
        becomes     y = conv_transpose2d_winograd(x, pack_transposed_winograd_weight(w), b)

By a cost like that of `winograd_plans`, and by the limit to the error that `winograd_error` has for convolutions: a phase is
one, of KH/sh x KW/sw taps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from weft.graph.graph import Array, Constant, Graph, Node, Value
from weft.graph.rewriting import Inputs, rewrite_graph
from weft.graph.winograd_error import LARGEST_ERROR, SAMPLES, sampled_error
from weft.graph.winograd_plans import panel_of, streaming_cycles
from weft.support.dtypes import f32
from weft.targets.target import Target

TILES = (2, 3, 4)
"""Sizes of output tiles to choose from."""

LARGEST_TAPS = 3
"""More taps in a tile of four would need more points than keep the error small."""

TRANSFORM_CYCLES = 3.0
"""Cycles for each vector that a transform writes: its arithmetic, loads and stores."""

GAIN = 0.9
"""What the method may cost of a direct computation, to be worth the larger weights."""


@dataclass(frozen=True)
class Layer:
    """A transposed convolution by its sizes: outputs and taps of a phase, and the places where windows of phases begin."""

    images: int
    rows: int
    columns: int
    inputs: int
    outputs: int
    taps: int
    phases: int
    beginnings: int


def choose_transposed_winograd(graph: Graph, target: Target) -> Graph:
    """Returns *graph* with Winograd's method where it is cheaper and accurate enough."""
    held = sum(v.nbytes for v in {v for n in graph.nodes for v in n.inputs if isinstance(v, Constant)})

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        found = _layer(node)
        if found is None:
            return None
        layer, w = found
        strides, taps = node.attribute("strides"), layer.taps
        tile = best_tile(layer, target, held - w.nbytes)
        if tile is None or phase_error(w.array, strides, taps, tile) > LARGEST_ERROR:
            return None
        block = panel_of(layer.outputs, target)
        u = new.add(
            "pack_transposed_winograd_weight", [w], name=f"{w.name}_winograd",
            tile=tile, taps=taps, block=block, strides=strides,
        )  # fmt: skip
        attributes = {a: node.attribute(a) for a in ("strides", "pads", "output_padding")}
        made = new.add(
            "conv_transpose2d_winograd", [inputs[0], u, inputs[2] if len(inputs) > 2 else None],
            source=node.source, name=node.output.name,
            tile=tile, kernel=w.extents[2:], channels=layer.outputs, **attributes,
        )  # fmt: skip
        return [made]

    return rewrite_graph(graph, rule)


def _layer(node: Node) -> tuple[Layer, Constant] | None:
    """Returns a transposed convolution that the method applies to, and its weight as the model has it."""
    if node.op != "conv_transpose2d_blocked" or node.output.dtype is not f32:
        return None
    packed = node.inputs[1].producer if node.inputs[1] is not None else None
    w = packed.inputs[0] if packed is not None else None
    x, shape = node.inputs[0], node.output.sample_shape
    if not isinstance(w, Constant) or x is None or shape is None or x.sample_shape is None:
        return None
    (inputs, outputs, *kernel), strides, pads = w.extents, node.attribute("strides"), node.attribute("pads")
    taps = {-(-k // s) for k, s in zip(kernel, strides, strict=True)}
    lanes = shape[4]
    if x.sample_shape[4] != lanes or outputs % lanes or inputs != x.sample_shape[1] * lanes:
        return None
    if len(taps) != 1 or not 2 <= max(taps) <= LARGEST_TAPS:
        return None
    rows, columns = (-(-shape[2 + d] // s) for d, s in enumerate(strides))
    beginnings = prod((s - 1 + p) // s - p // s + 1 for s, p in zip(strides, pads, strict=False))
    return Layer(shape[0], rows, columns, inputs, outputs, max(taps), prod(strides), beginnings), w


def best_tile(layer: Layer, target: Target, others: int = 0) -> int | None:
    """Returns the tile size that is cheapest, or None where computing directly is; *others* are the bytes of other weights."""
    rate = target.lanes(32) * max(1, target.fma_per_cycle)
    weights = layer.phases * layer.taps**2 * layer.inputs * layer.outputs
    products = layer.images * layer.rows * layer.columns * weights / rate
    costs = {m: winograd_cycles(layer, m, target, others) for m in TILES}
    cheapest = min(costs, key=costs.__getitem__)
    direct = max(products, streaming_cycles(4 * weights, target, others))
    return cheapest if costs[cheapest] < GAIN * direct else None


def winograd_cycles(layer: Layer, m: int, target: Target, others: int = 0) -> float:
    """Returns the estimated cycles of a layer with tiles of *m* x *m* outputs of a phase on one core.

    What lies between the transforms and the products is written and read again, if need be from beyond the second-level cache.
    """
    lanes, n = target.lanes(32), m + layer.taps - 1
    tiles = layer.images * -(-layer.rows // m) * -(-layer.columns // m)
    weights = layer.phases * n * n * layer.inputs * layer.outputs
    products = tiles * weights / (lanes * max(1, target.fma_per_cycle))
    read = layer.beginnings * 2 * n * n * layer.inputs
    written = layer.phases * (n + m) * m * layer.outputs
    streaming = streaming_cycles(4 * weights, target, others)
    between = 4 * tiles * n * n * (layer.beginnings * layer.inputs + layer.phases * layer.outputs)
    moving = 2 * streaming_cycles(between, target) if between > target.l2 else 0.0
    return max(products, streaming) + tiles * (read + written) / lanes * TRANSFORM_CYCLES + moving


def phase_error(w: Array, strides: Sequence[int], taps: int, m: int) -> float:
    """Returns the largest error of some tiles of any phase, as `sampled_error` does for a convolution; w [IC, OC, KH, KW]."""
    some = w[:, :: max(1, w.shape[1] // SAMPLES)].transpose(1, 0, 2, 3)
    padded = np.pad(some, [(0, 0), (0, 0), *[(0, taps * s - k) for s, k in zip(strides, w.shape[2:], strict=True)]])
    sh, sw = strides
    kernels = [padded[:, :, py::sh, px::sw][:, :, ::-1, ::-1] for py in range(sh) for px in range(sw)]
    return max(sampled_error(k, m) for k in kernels)
