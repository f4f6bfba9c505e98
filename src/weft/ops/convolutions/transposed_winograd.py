"""Transposed convolutions by Winograd's method: each phase of the stride is a convolution at stride 1, computed in tiles.

The phases differ in their weights, and in where their windows begin; phases whose windows begin at the same place share the
transformed input. See `transposed` for the phases, `winograd` for the method.
"""

from __future__ import annotations

from weft.ir import Expr, all_of, cast, ceil_div, const, select
from weft.ops.cases import choose
from weft.ops.convolutions.conv import Ints, transposed_sizes
from weft.ops.convolutions.cook_toom import matrices, times_vector
from weft.ops.convolutions.transposed_conv import Phases, pad_for_phases
from weft.ops.registry import operator
from weft.ops.shapes import sized
from weft.support.dtypes import f64
from weft.te import Tensor, compute, reduce_axis, sum_


@operator("pack_transposed_winograd_weight", prepares=True)
def pack_transposed_winograd_weight(w: Tensor, *, tile: int, taps: int, block: int, strides: Ints) -> Tensor:
    """[IC, OC, KH, KW] to [sh, sw, n, n, OC/block, IC, block]: G g G' of each phase's taps, computed in float64.

    *taps* is KH/sh and KW/sw, rounded up; they are turned around, as a convolution reads forwards.
    """
    _, g, _ = matrices(tile, taps)
    n, (sh, sw) = len(g), strides
    count = sized(ceil_div(w.shape[1], block))[0]

    def tap(py: Expr, px: Expr, oc: Expr, ic: Expr, k: int, y: Expr) -> Expr:
        at = py + (taps - 1 - k) * sh, px + (taps - 1 - y) * sw
        value = cast(w[ic, oc, at[0], at[1]], f64)
        return select(all_of([at[0] < w.shape[2], at[1] < w.shape[3]]), value, const(0, f64))

    def half(py: Expr, px: Expr, p: Expr, y: Expr, oc: Expr, ic: Expr) -> Expr:
        return choose(p, times_vector(g, [tap(py, px, oc, ic, k, y) for k in range(taps)]))

    halves = compute((sh, sw, n, taps, w.shape[1], w.shape[0]), half, "winograd_half", dtype=f64)

    def packed(py: Expr, px: Expr, p: Expr, q: Expr, o: Expr, ic: Expr, j: Expr) -> Expr:
        oc = o * block + j
        value = cast(choose(q, times_vector(g, [halves[py, px, p, k, oc, ic] for k in range(taps)])), w.dtype)
        return select(oc < w.shape[1], value, const(0, w.dtype))

    shape = (sh, sw, n, n, count, w.shape[0], block)
    return compute(shape, packed, "pack_transposed_winograd_weight", dtype=w.dtype)


@operator("conv_transpose2d_winograd")
def conv_transpose2d_winograd(
    x: Tensor,
    u: Tensor,
    bias: Tensor | None = None,
    *,
    tile: int,
    kernel: Ints,
    channels: int,
    strides: Ints = (1, 1),
    pads: Ints = (0, 0, 0, 0),
    output_padding: Ints = (0, 0),
) -> Tensor:
    """Transposed convolution of x [N, C/c, H, W, c] with u of `pack_transposed_winograd_weight` to [N, OC/c, OH, OW, c].

    *kernel* is (KH, KW), *channels* is OC; bias [OC/c, c].
    """
    m, (sh, sw) = tile, strides
    taps = -(-kernel[0] // sh)
    n = m + taps - 1
    oh, ow = transposed_sizes(x.shape[2:4], sized(*kernel), strides, pads, (1, 1), output_padding)
    y, z = (Phases(strides[d], pads[d], sized(taps)[0], size) for d, size in enumerate((oh, ow)))
    rows, columns = sized(ceil_div(y.rows, m), ceil_div(z.rows, m))
    v = _transformed_input(x, (y, z), (rows, columns), m)
    k = reduce_axis(u.shape[5], "k")

    def contraction(ry: Expr, rx: Expr, p: Expr, q: Expr, t: Expr, o: Expr, j: Expr) -> object:
        at = y.first(ry) - pads[0] // sh, z.first(rx) - pads[1] // sw
        return sum_(v[at[0], at[1], p, q, t, k] * u[y.phase(ry), z.phase(rx), p, q, o, k, j], [k])

    shape = sized(sh, sw, n, n, v.shape[4], u.shape[4], u.shape[6])
    product = compute(shape, contraction, "winograd_product", dtype=x.dtype)
    _, _, a = matrices(m, taps)
    lanes, panel = x.shape[4], u.shape[6]

    def by_rows(ry: Expr, rx: Expr, i: Expr, q: Expr, t: Expr, oc: Expr) -> Expr:
        return choose(i, times_vector(a, [product[ry, rx, p, q, t, oc // panel, oc % panel] for p in range(n)]))

    half = compute((sh, sw, m, n, v.shape[4], channels), by_rows, "winograd_rows", dtype=x.dtype)

    def finished(b: Expr, ocb: Expr, oy: Expr, ox: Expr, c: Expr) -> Expr:
        t, oc = (b * rows + oy // (sh * m)) * columns + ox // (sw * m), ocb * lanes + c
        at = [half[oy % sh, ox % sw, oy // sh % m, q, t, oc] for q in range(n)]
        e = choose(ox // sw % m, times_vector(a, at))
        return e if bias is None else e + bias[ocb, c]

    blocks = sized(ceil_div(channels, lanes))[0]
    return compute((x.shape[0], blocks, oh, ow, lanes), finished, "conv_transpose2d_winograd", dtype=x.dtype)


def _transformed_input(x: Tensor, phases: tuple[Phases, Phases], grid: tuple[Expr, Expr], m: int) -> Tensor:
    """Returns B' d B of every tile for each beginning of windows: [beginnings, beginnings, n, n, N * rows * columns, C]."""
    (y, z), (rows, columns), lanes = phases, grid, x.shape[4]
    p = pad_for_phases(x, y, z, *sized(rows * m, columns * m))
    [taps] = {int(getattr(f.taps, "value", 0)) for f in phases}
    matrix, _, _ = matrices(m, taps)
    n = len(matrix)
    first = [f.pad // f.stride for f in phases]
    begins = [(f.stride - 1 + f.pad) // f.stride - b + 1 for f, b in zip(phases, first, strict=True)]
    shape = sized(*begins, n, n, x.shape[0] * rows * columns, x.shape[1] * lanes)

    def by_columns(by: Expr, bx: Expr, i: Expr, j: Expr, t: Expr, ch: Expr) -> Expr:
        b, at = t // (rows * columns), (t // columns % rows * m + by + first[0], t % columns * m + bx + first[1])
        return choose(i, times_vector(matrix, [p[b, ch // lanes, at[0] + k, at[1] + j, ch % lanes] for k in range(n)]))

    half = compute(shape, by_columns, "winograd_columns", dtype=x.dtype)

    def by_rows(by: Expr, bx: Expr, i: Expr, j: Expr, t: Expr, ch: Expr) -> Expr:
        return choose(j, times_vector(matrix, [half[by, bx, i, k, t, ch] for k in range(n)]))

    return compute(shape, by_rows, "winograd_input", dtype=x.dtype)
