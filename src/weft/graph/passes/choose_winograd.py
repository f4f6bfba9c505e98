"""Chooses, for each convolution in channel blocks, between computing it directly and by Winograd's method.

    y = conv2d_blocked(x, pack_conv_weight(w), b)     becomes     y = conv2d_winograd(x, pack_winograd_weight(w), b)

One with strides becomes one at stride 1 over the phases of its input, which are channels then.

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

TAPS = (2, 3, 4)
"""Sizes of windows at stride 1 that the method is for; tiles of one tap save nothing, more taps cost accuracy."""


@dataclass(frozen=True)
class Layer:
    """A convolution by its sizes: its outputs, channels and taps at stride 1, and its strides.

    *inputs* are the channels at stride 1, the phases included, in blocks of *block*; *multiplications* are those that a direct
    computation takes for each output.
    """

    height: int
    width: int
    inputs: int
    outputs: int
    taps: int
    multiplications: int
    strides: tuple[int, int]
    block: int

    @property
    def phases(self) -> int:
        """How many phases the input has."""
        return self.strides[0] * self.strides[1]


def choose_winograd(graph: Graph, target: Target) -> Graph:
    """Returns *graph* with Winograd's method where it is cheaper and accurate enough."""
    held = sum(v.nbytes for v in {v for n in graph.nodes for v in n.inputs if isinstance(v, Constant)})

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        found = _layer(node)
        if found is None or inputs[0] is None:
            return None
        layer, w = found
        tile = best_tile(layer, target, held - w.nbytes)
        if tile is None or sampled_error(phase_weight(w.array, layer.strides), tile) > LARGEST_ERROR:
            return None
        x, weight, pads = _at_stride_one(new, node, layer, inputs[0], w)
        lanes = target.lanes(32)
        panel = min(4 * lanes, _rounded(layer.outputs, lanes))
        u = new.add("pack_winograd_weight", [weight], tile=tile, block=panel, name=f"{w.name}_winograd")
        bias = inputs[2] if len(inputs) > 2 else None
        made = new.add(
            "conv2d_winograd", [x, u, bias], source=node.source, name=node.output.name,
            tile=tile, kernel=layer.taps, channels=layer.outputs, block=layer.block, pads=pads,
        )  # fmt: skip
        return [made]

    return rewrite_graph(graph, rule)


def _at_stride_one(new: Graph, node: Node, layer: Layer, x: Value, w: Constant) -> tuple[Value, Value, tuple[int, ...]]:
    """Returns the input, the weight and the pads of a convolution at stride 1 that computes the same."""
    if layer.phases == 1:
        return x, w, node.attribute("pads")
    strides = layer.strides
    split = new.add(
        "split_phases", [x], source=node.source, kernel=w.extents[2:], strides=strides, pads=node.attribute("pads"),
        block=layer.block,
    )  # fmt: skip
    weight = new.add("split_weight_phases", [w], name=f"{w.name}_phases", strides=strides)
    return split, weight, (0, 0, 0, 0)


def _layer(node: Node) -> tuple[Layer, Constant] | None:
    """Returns a convolution that the method applies to, and its weight as the model has it."""
    if node.op != "conv2d_blocked" or node.attribute("group") != 1 or node.output.dtype is not f32:
        return None
    packed = node.inputs[1].producer if node.inputs[1] is not None else None
    w = packed.inputs[0] if packed is not None and packed.op == "pack_conv_weight" else None
    x, shape = node.inputs[0], node.output.static_shape
    if not isinstance(w, Constant) or x is None or shape is None or x.static_shape is None:
        return None
    outputs, inputs, *kernel = w.extents
    strides, block = node.attribute("strides"), shape[4]
    phases = strides[0] * strides[1]
    taps = {-(-k // s) for k, s in zip(kernel, strides, strict=True)}
    if len(taps) > 1 or not taps <= set(TAPS) or set(node.attribute("dilations")) != {1}:
        return None
    if block != x.static_shape[4] or outputs % block or inputs != x.static_shape[1] * block:
        return None
    multiplications = inputs * kernel[0] * kernel[1]
    height, width = shape[0] * shape[2], shape[3]
    return Layer(height, width, inputs * phases, outputs, taps.pop(), multiplications, strides, block), w


def best_tile(layer: Layer, target: Target, others: int = 0) -> int | None:
    """Returns the tile size that is cheapest, or None where a direct convolution is; *others* are the bytes of other weights."""
    rate = target.lanes(32) * max(1, target.fma_per_cycle)
    weights = layer.outputs * layer.multiplications
    direct = max(layer.height * layer.width * weights / rate, streaming_cycles(4 * weights, target, others))
    costs = {m: winograd_cycles(layer, m, target, others) for m in TILES}
    cheapest = min(costs, key=costs.__getitem__)
    return cheapest if costs[cheapest] < 0.9 * direct else None


def winograd_cycles(layer: Layer, m: int, target: Target, others: int = 0) -> float:
    """Returns the estimated cycles of a layer with tiles of *m* x *m* outputs on one core."""
    lanes = target.lanes(32)
    n = m + layer.taps - 1
    tiles = -(-layer.height // m) * -(-layer.width // m)
    products = n * n * tiles * layer.inputs * layer.outputs / (lanes * max(1, target.fma_per_cycle))
    streaming = streaming_cycles(4 * n * n * layer.inputs * layer.outputs, target, others)
    vectors = tiles * (n * n + n * m) * (layer.inputs + layer.outputs) / lanes
    split = layer.height * layer.width * layer.inputs / lanes if layer.phases > 1 else 0.0
    moved = 4 * n * n * tiles * (layer.inputs + layer.outputs)
    spilled = 2 * moved / target.l3_speed if moved > target.l2 else 0.0
    return max(products, streaming) + (vectors + split) * TRANSFORM_CYCLES + spilled


def streaming_cycles(weights: int, target: Target, others: int = 0) -> float:
    """Returns the cycles that it takes to read *weights* bytes, from where they are found when they are used again.

    The *others* are read in between, so that the last cache has to hold them too, with room for all that is not weights.
    """
    speed = target.l3_speed if weights + others < target.l3 / 2 else target.memory_speed
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


def phase_weight(w: Array, strides: tuple[int, int]) -> Array:
    """Returns the weight [OC, sh * sw * IC, r, r] of the same convolution at stride 1, as `split_weight_phases` makes it."""
    sh, sw = strides
    rows, columns = (-(-k // s) for k, s in zip(w.shape[2:], strides, strict=True))
    wide = np.zeros((*w.shape[:2], rows * sh, columns * sw), w.dtype)
    wide[:, :, : w.shape[2], : w.shape[3]] = w
    parts = wide.reshape(*w.shape[:2], rows, sh, columns, sw).transpose(0, 3, 5, 1, 2, 4)
    return parts.reshape(w.shape[0], sh * sw * w.shape[1], rows, columns)


def _rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit
