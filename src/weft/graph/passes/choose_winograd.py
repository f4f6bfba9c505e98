"""Chooses, for each 3x3 convolution in channel blocks, between computing it directly and by Winograd's method.

    y = conv2d_blocked(x, pack_conv_weight(w), b)     becomes     y = conv2d_winograd(x, pack_winograd_weight(w), b)

The choice is by cost: arithmetic of the products (with tiles that overhang the edge), the transforms, and the transformed
weights, which are larger and may have to come from memory. A layer is left alone where the method would cost accuracy: its error,
sampled with the layer's own weights against float64, must stay within `LARGEST_ERROR` of the output's maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.graph.graph import Array, Constant, Graph, Node, Value
from weft.graph.rewriting import Inputs, rewrite_graph
from weft.ops.winograd import matrices
from weft.support.dtypes import f32
from weft.targets.target import Target

TILES = (2, 4)
"""Sizes of output tiles to choose from."""

LARGEST_ERROR = 2e-5
SAMPLES = 16
"""Tiles and output channels that the error is sampled on."""

TRANSFORM_CYCLES = 3.0
"""Cycles for each vector that a transform writes: its arithmetic, loads and stores."""

LAST_CACHE_BYTES_PER_CYCLE = 24.0
MEMORY_BYTES_PER_CYCLE = 8.0


@dataclass(frozen=True)
class Layer:
    """A convolution at stride 1, by its sizes."""

    height: int
    width: int
    inputs: int
    outputs: int
    kernel: int


def choose_winograd(graph: Graph, target: Target) -> Graph:
    """Returns *graph* with Winograd's method where it is cheaper and accurate enough."""

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        found = _layer(node)
        if found is None:
            return None
        layer, w = found
        tile = best_tile(layer, target)
        if tile is None or sampled_error(w.array, tile) > LARGEST_ERROR:
            return None
        block = min(4 * target.lanes(32), _rounded(layer.outputs, target.lanes(32)))
        u = new.add("pack_winograd_weight", [w], tile=tile, block=block, name=f"{w.name}_winograd")
        bias = inputs[2] if len(inputs) > 2 else None
        made = new.add(
            "conv2d_winograd", [inputs[0], u, bias], source=node.source, name=node.output.name,
            tile=tile, kernel=layer.kernel, channels=layer.outputs, pads=node.attribute("pads"),
        )  # fmt: skip
        return [made]

    return rewrite_graph(graph, rule)


def _layer(node: Node) -> tuple[Layer, Constant] | None:
    """Returns a convolution that the method applies to, and its weight as the model has it."""
    if node.op != "conv2d_blocked" or node.attribute("group") != 1 or node.output.dtype is not f32:
        return None
    if set(node.attribute("strides")) != {1} or set(node.attribute("dilations")) != {1}:
        return None
    packed = node.inputs[1].producer if node.inputs[1] is not None else None
    w = packed.inputs[0] if packed is not None and packed.op == "pack_conv_weight" else None
    x, shape = node.inputs[0], node.output.static_shape
    if not isinstance(w, Constant) or x is None or shape is None or x.static_shape is None:
        return None
    outputs, inputs, *kernel = w.extents
    lanes = shape[4]
    if kernel != [3, 3] or x.static_shape[4] != lanes or outputs % lanes or inputs != x.static_shape[1] * lanes:
        return None
    return Layer(shape[0] * shape[2], shape[3], inputs, outputs, 3), w


def best_tile(layer: Layer, target: Target) -> int | None:
    """Returns the tile size that is cheapest, or None where a direct convolution is."""
    rate = target.lanes(32) * max(1, target.fma_per_cycle)
    direct = layer.height * layer.width * layer.inputs * layer.outputs * layer.kernel**2 / rate
    costs = {m: winograd_cycles(layer, m, target) for m in TILES}
    cheapest = min(costs, key=costs.__getitem__)
    return cheapest if costs[cheapest] < 0.9 * direct else None


def winograd_cycles(layer: Layer, m: int, target: Target) -> float:
    """Returns the estimated cycles of a layer with tiles of *m* x *m* outputs on one core."""
    lanes = target.lanes(32)
    n = m + layer.kernel - 1
    tiles = -(-layer.height // m) * -(-layer.width // m)
    products = n * n * tiles * layer.inputs * layer.outputs / (lanes * max(1, target.fma_per_cycle))
    streaming = streaming_cycles(4 * n * n * layer.inputs * layer.outputs, target)
    vectors = tiles * (n * n + n * m) * (layer.inputs + layer.outputs) / lanes
    return max(products, streaming) + vectors * TRANSFORM_CYCLES


def streaming_cycles(weights: int, target: Target, others: int = 0) -> float:
    """Returns the cycles that it takes to read *weights* bytes, from where they are found when they are used again.

    The *others* are read in between, so that the last cache has to hold them too, with room for all that is not weights.
    """
    speed = LAST_CACHE_BYTES_PER_CYCLE if weights + others < target.l3 / 2 else MEMORY_BYTES_PER_CYCLE
    return weights / speed if weights > target.l2 / 2 else 0.0


def sampled_error(w: Array, m: int) -> float:
    """Returns the largest error of some tiles computed in float32 with weight *w*, relative to the largest output.

    Weights [OC, IC, r, r] against normal inputs; the reference is a direct convolution in float64. All products are small
    ones in batches: for large ones BLAS starts threads, which on a busy machine takes far longer than the products.
    """
    r = w.shape[2]
    b, g, a = (np.array(x) for x in matrices(m, r))
    b32, a32 = b.astype(np.float32), a.astype(np.float32)
    chosen = w[:: max(1, w.shape[0] // SAMPLES)].astype(np.float64)
    x = np.random.default_rng(0).standard_normal((SAMPLES, w.shape[1], m + r - 1, m + r - 1))
    wide = (g @ chosen @ g.T).astype(np.float32)  # OC, IC, p, q
    v = b32 @ x.astype(np.float32) @ b32.T  # tile, IC, p, q
    products = v.transpose(2, 3, 0, 1) @ wide.transpose(2, 3, 1, 0)  # p, q, tile, OC
    got = a32 @ products.transpose(2, 3, 0, 1) @ a32.T  # tile, OC, i, j
    taps = [(i, j) for i in range(r) for j in range(r)]
    parts = [x[:, :, i : i + m, j : j + m].transpose(0, 2, 3, 1) @ chosen[:, :, i, j].T for i, j in taps]
    wanted = np.sum(parts, axis=0).transpose(0, 3, 1, 2)  # tile, OC, i, j
    return float(np.abs(got - wanted).max() / max(float(np.abs(wanted).max()), 1e-30))


def _rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit
