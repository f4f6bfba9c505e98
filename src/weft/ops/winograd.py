"""Winograd's convolutions: fewer multiplications, by way of polynomials evaluated at points.

A tile of m x m outputs of an r x r kernel is A' [(G g G') * (B' d B)] A, with (m + r - 1)^2 multiplications instead of (m r)^2
(Lavin and Gray, "Fast algorithms for convolutional neural networks", CVPR 2016). The matrices are those of the Cook-Toom
construction on the points of `POINTS` and infinity; the weights' rows are left unscaled and the scales are put into the
input's transform, so that transformed weights of the same points serve tiles of any size.

The four stages are formulas of their own: input tiles are transformed along columns, then along rows; one matrix product for each
of the (m + r - 1)^2 products; and the output's transform, rows then columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from weft.ir.expr import ONE, ZERO, Expr, Var, cast, ceil_div, const, eq, select
from weft.ir.simplify import simplify
from weft.ops.conv import Ints, window_size
from weft.ops.phases import padded_phases
from weft.ops.registry import operator
from weft.ops.shapes import size_bounds, sized
from weft.support.dtypes import f64
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute, reduce_axis, sum_

POINTS = (0.0, 2**-0.5, -(2**-0.5), 2**0.5, -(2**0.5), 1.0, -1.0)
"""Finite points in the order of use; the first five make F(4, 3) about as accurate as a direct convolution."""

OWN_POINTS = {2: (0.0, 1.0), 3: (0.0, 1.0, -1.0), 6: (0.0, 0.5, -0.5, 1.0, -1.0, 2.0)}
"""Those of numbers of points where `POINTS` would leave one without its opposite; the six are the best of a few for F(4, 4)."""

Matrix = tuple[tuple[float, ...], ...]


@cache
def matrices(m: int, r: int) -> tuple[Matrix, Matrix, Matrix]:
    """Returns B' (n x n), G (n x r) and A' (m x n) for tiles of *m* outputs and *r* taps, n = m + r - 1.

    Row k of G is 1, p, p^2 ... at point p; the last row stands for infinity.
    """
    n = m + r - 1
    points = finite_points(n - 1)
    b, g, a = np.zeros((n, n)), np.zeros((n, r)), np.zeros((m, n))
    for k, p in enumerate(points):
        others = [q for q in points if q != p]
        b[k, : n - 1] = np.poly(others)[::-1] / np.prod([p - q for q in others])
        g[k] = p ** np.arange(r)
        a[:, k] = p ** np.arange(m)
    b[n - 1] = np.poly(points)[::-1]
    g[n - 1, r - 1] = a[m - 1, n - 1] = 1.0
    return _plain(b), _plain(g), _plain(a)


def finite_points(count: int) -> list[float]:
    """Returns *count* points; raises `TypeMismatch` where there are not as many."""
    if count > len(POINTS):
        raise TypeMismatch(f"there are {len(POINTS)} points, which are too few for {count}")
    return list(OWN_POINTS.get(count, POINTS[:count]))


def _plain(x: np.ndarray) -> Matrix:
    rounded = np.round(x, 13) + 0.0  # so that entries that are equal but for rounding are equal
    return tuple(tuple(float(v) for v in row) for row in rounded)


def times_vector(matrix: Matrix, values: Sequence[Expr]) -> list[Expr]:
    """Returns the products of the rows of *matrix* with *values*; rows that are u + v and u - v share both parts."""
    done: dict[int, Expr] = {}
    for k, row in enumerate(matrix):
        if k in done:
            continue
        twin = next((j for j in range(k + 1, len(matrix)) if _is_twin(row, matrix[j])), None)
        if twin is None:
            done[k] = _dot(row, values)
            continue
        same = _dot([c if c == d else 0.0 for c, d in zip(row, matrix[twin], strict=True)], values)
        flipped = _dot([c if c != d else 0.0 for c, d in zip(row, matrix[twin], strict=True)], values)
        done[k], done[twin] = same + flipped, same - flipped
    return [done[k] for k in range(len(matrix))]


def _is_twin(a: Sequence[float], b: Sequence[float]) -> bool:
    """Tells whether two rows differ in the signs of some entries only, but not of all."""
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x or y]
    return all(abs(x) == abs(y) for x, y in pairs) and 0 < sum(x != y for x, y in pairs) < len(pairs)


def _dot(row: Sequence[float], values: Sequence[Expr]) -> Expr:
    terms = [v if c == 1.0 else -v if c == -1.0 else v * c for c, v in zip(row, values, strict=True) if c]
    total = terms[0]
    for t in terms[1:]:
        total = total + t
    return total


def choose(index: Expr, values: Sequence[Expr]) -> Expr:
    """Returns the value at *index*; a schedule that unrolls the index's loop leaves no choice to be made at run time."""
    result = values[-1]
    for k in reversed(range(len(values) - 1)):
        result = select(eq(index, k), values[k], result)
    return result


@operator("pack_winograd_weight")
def pack_winograd_weight(w: Tensor, *, tile: int, block: int) -> Tensor:
    """[OC, IC, r, r] to [n, n, OC/block, IC, block]: G g G', computed in float64, in panels of *block* output channels."""
    r = int(getattr(w.shape[2], "value", 0))
    _, g, _ = matrices(tile, r)
    n = len(g)
    count = sized(ceil_div(w.shape[0], block))[0]

    def half(p: Expr, y: Expr, oc: Expr, ic: Expr) -> Expr:
        return choose(p, times_vector(g, [cast(w[oc, ic, k, y], f64) for k in range(r)]))

    halves = compute((n, r, w.shape[0], w.shape[1]), half, "winograd_half", dtype=f64)

    def packed(p: Expr, q: Expr, o: Expr, ic: Expr, j: Expr) -> Expr:
        oc = o * block + j
        value = cast(choose(q, times_vector(g, [halves[p, k, oc, ic] for k in range(r)])), w.dtype)
        return select(oc < w.shape[0], value, const(0, w.dtype))

    return compute((n, n, count, w.shape[1], block), packed, "pack_winograd_weight", dtype=w.dtype)


@operator("conv2d_winograd")
def conv2d_winograd(
    x: Tensor, u: Tensor, bias: Tensor | None = None, *, tile: int, kernel: Ints, channels: int, block: int,
    strides: Ints = (1, 1), pads: Ints = (0, 0, 0, 0), patch: Ints | None = None,
) -> Tensor:  # fmt: skip
    """Convolution of x [N, C/c, H, W, c] with u of `pack_winograd_weight` to [N, OC/block, OH, OW, block].

    *kernel* is (KH, KW), of which a window of *strides* has as many taps in both dimensions: u is that of the phases. Tiles are
    *tile* x *tile* outputs; *channels* is OC; bias [OC/block, block]. A *patch* is (images, rows, columns) of tiles that may be
    computed by themselves, through all stages; the images are a divisor of N. Without one, all tiles are together.
    """
    m, (sh, sw) = tile, strides
    [taps] = {-(-k // s) for k, s in zip(kernel, strides, strict=True)}
    oh = window_size(sized(x.shape[2] + (pads[0] + pads[2]))[0], sized(kernel[0])[0], sh, 1)
    ow = window_size(sized(x.shape[3] + (pads[1] + pads[3]))[0], sized(kernel[1])[0], sw, 1)
    tiles = Tiles.of((x.shape[0], *sized(ceil_div(oh, m), ceil_div(ow, m))), patch)
    v = _transformed_input(padded_phases(x, strides, pads, tiles.covered(m, taps), block), m, taps, tiles)
    k = reduce_axis(u.shape[3], "k")

    def contraction(g: Expr, p: Expr, q: Expr, t: Expr, o: Expr, j: Expr) -> object:
        return sum_(v[g, p, q, t, k] * u[p, q, o, k, j], [k])

    shape = (*v.shape[:4], u.shape[2], u.shape[4])
    product = compute(shape, contraction, "winograd_product", dtype=x.dtype)
    _, _, a = matrices(m, taps)
    n, panel = len(a[0]), u.shape[4]

    def by_rows(g: Expr, i: Expr, q: Expr, t: Expr, oc: Expr) -> Expr:
        return choose(i, times_vector(a, [product[g, p, q, t, oc // panel, oc % panel] for p in range(n)]))

    half = compute((v.shape[0], m, n, v.shape[3], sized(channels)[0]), by_rows, "winograd_rows", dtype=x.dtype)

    def finished(b: Expr, ocb: Expr, y: Expr, z: Expr, c: Expr) -> Expr:
        (g, t), oc = tiles.place((b, y, z), m, (x.shape[0], oh, ow)), ocb * block + c
        e = choose(z % m, times_vector(a, [half[g, y % m, q, t, oc] for q in range(n)]))
        return e if bias is None else e + bias[ocb, c]

    made = (x.shape[0], *sized(ceil_div(channels, block)), oh, ow, *sized(block))
    return compute(made, finished, "conv2d_winograd", dtype=x.dtype)


@dataclass(frozen=True)
class Tiles:
    """How the tiles of all images are numbered: `patch` has the images, rows and columns of a patch, `count` those of patches."""

    patch: tuple[Expr, ...]
    count: tuple[Expr, ...]

    @staticmethod
    def of(sizes: Sequence[Expr], patch: Ints | None) -> Tiles:
        """Returns the numbering of images, rows and columns of tiles; the last patches of a dimension may overhang."""
        chosen = sized(*(sizes if patch is None else patch))
        return Tiles(chosen, sized(*[ceil_div(s, p) for s, p in zip(sizes, chosen, strict=True)]))

    @property
    def patches(self) -> Expr:
        """The number of patches."""
        return sized(self.count[0] * self.count[1] * self.count[2])[0]

    @property
    def in_patch(self) -> Expr:
        """The number of tiles in a patch."""
        return sized(self.patch[0] * self.patch[1] * self.patch[2])[0]

    def covered(self, m: int, taps: int) -> tuple[Expr, ...]:
        """Returns the rows and columns of the padded input that all tiles of *m* outputs together read."""
        return sized(*[c * p * m + (taps - 1) for c, p in zip(self.count[1:], self.patch[1:], strict=True)])

    def place(self, at: Sequence[Expr], m: int, shape: Sequence[Expr]) -> tuple[Expr, Expr]:
        """Returns the patch, and the tile in it, of the output *at* an image, a row and a column of *shape*; *m* to a tile."""
        (pb, py, pz), (_, cy, cz), (b, y, z) = self.patch, self.count, at
        g = (b // pb * cy + y // (py * m)) * cz + z // (pz * m)
        t = (b % pb * py + y // m % py) * pz + z // m % pz
        return _simplified(g, at, shape), _simplified(t, at, shape)

    def position(self, g: Expr, t: Expr) -> tuple[Expr, ...]:
        """Returns the image, the row and the column of tiles of tile *t* in patch *g*: the inverse of `place`."""
        (pb, py, pz), (_, cy, cz) = self.patch, self.count
        found = g // (cy * cz) * pb + t // (py * pz), g // cz % cy * py + t // pz % py, g % cz * pz + t % pz
        return tuple([_simplified(e, (g, t), (self.patches, self.in_patch)) for e in found])


def _simplified(e: Expr, axes: Sequence[Expr], sizes: Sequence[Expr]) -> Expr:
    """Returns *e* simplified, *axes* being indices of dimensions of *sizes*."""
    bounds = size_bounds(e, *sizes)
    for a, size in zip(axes, sizes, strict=True):
        if isinstance(a, Var):
            bounds = bounds.bind(a, ZERO, size - ONE)
    return simplify(e, bounds)


def _transformed_input(p: Tensor, m: int, r: int, tiles: Tiles) -> Tensor:
    """Returns B' d B of every tile of p [N, C/c, H, W, c]: [patches, n, n, tiles in a patch, C]."""
    matrix, _, _ = matrices(m, r)
    n, lanes = len(matrix), p.shape[4]

    def by_columns(g: Expr, i: Expr, j: Expr, t: Expr, ch: Expr) -> Expr:
        b, y, z = tiles.position(g, t)
        at = [p[b, ch // lanes, y * m + k, z * m + j, ch % lanes] for k in range(n)]
        return choose(i, times_vector(matrix, at))

    shape = sized(tiles.patches, n, n, tiles.in_patch, p.shape[1] * lanes)
    half = compute(shape, by_columns, "winograd_columns", dtype=p.dtype)

    def by_rows(g: Expr, i: Expr, j: Expr, t: Expr, ch: Expr) -> Expr:
        return choose(j, times_vector(matrix, [half[g, i, k, t, ch] for k in range(n)]))

    return compute(shape, by_rows, "winograd_input", dtype=p.dtype)
