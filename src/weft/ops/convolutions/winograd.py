"""Winograd's convolutions: fewer multiplications, by way of polynomials evaluated at points.

A tile of m x m outputs of an r x r kernel is A' [(G g G') * (B' d B)] A, with (m + r - 1)^2 multiplications instead of (m r)^2
(Lavin and Gray, "Fast algorithms for convolutional neural networks", CVPR 2016), for the matrices of `cook_toom`.

Convolutions of integers of 16 bits are exact: their matrices are of whole numbers (`whole_matrices`), sums of products and
the outputs' transforms have 32 bits, and are divided by the scale in the end. Sums may wrap around: only outputs need fit.

The four stages are formulas of their own: input tiles are transformed along columns, then along rows; one matrix product for each
of the (m + r - 1)^2 products; and the output's transform, rows then columns. Tiles of several sizes (`winograd_tiles`) have
transforms of their own, and share products in groups of points at which the same ones take part.

Over volumes the method is applied to the frames, the last two dimensions, and the taps along the first one are terms of the
products: each frame is transformed once for all outputs of a patch that read it (`Frames`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from weft.ir import Expr, cast, ceil_div, const, index, select
from weft.ops.cases import choose, piecewise
from weft.ops.convolutions.conv import Ints, window_size
from weft.ops.convolutions.cook_toom import Matrix, divided, matrices, times_vector, whole_matrices
from weft.ops.convolutions.polyphase import PLACES, padded_phases
from weft.ops.convolutions.volume_frames import Frames, frames_of
from weft.ops.convolutions.winograd_tiles import Part, Points, by_place, covered, cut_in_tiles, points_of
from weft.ops.dot_products.grouped_matmul import accumulator_of, widened_product
from weft.ops.registry import operator
from weft.ops.shapes import sized
from weft.support.dtypes import DType, f64, i16, i32
from weft.te import Tensor, compute, reduce_axis, sum_


@operator("pack_winograd_weight", prepares=True)
def pack_winograd_weight(w: Tensor, *, tile: int, block: int) -> Tensor:
    """[OC, IC, r, r] to [n, n, OC/block, IC, block]: G g G', computed in float64, in panels of *block* output channels.

    For volumes, IC are the channels of each tap along the first dimension, one tap after another.
    """
    _, g, _ = matrices(tile, int(getattr(w.shape[2], "value", 0)))
    at = _transformed_weight(w, g, f64)
    count = sized(ceil_div(w.shape[0], block))[0]

    def packed(p: Expr, q: Expr, o: Expr, ic: Expr, j: Expr) -> Expr:
        oc = o * block + j
        return select(oc < w.shape[0], cast(at(p, q, oc, ic), w.dtype), const(0, w.dtype))

    return compute((len(g), len(g), count, w.shape[1], block), packed, "pack_winograd_weight", dtype=w.dtype)


@operator("pack_winograd_weight_groups", prepares=True)
def pack_winograd_weight_groups(w: Tensor, *, tile: int, block: int, group: int) -> Tensor:
    """Bytes [OC, IC, r, r] to G g G' of 16 bits, [n, n, OC/block, IC/group, block, group]: panels of groups of input channels."""
    _, g, _, _ = whole_matrices(tile, int(getattr(w.shape[2], "value", 0)))
    at = _transformed_weight(w, g, i32)
    counts = sized(ceil_div(w.shape[0], block), w.shape[1] // group)

    def packed(p: Expr, q: Expr, o: Expr, k: Expr, j: Expr, t: Expr) -> Expr:
        oc = o * block + j
        return select(oc < w.shape[0], cast(at(p, q, oc, k * group + t), i16), const(0, i16))

    return compute((len(g), len(g), *counts, block, group), packed, "pack_winograd_weight_groups", dtype=i16)


def _transformed_weight(w: Tensor, g: Matrix, dtype: DType) -> Callable[[Expr, Expr, Expr, Expr], Expr]:
    """Returns the element of G w G', computed in *dtype*, at two points, an output channel and an input channel."""
    taps = range(len(g[0]))

    def half(p: Expr, y: Expr, oc: Expr, ic: Expr) -> Expr:
        return choose(p, times_vector(g, [cast(w[oc, ic, k, y], dtype) for k in taps]))

    halves = compute((len(g), len(taps), w.shape[0], w.shape[1]), half, "winograd_half", dtype=dtype)
    return lambda p, q, oc, ic: choose(q, times_vector(g, [halves[p, k, oc, ic] for k in taps]))


@operator("conv2d_winograd")
def conv2d_winograd(
    x: Tensor,
    u: Tensor,
    bias: Tensor | None = None,
    *,
    tile: int,
    kernel: Ints,
    channels: int,
    block: int,
    strides: Ints = (1, 1),
    pads: Ints = (0, 0, 0, 0),
    patch: Ints | None = None,
    mixed: bool = False,
) -> Tensor:
    """Convolution of x [N, C/c, H, W, c] with u of `pack_winograd_weight` to [N, OC/block, OH, OW, block].

    That of volumes, x [N, C/c, D, H, W, c] to [N, OC/block, OD, OH, OW, block], has a kernel, strides and pads of three
    dimensions.

    One of 16-bit integers, with u of `pack_winograd_weight_groups`, has outputs of 32 bits, exact where these fit 31 bits times
    the power of two that `whole_matrices` makes them larger by.

    *kernel* is (KH, KW), of which a window of *strides* has as many taps in both dimensions: u is that of the phases. Tiles are
    *tile* x *tile* outputs; *mixed* ones are as many, but some have a row or a column less. *channels* is OC, or that of
    whole blocks; bias [OC/block, block]. A *patch* is (images, rows, columns) of tiles that may be computed by themselves,
    through all stages; the images are a divisor of N, or frames and a divisor of OD. Without one, all tiles are together.
    """
    *depth, sh, sw = strides
    dims = len(strides)
    [taps] = {-(-k // s) for k, s in zip(kernel[-2:], (sh, sw), strict=True)}
    sizes = [
        window_size(sized(x.shape[2 + d] + (pads[d] + pads[dims + d]))[0], sized(kernel[d])[0], strides[d], 1)
        for d in range(dims)
    ]
    frames = frames_of(x, sizes, kernel, strides, patch, mixed=mixed)
    parts = cut_in_tiles((frames.made, *sizes[-2:]), tile, frames.patch, mixed=mixed)
    read = [*([frames.read_of_volume] if depth else []), *covered(parts, taps)]
    v = _transformed_input(
        padded_phases(x, (*(1 for _ in depth), sh, sw), pads, read, block), tile, taps, parts, frames
    )
    products = [[_product(v, u, points, frames) for points in row] for row in points_of(parts, taps)]
    halves = {part: _transformed_rows(products, part, tile, taps, sized(channels)[0]) for part in parts}

    def finished(n: Expr, ocb: Expr, *at: Expr) -> Expr:
        *d, y, z, c = at

        def value(part: Part) -> Expr:
            (g, t, i, j), (_, _, a, _) = (
                part.place((frames.number(n, d), y, z)),
                _matrices(x.dtype, part.size[1], taps, tile),
            )
            half, oc = halves[part], ocb * block + c
            made = choose(j, times_vector(a, [half[g, i, q, t, oc] for q in range(len(a[0]))]))
            return divided(made, prod(_matrices(x.dtype, m, taps, tile)[3] for m in part.size))

        e = by_place(parts, y, z, value)
        return e if bias is None else e + bias[ocb, c]

    made = (x.shape[0], *sized(ceil_div(channels, block)), *sizes, *sized(block))
    names = "b", "ocb", *PLACES[-dims:], "c"
    return compute(made, finished, "conv2d_winograd", dtype=_sums_of(x.dtype), axis_names=names)


def _matrices(dtype: DType, m: int, taps: int, largest: int) -> tuple[Matrix, Matrix, Matrix, int]:
    """Returns B', G and A' for elements of *dtype*, and how many times an output's row or column A' makes."""
    return (*matrices(m, taps, largest), 1) if dtype.is_float else whole_matrices(m, taps)


def _sums_of(dtype: DType) -> DType:
    """Returns the type of the sums, and so of the outputs, of a convolution of *dtype*."""
    return dtype if dtype.is_float else accumulator_of(dtype)


def _transformed_input(p: Tensor, m: int, taps: int, parts: Sequence[Part], frames: Frames) -> Tensor:
    """Returns B' d B of every tile of p [N, C/c, H, W, c]: [patches, n, n, tiles in a patch, C], for the largest n.

    It is zero at the points at which a tile takes no part. Tiles of volumes [N, C/c, D, H, W, c] are those of all frames that a
    patch reads.
    """
    rows, columns = (max(part.size[d] for part in parts) + taps - 1 for d in range(2))
    lanes, zero = p.shape[-1], const(0, p.dtype)
    channels = sized(p.shape[1] * lanes)[0]

    def half_of(part: Part) -> Tensor:
        matrix = _matrices(p.dtype, part.size[0], taps, m)[0]

        def by_columns(g: Expr, i: Expr, j: Expr, t: Expr, ch: Expr) -> Expr:
            n, d, y, z = frames.corner(part, g, t)
            at = [p[n, ch // lanes, *d, y + k, z + j, ch % lanes] for k in range(len(matrix))]
            return choose(i, times_vector(matrix, at) + [zero] * (rows - len(matrix)))

        shape = part.tiles.patches, rows, part.size[1] + taps - 1, frames.tiles_read(part), channels
        return compute(sized(*shape), by_columns, "winograd_columns", dtype=p.dtype)

    halves = [half_of(part) for part in parts]

    def by_rows(g: Expr, i: Expr, j: Expr, t: Expr, ch: Expr) -> Expr:
        def value(part: Part, half: Tensor) -> Expr:
            matrix = _matrices(p.dtype, part.size[1], taps, m)[0]
            at = [half[g, i, k, t - part.begin, ch] for k in range(len(matrix))]
            return choose(j, times_vector(matrix, at) + [zero] * (columns - len(matrix)))

        return piecewise(t, [(part.end, value(part, half)) for part, half in zip(parts, halves, strict=True)])

    shape = sized(parts[0].tiles.patches, rows, columns, parts[-1].begin + frames.tiles_read(parts[-1]), channels)
    return compute(shape, by_rows, "winograd_input", dtype=p.dtype)


@dataclass(frozen=True)
class _Product:
    """The products at some points, [patches, rows of points, columns of points, tiles, panels, panel]."""

    points: Points
    tensor: Tensor


def _product(v: Tensor, u: Tensor, points: Points, frames: Frames) -> _Product:
    """Returns the products of transformed inputs and weights at *points*, of the tiles that take part there."""
    (a, c), (b, d) = points.begin, points.end
    terms = None if v.dtype.is_float else reduce_axis(u.shape[5], "term")
    tap = [] if frames.taps == 1 else [reduce_axis(frames.taps, "tap")]
    inputs = sized(u.shape[3] // frames.taps)[0]  # v may have more, where its last block is filled up
    k = reduce_axis(inputs, "k")

    def contraction(g: Expr, p: Expr, q: Expr, t: Expr, o: Expr, j: Expr) -> object:
        row, matrix = (g, p + a, q + c, t + points.first), (p + a, q + c, o, k, j)
        if tap:
            (*at, tile), [f] = row, tap
            of_tap = p + a, q + c, o, f * inputs + k, j
            return sum_(v[*at, tile + f * points.parts[0].tiles.in_frame, k] * u[of_tap], [f, k])
        if terms is None:
            return sum_(v[*row, k] * u[matrix], [k])
        return sum_(widened_product(v[*row, k * u.shape[5] + terms], u[*matrix, terms]), [k, terms])

    shape = sized(v.shape[0], b - a, d - c, points.tiles, u.shape[2], u.shape[4])
    return _Product(points, compute(shape, contraction, "winograd_product", dtype=_sums_of(v.dtype)))


def _transformed_rows(products: Sequence[Sequence[_Product]], part: Part, m: int, taps: int, channels: Expr) -> Tensor:
    """Returns A' of the products of *part*: [patches, rows of a tile, points of columns, tiles, channels]."""
    columns, made = part.size[1] + taps - 1, products[0][0].tensor
    dtype, a = made.dtype, _matrices(made.dtype, part.size[0], taps, m)[2]

    def product(g: Expr, p: int, q: Expr, t: Expr, oc: Expr) -> Expr:
        pieces: list[tuple[Expr, Expr]] = []
        for found in next(row for row in products if p < row[0].points.end[0]):
            points, panel = found.points, found.tensor.shape[5]
            if points.end[1] <= columns:
                at = g, p - points.begin[0], q - points.begin[1], t + (part.begin - points.first)
                pieces.append((index(points.end[1]), found.tensor[*at, oc // panel, oc % panel]))
        return piecewise(q, pieces)

    def by_rows(g: Expr, i: Expr, q: Expr, t: Expr, oc: Expr) -> Expr:
        return choose(i, times_vector(a, [product(g, p, q, t, oc) for p in range(len(a[0]))]))

    shape = sized(part.tiles.patches, part.size[0], columns, part.tiles.in_patch, channels)
    return compute(shape, by_rows, "winograd_rows", dtype=dtype)
