"""The Winograd plans of a convolution, and direct convolution, with their costs.

A plan is a tile size, and a patch of tiles that goes through all stages at a time: small tiles waste less at the edge, large
ones save more multiplications; small patches stay in the L2 cache, large ones read the weights less often. `cost.winograd`
estimates the cycles of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf, prod
from statistics import fmean

from weft.cost import (
    DIRECT,
    FEWEST_TILES,
    GAIN,
    MIXED_GAIN,
    MOST_OPEN_TILES,
    OPEN_COLUMNS,
    OPEN_ROWS,
    TILES,
    Candidate,
    FrameWindow,
    Layer,
    Tiling,
    Winograd,
    by_cost,
    direct_cycles,
    direct_part,
    picture_shapes,
    size_of,
    winograd_cycles,
)
from weft.graph.core.graph import Node
from weft.ir import Const
from weft.ops import cut_in_tiles, mixed_sizes, points_of, sized
from weft.targets import Target

TAPS = (2, 3, 4)
"""Window sizes at stride 1 for which the method is used; one tap saves nothing, more taps cost accuracy."""


def tile_sizes(plan: Winograd, layer: Layer) -> set[tuple[int, int]]:
    """Returns the rows and columns of outputs that the tiles of *plan* have."""
    if not plan.mixed:
        return {(plan.tile, plan.tile)}
    return set(product(mixed_sizes(layer.height, plan.tile), mixed_sizes(layer.width, plan.tile)))


def tiling_of(plan: Winograd, layer: Layer) -> Tiling:
    """Returns the tiles by their numbers, with the points at which the same ones of a patch take part."""
    if not plan.mixed:
        return Tiling(plan.tile, plan.patch, (((plan.tile + layer.taps - 1) ** 2, prod(plan.patch)),))
    parts = cut_in_tiles(sized(layer.images, layer.height, layer.width), plan.tile, None, mixed=True)
    points = [p for row in points_of(parts, layer.taps) for p in row]
    sides = [[end - begin for begin, end in zip(p.begin, p.end, strict=True)] for p in points]
    counts = [int(getattr(p.tiles, "value", 0)) for p in points]
    return Tiling(plan.tile, plan.patch, tuple(zip(map(prod, sides), counts, strict=True)))


@dataclass(frozen=True)
class Channels:
    """The channels of a layer: the sizes of its *weight*, and the blocks that channels are *read* in and made in.

    The weight is [outputs, inputs, height, width], or has the taps along frames before these. The outputs' channels are in
    blocks of *block*, the inputs' in blocks of *read*: as many or one, or *any_part* of them; the last of either may be in part.
    A *changing* weight is transformed in each call.
    """

    weight: tuple[int, ...]
    read: int
    block: int
    changing: bool = False
    any_part: bool = False


def layer_of(node: Node, channels: Channels) -> Layer | None:
    """Returns the layer of a convolution in one group; None for windows, sizes and blocks that the method does not support.

    Pictures may have symbolic sides, volumes may not. A symbolic batch is taken for one of a single image.
    """
    x, dims = node.inputs[0], len(node.attribute("strides"))
    if x is None or set(node.attribute("dilations")) != {1}:
        return None
    image, made = x.shape[2 : 2 + dims], node.output.shape[2 : 2 + dims]
    images = int(getattr(node.output.shape[0], "value", 1))

    def at(sides: Sequence[int]) -> Layer | None:
        read, written = sides[:dims], sides[dims:]
        direct = part_of_whole(node, read, written, channels.weight[2:])
        return layer_at((images, *written), node.attribute("strides"), channels, direct)

    guess = at([size_of(e) for e in (*image, *made)])
    if guess is None or all(isinstance(e, Const) for e in (*image, *made)):
        return guess
    pictures = tuple([p for p in map(at, picture_shapes((*image, *made))) if p is not None])
    return None if guess.window else replace(guess, pictures=pictures)


def layer_at(places: Sequence[int], strides: Sequence[int], channels: Channels, direct: float = 1.0) -> Layer | None:
    """Returns the layer of a convolution in one group; None for windows and channel blocks that the method does not support.

    *places* are the number of images, and the height and width of its output, or of volumes with the frames before these;
    *direct* is its `part_of_whole`.
    """
    (outputs, inputs, *kernel), read, block = channels.weight, channels.read, channels.block
    images, *depth, height, width = places
    sh, sw = strides[-2:]
    taps = {-(-k // s) for k, s in zip(kernel[-2:], (sh, sw), strict=True)}
    if len(taps) > 1 or not taps <= set(TAPS):
        return None
    if inputs % read and sh * sw > 1:  # what fills up the blocks of a phase would be among the channels of the products
        return None
    if read not in (1, block) and (block % read or not channels.any_part):
        return None
    window = FrameWindow(depth[0], kernel[0], strides[0]) if depth else None
    return Layer(
        images * prod(depth),
        height,
        width,
        inputs * sh * sw,
        -(-outputs // block) * block,
        taps.pop(),
        inputs * prod(kernel),
        (sh, sw),
        block,
        gathered=read < block,
        direct=direct,
        changing=channels.changing,
        window=window,
    )


def part_of_whole(node: Node, image: Sequence[int], made: Sequence[int], kernel: Sequence[int]) -> float:
    """Returns the cost of a direct convolution as a fraction of that of one whose windows all lie inside the image.

    *image* and *made* are the sizes of its input and output, heights and widths for images.
    """
    strides, pads, dilations = (node.attribute(a) for a in ("strides", "pads", "dilations"))
    inside = 1.0
    for d, (size, count, taps) in enumerate(zip(image, made, kernel, strict=True)):
        starts = (t * dilations[d] - pads[d] for t in range(taps))
        within = sum(_steps_inside(start, strides[d], size, count) for start in starts)
        inside *= within / (taps * count)
    return direct_part(inside)


def _steps_inside(start: int, stride: int, size: int, count: int) -> int:
    """Returns how many of *count* places, *stride* apart from *start* on, lie in [0, *size*)."""
    before, end = max(-(start // stride), 0), min(-((start - size) // stride), count)
    return max(end - before, 0)


def winograd_plans(layer: Layer, target: Target, others: int = 0) -> list[Candidate[Winograd]]:
    """Returns the direct computation and the plans of the method, cheapest first; *others* are the bytes of other weights.

    That the method needs larger weights is counted to its disadvantage. Threads of a grid have no vectors, whose lanes its stages
    fill with channels in blocks, and each stage would be a launch of its own: for these, the computation is direct. Where cores
    run a grid, each size of tiles has launches of its own, up to four times as many, so that sizes are not mixed: C9 took 15
    launches and 2.07 ms with PoCL, and takes 6 and 1.88 (two cores of an Intel Xeon, 2026-11-27).
    """
    if target.has_threads:
        return [Candidate(DIRECT, direct_cycles(layer, target, others))]
    costs = {
        plan: _cycles(layer, plan, target, others)
        for m in TILES
        for plan in (_open_plans(layer, m) if layer.pictures else _plans(layer, m, may_mix=target.grid is None))
    }
    direct = Candidate(DIRECT, GAIN * direct_cycles(layer, target, others))
    worth = [p for p, c in costs.items() if not (p.mixed and c > MIXED_GAIN * costs[replace(p, mixed=False)])]
    return by_cost([direct, *[Candidate(p, costs[p]) for p in worth]])


def _cycles(layer: Layer, plan: Winograd, target: Target, others: int) -> float:
    """Returns the cycles of *layer* by *plan*: for symbolic sides, the mean of its parts of those of direct computations."""
    if not layer.pictures:
        return winograd_cycles(layer, tiling_of(plan, layer), target, others)
    parts = [_cycles(p, plan, target, others) / direct_cycles(p, target, others) for p in layer.pictures]
    return fmean(parts) * direct_cycles(layer, target, others)


def best_by_winograd(layer: Layer, target: Target) -> float:
    """Returns the cycles of *layer* by the best plan of the method, infinite where it is better computed directly."""
    best = winograd_plans(layer, target)[0]
    return inf if best.decision.is_direct else best.cycles


def _plans(layer: Layer, m: int, *, may_mix: bool) -> list[Winograd]:
    """Returns the plans with tiles of *m* x *m* outputs: all at once, some rows of tiles of an image, or a part of a row.

    With all tiles in one patch their sizes are mixed too if they *may_mix*, but tiles of one row or column save nothing. A
    transposed convolution is not cut into patches. Over volumes, a patch has some frames of one: several share the transforms of
    the frames that they read, where these are neighbours.
    """
    rows, columns = -(-layer.height // m), -(-layer.width // m)
    if layer.window is not None:
        return _volume_plans(layer.window, m, rows, columns)
    whole = Winograd(m, (layer.images, rows, columns))
    if layer.output_phases > 1:
        return [whole]
    mixed = replace(whole, mixed=True)
    sizes = {n for size in tile_sizes(mixed, layer) for n in size}
    several = [mixed] if may_mix and m in sizes and min(sizes) > 1 and len(sizes) > 1 else []
    some = {(1, n, columns) for n in _even_parts(rows, rows)}
    parts = {(1, 1, n) for n in _even_parts(columns, columns // FEWEST_TILES)}
    return [whole, *several, *[Winograd(m, p) for p in sorted(some | parts, reverse=True)]]


def _open_plans(layer: Layer, m: int) -> list[Winograd]:
    """Returns the plans for pictures of symbolic sides with tiles of *m* x *m* outputs: patches that may overhang each side."""
    heights, widths = {p.height for p in layer.pictures}, {p.width for p in layer.pictures}
    rows, columns = (
        [*_even_parts(-(-min(sides) // m), -(-min(sides) // m))] if len(sides) == 1 else some
        for sides, some in ((heights, OPEN_ROWS), (widths, OPEN_COLUMNS))
    )
    return [Winograd(m, (1, r, c)) for r in rows for c in columns if r * c <= MOST_OPEN_TILES]


def _volume_plans(window: FrameWindow, m: int, rows: int, columns: int) -> list[Winograd]:
    """Returns the plans for volumes of *rows* x *columns* tiles a frame: patches of neighbouring frames."""
    several = [f for f in range(1, window.frames + 1) if window.frames % f == 0 and (f == 1 or window.stride == 1)]
    parts = {(n, columns) for n in _even_parts(rows, rows)}
    parts |= {(1, n) for n in _even_parts(columns, columns // FEWEST_TILES)}
    return [Winograd(m, (f, *part)) for f in several for part in sorted(parts, reverse=True)]


def _even_parts(size: int, most: int) -> Iterator[int]:
    """Yields the distinct values of ceil(size / parts), for one to *most* parts.

    There are about twice the square root of *size* of them: repeated lengths are skipped.
    """
    count = 1
    while count <= most:
        length = -(-size // count)
        yield length
        if length == 1:
            return
        count = -(-size // (length - 1))
