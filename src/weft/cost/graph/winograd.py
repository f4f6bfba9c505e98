"""The cost of a convolution, direct and by Winograd's method, transposed ones included.

The method is that of Lavin and Gray, "Fast algorithms for convolutional neural networks" (2016).
The method transforms tiles of the input, multiplies them point by point with transformed weights, and transforms the products to
tiles of the output. Counted are the products (with tiles that overhang the edge), the transforms, the copy with padding, and the
transformed weights, which are larger than those of the model and may have to come from memory. The cycles of a vector were
fitted on one core of a server of Intel's Emerald Rapids kind, 2026-11-21 (docs/design/0013 and 0028).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from weft.cost.demand import fma_cycles
from weft.cost.graph.memory import L2_SHARE, spill_cycles, streaming_cycles
from weft.cost.plans.plan import Decision
from weft.support.dtypes import f32, i8, i16, i32
from weft.targets import Target
from weft.targets.instructions import dot_products

TILES: Final = (2, 3, 4)
"""Sizes of output tiles to choose from; six saves little more for 3 x 3 taps, at ten times the error."""

INPUT_CYCLES: Final = 7.0
"""Cycles for each vector of a transformed input: most go into moving it."""

OUTPUT_CYCLES: Final = 5.0
"""Cycles for each vector of products that is transformed to outputs."""

PADDING_CYCLES: Final = 3.0
"""Cycles for each vector of the padded input."""

GATHER_CYCLES: Final = 1.5
"""Cycles to bring an element to its place in a vector, where channels are not in blocks."""

PRODUCT_CYCLES: Final = 2.0
"""Cycles for each vector of a product beside its multiply-adds: it is started from zero and stored."""

REMAINDER_CYCLES: Final = 2.0
"""The least cycles of a step of the reduction for a last tile of few rows: its sums wait for one another."""

GROUP_CYCLES: Final = 2500.0
"""Cycles for one more group of points: for its loops, and for those of the tiles that make it one."""

HIDDEN: Final = 0.25
"""The part of reading weights, or of multiplying, that shows even while the other goes on."""

SKIPPED: Final = 0.4
"""The part of its cycles that a product with padding still takes where it is skipped: tiles then have fewer sums, for as many
weights."""

PACKED_CYCLES: Final = 1.4
"""Cycles to bring an element of a weight to its place in blocks, where each call does so."""

TRANSFORMED_CYCLES: Final = 1.0
"""Cycles for each element of a transformed weight, where each call transforms it."""

GAIN: Final = 0.95
"""The largest cost of the method, as a part of that of a direct computation, to be worth the larger weights.

On Zen 4, 14 random transposed layers of 0.90 to 0.95 take 0.85 of the time by it: less in 12 of them (docs/design/0013).
"""

MIXED_GAIN: Final = 0.97
"""The largest cost of tiles of several sizes, as a part of that of overhanging tiles, to be worth more code."""

FEWEST_TILES: Final = 12
"""Columns of tiles that are left in a patch where rows are cut."""

OPEN_ROWS: Final = (1, 2, 3, 4)
"""Rows of tiles in a patch to choose from, for pictures of symbolic heights."""

OPEN_COLUMNS: Final = (2, 3, 4, 5, 6, 8, 10, 12)
"""Columns of tiles in a patch to choose from, for pictures of symbolic widths: the last patch of a row may overhang."""

MOST_OPEN_TILES: Final = 24
"""Tiles in a patch of a picture of symbolic sides, at most: the smallest of pictures takes as long as a patch."""

WEIGHT_VECTORS: Final = 2
"""Vectors of output channels in a panel of transformed weights: so few that a register tile has many rows."""


@dataclass(frozen=True)
class Winograd(Decision):
    """The size of the tiles of outputs, and a patch of (images, rows, columns) of tiles that goes through all stages at a time.

    Some tiles of a *mixed* cut have a row or a column less. A tile of one output is the direct computation.
    """

    question = "a convolution's algorithm: the tiles of Winograd's method, or directly, output by output"
    tile: int
    patch: tuple[int, int, int]
    mixed: bool = False

    @property
    def is_direct(self) -> bool:
        """Whether the method is not used."""
        return self.tile == 1


DIRECT: Final = Winograd(tile=1, patch=(1, 1, 1))


@dataclass(frozen=True)
class Terms:
    """The time of a term of a vector of sums in multiply-adds of floats, *direct* and *by_method*, and the bytes of elements.

    Those are of the model's weights, and of transformed inputs and weights.
    """

    direct: float = 1.0
    by_method: float = 1.0
    weight_bytes: int = f32.bytes
    transformed_bytes: int = f32.bytes


FLOATS: Final = Terms()


def terms_of_words(target: Target) -> Terms | None:
    """Returns the terms of rows of 16 bits, directly times bytes, by the method times words; None where there are no products."""
    times = {s.b: s.cycles / s.group for s in dot_products(target).values() if (s.a, s.sums) == (i16, i32)}
    if not {i8, i16} <= times.keys():
        return None
    return Terms(times[i8], times[i16], i8.bytes, i16.bytes)


@dataclass(frozen=True)
class FrameWindow:
    """The windows along the first dimension of volumes: each output has *frames* of them, with *taps* that are *stride* apart."""

    frames: int
    taps: int
    stride: int

    def read(self, made: int) -> int:
        """Returns how many frames *made* neighbouring frames of the output read."""
        return (made - 1) * self.stride + self.taps


@dataclass(frozen=True)
class Layer:
    """A convolution by its sizes: its outputs, channels and taps at stride 1, and its strides.

    *inputs* are the channels at stride 1, the phases of the input included; *multiplications* are those that a direct computation
    takes for each output channel of a place, of which it skips some and costs the part *direct*; *block* is that of the outputs'
    channels, and *gathered* tells that the inputs' are not in blocks.

    A transposed convolution is one for each of its *output_phases*, with weights of its own; the windows of these begin at so
    many *beginnings*, each with its own transform. Its input is not *padded*.

    Where the weights are *changing*, each call packs or transforms them.

    Over volumes, *images* are the frames of all outputs, and the *window* is that along them; *taps* are those of a frame.

    The *terms* tell what its products cost.

    A layer on pictures of symbolic sides has guesses of these, and is one of *pictures* for other guesses.
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
    output_phases: int = 1
    beginnings: int = 1
    padded: bool = True
    changing: bool = False
    terms: Terms = FLOATS
    window: FrameWindow | None = None
    pictures: tuple[Layer, ...] = ()

    @property
    def depth(self) -> int:
        """The terms of a sum of products: the inputs, of all taps along frames."""
        return self.inputs * (1 if self.window is None else self.window.taps)

    def images_read(self, made: int) -> int:
        """Returns how many images are transformed for *made* neighbouring ones of the output."""
        return made if self.window is None else self.window.read(made)

    @property
    def phases(self) -> int:
        """How many phases the input has."""
        return self.strides[0] * self.strides[1]


@dataclass(frozen=True)
class Tiling:
    """Tiles of *tile* x *tile* outputs, in patches of (images, rows, columns) of tiles that go through all stages at a time.

    *groups* are the points at which the same tiles take part, and how many tiles of a patch do: one group, unless some tiles have
    a row or a column less.
    """

    tile: int
    patch: tuple[int, int, int]
    groups: tuple[tuple[int, int], ...]


def direct_cycles(layer: Layer, target: Target, others: int = 0) -> float:
    """Returns the cycles of a direct convolution on one core; *others* are the bytes of other weights."""
    vectors = layer.images * layer.height * layer.width * -(-layer.outputs // target.lanes(32))
    products = fma_cycles(vectors * layer.multiplications * layer.direct * layer.terms.direct, target)
    weights = layer.multiplications * layer.outputs
    packing = PACKED_CYCLES * weights if layer.changing else 0.0
    return packing + max(products, streaming_cycles(layer.terms.weight_bytes * weights, target, others))


def winograd_cycles(layer: Layer, tiling: Tiling, target: Target, others: int = 0) -> float:
    """Returns the estimated cycles of a layer by Winograd's method on one core.

    Data between the transforms and the products is written and read again, beyond the second-level cache as far as it does not
    fit there; and each patch reads all the weights, from there too if they do not fit beside it. Few mixed tiles are left to
    multiply with some of the weights.
    """
    lanes, m = target.lanes(32), tiling.tile
    n = m + layer.taps - 1
    sizes = layer.images, -(-layer.height // m), -(-layer.width // m)
    patches = prod(-(-s // p) for s, p in zip(sizes, tiling.patch, strict=True))
    made_images, *sides = tiling.patch
    tiles, tiles_read = made_images * prod(sides), layer.images_read(made_images) * prod(sides)
    inputs, outputs = layer.beginnings * layer.inputs, layer.output_phases * layer.outputs
    size = layer.terms.transformed_bytes
    weights = size * n * n * layer.depth * outputs
    between = n * n * (tiles_read * size * inputs + tiles * f32.bytes * outputs)
    near = between + weights <= L2_SHARE * target.caches.l2
    streaming = 0.0 if near and patches > 1 else streaming_cycles(weights, target, others)
    read, made = (
        layer.beginnings * -(-layer.inputs // (lanes * f32.bytes // size)),
        layer.output_phases * -(-layer.outputs // lanes),
    )
    transforms = n * n * (tiles_read * read * INPUT_CYCLES + tiles * made * OUTPUT_CYCLES)
    products = (len(tiling.groups) - 1) * GROUP_CYCLES
    for points, count in tiling.groups:
        multiplied = (
            points * made * (_step_cycles(count, target) * layer.depth * layer.terms.by_method + count * PRODUCT_CYCLES)
        )
        read_then = streaming * points / n**2
        products += max(multiplied, read_then) + HIDDEN * min(multiplied, read_then)
    once = TRANSFORMED_CYCLES * weights / size if layer.changing else 0.0
    return once + patches * (
        products + transforms + spill_cycles(between, target) + _padding_cycles(layer, tiling, lanes)
    )


def _padding_cycles(layer: Layer, tiling: Tiling, lanes: int) -> float:
    """Returns the cycles to copy a patch's input with its padding."""
    if not layer.padded:
        return 0.0
    images, *sides = tiling.patch
    places = layer.images_read(images) * prod(p * tiling.tile + layer.taps - 1 for p in sides)
    return places * (layer.inputs * GATHER_CYCLES if layer.gathered else -(-layer.inputs // lanes) * PADDING_CYCLES)


def _step_cycles(tiles: int, target: Target) -> float:
    """Returns the cycles of a vector's multiply-adds for *tiles* tiles: a few left over wait for their sums."""
    rows = max(1, target.isa.vector_registers // 2 - 2)
    full, rest = divmod(tiles, rows)
    return fma_cycles(full * rows, target) + (max(fma_cycles(rest, target), REMAINDER_CYCLES) if rest else 0.0)


def direct_part(inside: float) -> float:
    """Returns the relative cost of a direct convolution that skips padding, where the part *inside* of its products has none."""
    return inside + SKIPPED * (1 - inside)


def winograd_panel(outputs: int, lanes: int) -> int:
    """Returns how many output channels a panel of transformed weights has, for vectors of *lanes* elements.

    Each vector of weights is then used by all rows of a tile as it arrives, which takes as long as the next one is under way.
    """
    return min(WEIGHT_VECTORS * lanes, -(-outputs // lanes) * lanes)
