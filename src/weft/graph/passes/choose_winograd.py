"""Chooses, for each convolution in channel blocks, between computing it directly and by Winograd's method.

    y = conv2d_blocked(x, pack_conv_weight(w), b)     becomes     y = conv2d_winograd(x, pack_winograd_weight(w), b)

One with strides is one at stride 1 over the phases of its input, which are channels then. All stages go patch by patch where
what lies between them would not stay in the second-level cache otherwise.

The choice is by cost: arithmetic of the products (with tiles that overhang the edge), the transforms, and the transformed
weights, which are larger and may have to come from memory. A layer is left alone where the method would cost accuracy: its error,
sampled with the layer's own weights against float64, must stay within `LARGEST_ERROR` of the output's maximum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np

from weft.graph.graph import Array, Constant, Graph, Node, Value
from weft.graph.rewriting import Inputs, rewrite_graph
from weft.ops.winograd import matrices
from weft.support.dtypes import f32
from weft.targets.target import Target

TILES = (2, 3, 4)
"""Sizes of output tiles to choose from; six saves little more for 3 x 3 taps, at ten times the error."""

LARGEST_ERROR = 2e-5
SAMPLES = 16
"""Tiles and output channels that the error is sampled on."""

TRANSFORM_CYCLES = 3.0
"""Cycles for each vector that a transform writes: its arithmetic, loads and stores."""

INPUT_CYCLES, OUTPUT_CYCLES = 7.0, 5.0
"""Cycles for each vector of a factor of the products that its transform makes, and of a product: most go into moving it."""

PADDING_CYCLES = 3.0
"""Cycles for each vector of the padded input."""


PRODUCT_CYCLES = 2.0
"""Cycles for each vector of a product beside its multiply-adds: it is started from zero and stored."""

L2_SHARE = 0.7
"""The part of the second-level cache that what is used together may fill."""

HIDDEN = 0.25
"""The part of reading weights that shows even while they are multiplied."""

GATHER_CYCLES = 1.5
"""Cycles to bring an element to its place in a vector."""

FEWEST_TILES = 12
"""Columns of tiles that are left in a patch where rows are cut."""

GAIN = 0.95
"""What the method may cost of a direct computation, to be worth the larger weights."""

TAPS = (2, 3, 4)
"""Sizes of windows at stride 1 that the method is for; tiles of one tap save nothing, more taps cost accuracy."""


@dataclass(frozen=True)
class Layer:
    """A convolution by its sizes: its outputs, channels and taps at stride 1, and its strides.

    *inputs* are the channels at stride 1, the phases included; *multiplications* are those that a direct computation takes for
    each output; *block* is that of the outputs' channels, and *gathered* tells that the inputs' are not in blocks.
    """

    images: int
    height: int
    width: int
    inputs: int
    outputs: int
    taps: int
    multiplications: int
    strides: tuple[int, int]
    block: int
    gathered: bool = False

    @property
    def phases(self) -> int:
        """How many phases the input has."""
        return self.strides[0] * self.strides[1]


@dataclass(frozen=True)
class Plan:
    """How a layer is computed: tiles of *tile* x *tile* outputs, and a patch of (images, rows, columns) of tiles at a time."""

    tile: int
    patch: tuple[int, int, int]


def choose_winograd(graph: Graph, target: Target) -> Graph:
    """Returns *graph* with Winograd's method where it is cheaper and accurate enough."""
    held = sum(v.nbytes for v in {v for n in graph.nodes for v in n.inputs if isinstance(v, Constant)})

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        found = _layer(node)
        if found is None or inputs[0] is None:
            return None
        layer, w = found
        at_stride_one = cache(lambda m: sampled_error(phase_weight(w.array, layer.strides), m))
        plan = next(
            (p for p in good_plans(layer, target, held - w.nbytes) if at_stride_one(p.tile) <= LARGEST_ERROR), None
        )
        if plan is None:
            return None
        weight = w if layer.phases == 1 else new.add(
            "split_weight_phases", [w], name=f"{w.name}_phases", strides=layer.strides
        )  # fmt: skip
        panel = panel_of(layer.outputs, target)
        u = new.add("pack_winograd_weight", [weight], tile=plan.tile, block=panel, name=f"{w.name}_winograd")
        bias = inputs[2] if len(inputs) > 2 else None
        made = new.add(
            "conv2d_winograd", [inputs[0], u, bias], source=node.source, name=node.output.name,
            tile=plan.tile, kernel=w.extents[2:], channels=layer.outputs, block=layer.block, strides=layer.strides,
            pads=node.attribute("pads"), patch=plan.patch,
        )  # fmt: skip
        return [made]

    return rewrite_graph(graph, rule)


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
    read = x.static_shape[4]
    if read not in (1, block) or outputs % block or inputs != x.static_shape[1] * read:
        return None
    multiplications = inputs * kernel[0] * kernel[1]
    sizes = shape[0], shape[2], shape[3], inputs * phases, outputs, taps.pop(), multiplications
    return Layer(*sizes, strides, block, gathered=read < block), w


def good_plans(layer: Layer, target: Target, others: int = 0) -> list[Plan]:
    """Returns the plans that are cheaper than a direct convolution, cheapest first; *others* are the bytes of other weights."""
    vectors = layer.images * layer.height * layer.width * -(-layer.outputs // target.lanes(32))
    products = vectors * layer.multiplications / max(1, target.fma_per_cycle)
    direct = max(products, streaming_cycles(4 * layer.multiplications * layer.outputs, target, others))
    costs = {plan: winograd_cycles(layer, plan, target, others) for m in TILES for plan in _plans(layer, m)}
    return sorted([p for p, cost in costs.items() if cost < GAIN * direct], key=costs.__getitem__)


def panel_of(outputs: int, target: Target) -> int:
    """Returns how many output channels a panel of transformed weights has: so few that a register tile has many rows.

    Each vector of weights is then used by all these as it arrives, which takes as long as the next one is under way.
    """
    lanes = target.lanes(32)
    return min(2 * lanes, -(-outputs // lanes) * lanes)


def _plans(layer: Layer, m: int) -> list[Plan]:
    """Returns the plans with tiles of *m* x *m* outputs: all at once, some rows of tiles of an image, or a part of a row."""
    rows, columns = -(-layer.height // m), -(-layer.width // m)
    some = {(1, n, columns) for n in _even_parts(rows, rows)}
    parts = {(1, 1, n) for n in _even_parts(columns, columns // FEWEST_TILES)}
    return [Plan(m, p) for p in [(layer.images, rows, columns), *sorted(some | parts, reverse=True)]]


def _even_parts(size: int, most: int) -> Iterator[int]:
    """Yields the different lengths of an equal part of *size*, rounded up, for one to *most* parts.

    These are about twice the square root of *size*, however large that is: lengths that repeat are passed over.
    """
    count = 1
    while count <= most:
        length = -(-size // count)
        yield length
        if length == 1:
            return
        count = -(-size // (length - 1))


def winograd_cycles(layer: Layer, plan: Plan, target: Target, others: int = 0) -> float:
    """Returns the estimated cycles of a layer computed by *plan* on one core.

    What lies between the transforms and the products is written and read again, beyond the second-level cache as far as it does
    not fit there; and each patch reads all the weights, from there too if they do not fit beside it.
    """
    lanes, m = target.lanes(32), plan.tile
    n = m + layer.taps - 1
    sizes = layer.images, -(-layer.height // m), -(-layer.width // m)
    patches, tiles = prod(-(-s // p) for s, p in zip(sizes, plan.patch, strict=True)), prod(plan.patch)
    weights = 4 * n * n * layer.inputs * layer.outputs
    between = 4 * n * n * tiles * (layer.inputs + layer.outputs)
    products = n * n * (_steps(tiles, target) * layer.inputs + tiles * PRODUCT_CYCLES) * -(-layer.outputs // lanes)
    near = between + weights <= L2_SHARE * target.l2
    streaming = 0.0 if near and patches > 1 else streaming_cycles(weights, target, others)
    read, made = -(-layer.inputs // lanes), -(-layer.outputs // lanes)
    transforms = tiles * n * n * (read * INPUT_CYCLES + made * OUTPUT_CYCLES)
    moving = 2 * max(0.0, between - L2_SHARE * target.l2) / target.l3_speed
    rows, columns = (p * m + layer.taps - 1 for p in plan.patch[1:])
    padding = (
        plan.patch[0] * rows * columns * (layer.inputs * GATHER_CYCLES if layer.gathered else read * PADDING_CYCLES)
    )
    return patches * (max(products, streaming) + HIDDEN * min(products, streaming) + transforms + moving + padding)


def _steps(tiles: int, target: Target) -> float:
    """Returns the cycles of a vector's multiply-adds for *tiles* tiles: a few left over wait for their sums."""
    rows = max(1, target.vector_registers // 2 - 2)
    rate = max(1, target.fma_per_cycle)
    full, rest = divmod(tiles, rows)
    return full * rows / rate + (max(rest / rate, 2.0) if rest else 0.0)


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
