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
from functools import cache

import numpy as np

from weft.ir.expr import Expr, all_of, cast, ceil_div, const, eq, select
from weft.ops.conv import Ints, window_size
from weft.ops.registry import operator
from weft.ops.shapes import sized
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
    x: Tensor,
    u: Tensor,
    bias: Tensor | None = None,
    *,
    tile: int,
    kernel: int,
    channels: int,
    block: int,
    pads: Ints = (0, 0, 0, 0),
) -> Tensor:
    """Convolution at stride 1 of x [N, C/c, H, W, c] with u of `pack_winograd_weight` to [N, OC/block, OH, OW, block].

    *kernel* x *kernel* taps in tiles of *tile* x *tile* outputs; *channels* is OC; bias [OC/block, block].
    """
    m, n = tile, tile + kernel - 1
    size = sized(kernel)[0]
    oh = window_size(sized(x.shape[2] + (pads[0] + pads[2]))[0], size, 1, 1)
    ow = window_size(sized(x.shape[3] + (pads[1] + pads[3]))[0], size, 1, 1)
    rows, columns = sized(ceil_div(oh, m), ceil_div(ow, m))
    v = _transformed_input(x, pads, m, kernel, (rows, columns))
    k = reduce_axis(u.shape[3], "k")

    def contraction(p: Expr, q: Expr, t: Expr, o: Expr, j: Expr) -> object:
        return sum_(v[p, q, t, k] * u[p, q, o, k, j], [k])

    product = compute((n, n, v.shape[2], u.shape[2], u.shape[4]), contraction, "winograd_product", dtype=x.dtype)
    _, _, a = matrices(m, kernel)
    panel = u.shape[4]

    def by_rows(i: Expr, q: Expr, t: Expr, oc: Expr) -> Expr:
        return choose(i, times_vector(a, [product[p, q, t, oc // panel, oc % panel] for p in range(n)]))

    half = compute((m, n, v.shape[2], sized(channels)[0]), by_rows, "winograd_rows", dtype=x.dtype)

    def finished(b: Expr, ocb: Expr, y: Expr, z: Expr, c: Expr) -> Expr:
        t, oc = (b * rows + y // m) * columns + z // m, ocb * block + c
        e = choose(z % m, times_vector(a, [half[y % m, q, t, oc] for q in range(n)]))
        return e if bias is None else e + bias[ocb, c]

    shape = (x.shape[0], *sized(ceil_div(channels, block)), oh, ow, *sized(block))
    return compute(shape, finished, "conv2d_winograd", dtype=x.dtype)


def _transformed_input(x: Tensor, pads: Ints, m: int, r: int, grid: tuple[Expr, Expr]) -> Tensor:
    """Returns B' d B of every tile: [n, n, N * rows * columns, C]."""
    n, (rows, columns) = m + r - 1, grid
    shape = (x.shape[0], x.shape[1], *sized(rows * m + (r - 1), columns * m + (r - 1)), x.shape[4])

    def padded(b: Expr, cb: Expr, y: Expr, z: Expr, c: Expr) -> Expr:
        h, w = y - pads[0], z - pads[1]
        inside = all_of([h >= 0, h < x.shape[2], w >= 0, w < x.shape[3]])
        return select(inside, x[b, cb, h, w, c], const(0, x.dtype))

    p = x if tuple(shape) == tuple(x.shape) else compute(shape, padded, "pad", dtype=x.dtype)
    matrix, _, _ = matrices(m, r)

    def by_columns(i: Expr, j: Expr, t: Expr, ch: Expr) -> Expr:
        b, y, z = t // (rows * columns), t // columns % rows, t % columns
        at = [p[b, ch // lanes, y * m + k, z * m + j, ch % lanes] for k in range(n)]
        return choose(i, times_vector(matrix, at))

    lanes = x.shape[4]
    tiles = sized(x.shape[0] * rows * columns)[0]
    channels = sized(x.shape[1] * lanes)[0]
    half = compute((n, n, tiles, channels), by_columns, "winograd_columns", dtype=x.dtype)

    def by_rows(i: Expr, j: Expr, t: Expr, ch: Expr) -> Expr:
        return choose(j, times_vector(matrix, [half[i, k, t, ch] for k in range(n)]))

    return compute((n, n, tiles, channels), by_rows, "winograd_input", dtype=x.dtype)
