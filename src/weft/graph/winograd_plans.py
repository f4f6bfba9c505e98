"""What a convolution costs by Winograd's method, and the plans of it that are cheaper than computing directly.

A plan is a size of tiles, and a patch of them that goes through all stages at a time: small tiles waste less at the edge, large
ones save more multiplications; small patches stay in the second-level cache, large ones read the weights less often. The cost
counts the arithmetic of the products (with tiles that overhang the edge), the transforms, and the transformed weights, which are
larger than those of the model and may have to come from memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from weft.graph.graph import Node
from weft.ops.shapes import sized
from weft.ops.winograd_tiles import cut_in_tiles, mixed_sizes, points_of
from weft.targets.target import Target

TAPS = (2, 3, 4)
"""Sizes of windows at stride 1 that the method is for; tiles of one tap save nothing, more taps cost accuracy."""

TILES = (2, 3, 4)
"""Sizes of output tiles to choose from; six saves little more for 3 x 3 taps, at ten times the error."""

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

LEFT_OUT = 0.4
"""The part of a product's cycles that it still takes where it is left out: tiles have fewer sums then, for as many weights."""

GATHER_CYCLES = 1.5
"""Cycles to bring an element to its place in a vector."""

FEWEST_TILES = 12
"""Columns of tiles that are left in a patch where rows are cut."""

GAIN = 0.95
"""What the method may cost of a direct computation, to be worth the larger weights."""

GROUP_CYCLES = 2500.0
"""Cycles for one more group of points: for its loops, and for those of the tiles that make it one."""

MIXED_GAIN = 0.97
"""What tiles of several sizes may cost of those that overhang, to be worth more code."""


@dataclass(frozen=True)
class Layer:
    """A convolution by its sizes: its outputs, channels and taps at stride 1, and its strides.

    *inputs* are the channels at stride 1, the phases included; *multiplications* are those that a direct computation takes for
    each output with padding, of which it leaves out some and costs the part *direct*; *block* is that of the outputs' channels,
    and *gathered* tells that the inputs' are not in blocks.
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
    direct: float = 1.0

    @property
    def phases(self) -> int:
        """How many phases the input has."""
        return self.strides[0] * self.strides[1]


@dataclass(frozen=True)
class Plan:
    """How a layer is computed: tiles of *tile* x *tile* outputs, and a patch of (images, rows, columns) of tiles at a time.

    Some of *mixed* tiles have a row or a column less.
    """

    tile: int
    patch: tuple[int, int, int]
    mixed: bool = False

    def sizes(self, layer: Layer) -> set[tuple[int, int]]:
        """Returns the rows and columns of outputs that tiles have."""
        if not self.mixed:
            return {(self.tile, self.tile)}
        return set(product(mixed_sizes(layer.height, self.tile), mixed_sizes(layer.width, self.tile)))


def layer_of(
    places: tuple[int, int, int],
    weight: Sequence[int],
    strides: tuple[int, int],
    read: int,
    block: int,
    direct: float = 1.0,
) -> Layer | None:
    """Returns the layer of a convolution in one group; None for windows and blocks of channels that the method is not for.

    *places* are its images, and the height and width of its output. The *weight* is [outputs, inputs, height, width]; the
    outputs' channels are in blocks of *block*, the inputs' in blocks of *read*. *direct* is its `direct_part`.
    """
    outputs, inputs, *kernel = weight
    taps = {-(-k // s) for k, s in zip(kernel, strides, strict=True)}
    if len(taps) > 1 or not taps <= set(TAPS) or read not in (1, block) or outputs % block or inputs % read:
        return None
    sizes = *places, inputs * strides[0] * strides[1], outputs, taps.pop(), inputs * prod(kernel)
    return Layer(*sizes, strides, block, gathered=read < block, direct=direct)


def direct_part(node: Node, image: Sequence[int], made: Sequence[int], kernel: Sequence[int]) -> float:
    """Returns what a direct convolution in two dimensions costs, as the part of one whose windows are all inside the image.

    *image* and *made* are the heights and widths of its input and output. What is multiplied of padding is left out.
    """
    strides, pads, dilations = (node.attribute(a) for a in ("strides", "pads", "dilations"))
    inside = 1.0
    for d, (size, count, taps) in enumerate(zip(image, made, kernel, strict=True)):
        starts = [t * dilations[d] - pads[d] for t in range(taps)]
        within = sum(0 <= start + n * strides[d] < size for start in starts for n in range(count))
        inside *= within / (taps * count)
    return inside + LEFT_OUT * (1 - inside)


def good_plans(layer: Layer, target: Target, others: int = 0) -> list[Plan]:
    """Returns the plans that are cheaper than a direct convolution, cheapest first; *others* are the bytes of other weights."""
    vectors = layer.images * layer.height * layer.width * -(-layer.outputs // target.lanes(32))
    products = vectors * layer.multiplications * layer.direct / max(1, target.fma_per_cycle)
    direct = max(products, streaming_cycles(4 * layer.multiplications * layer.outputs, target, others))
    costs = {plan: winograd_cycles(layer, plan, target, others) for m in TILES for plan in _plans(layer, m)}
    kept = [
        p
        for p, c in costs.items()
        if c < GAIN * direct and not (p.mixed and c > MIXED_GAIN * costs[replace(p, mixed=False)])
    ]
    return sorted(kept, key=costs.__getitem__)


def panel_of(outputs: int, target: Target) -> int:
    """Returns how many output channels a panel of transformed weights has: so few that a register tile has many rows.

    Each vector of weights is then used by all these as it arrives, which takes as long as the next one is under way.
    """
    lanes = target.lanes(32)
    return min(2 * lanes, -(-outputs // lanes) * lanes)


def _plans(layer: Layer, m: int) -> list[Plan]:
    """Returns the plans with tiles of *m* x *m* outputs: all at once, some rows of tiles of an image, or a part of a row.

    All at once, tiles may be mixed, but tiles of one row or column save nothing.
    """
    rows, columns = -(-layer.height // m), -(-layer.width // m)
    whole = Plan(m, (layer.images, rows, columns))
    mixed = replace(whole, mixed=True)
    sizes = {n for size in mixed.sizes(layer) for n in size}
    several = [mixed] if m in sizes and min(sizes) > 1 and len(sizes) > 1 else []
    some = {(1, n, columns) for n in _even_parts(rows, rows)}
    parts = {(1, 1, n) for n in _even_parts(columns, columns // FEWEST_TILES)}
    return [whole, *several, *[Plan(m, p) for p in sorted(some | parts, reverse=True)]]


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
    not fit there; and each patch reads all the weights, from there too if they do not fit beside it. Few mixed tiles are left to
    multiply with some of the weights.
    """
    lanes, m = target.lanes(32), plan.tile
    n = m + layer.taps - 1
    sizes = layer.images, -(-layer.height // m), -(-layer.width // m)
    patches, tiles = prod(-(-s // p) for s, p in zip(sizes, plan.patch, strict=True)), prod(plan.patch)
    weights = 4 * n * n * layer.inputs * layer.outputs
    between = 4 * n * n * tiles * (layer.inputs + layer.outputs)
    near = between + weights <= L2_SHARE * target.l2
    streaming = 0.0 if near and patches > 1 else streaming_cycles(weights, target, others)
    read, made = -(-layer.inputs // lanes), -(-layer.outputs // lanes)
    transforms = tiles * n * n * (read * INPUT_CYCLES + made * OUTPUT_CYCLES)
    moving = 2 * max(0.0, between - L2_SHARE * target.l2) / target.l3_speed
    rows, columns = (p * m + layer.taps - 1 for p in plan.patch[1:])
    padding = (
        plan.patch[0] * rows * columns * (layer.inputs * GATHER_CYCLES if layer.gathered else read * PADDING_CYCLES)
    )
    groups = _groups(layer, plan)
    products = (len(groups) - 1) * GROUP_CYCLES
    for points, count in groups:
        multiplied = points * made * (_steps(count, target) * layer.inputs + count * PRODUCT_CYCLES)
        read_then = streaming * points / n**2
        products += max(multiplied, read_then) + HIDDEN * min(multiplied, read_then)
    return patches * (products + transforms + moving + padding)


def _groups(layer: Layer, plan: Plan) -> list[tuple[int, int]]:
    """Returns how many points there are at which the same tiles of a patch take part, and how many tiles do."""
    if not plan.mixed:
        return [((plan.tile + layer.taps - 1) ** 2, prod(plan.patch))]
    parts = cut_in_tiles(sized(layer.images, layer.height, layer.width), plan.tile, None, mixed=True)
    points = [p for row in points_of(parts, layer.taps) for p in row]
    sides = [[end - begin for begin, end in zip(p.begin, p.end, strict=True)] for p in points]
    return [(prod(side), int(getattr(p.tiles, "value", 0))) for side, p in zip(sides, points, strict=True)]


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
