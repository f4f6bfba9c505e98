"""Convolutions of float32 on channels in blocks, as sums of products of parts in bf16 (`factors_in_parts`)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import ONE, ZERO, Expr, const, select
from weft.ops.convolutions.conv import pad_spatial, window_sizes
from weft.ops.dot_products.factors_in_parts import GROUP, LEFT_PARTS, PARTS, RIGHT_PARTS, looked_up, part_of
from weft.ops.dot_products.grouped_matmul import widened_product
from weft.ops.registry import operator
from weft.ops.shapes import same_size, show_shape, sized
from weft.support.dtypes import bf16, f32
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute, reduce_axis, sum_

Ints = Sequence[int]


@operator("pack_conv_weight_parts", prepares=True)
def pack_conv_weight_parts(w: Tensor, *, in_block: int, out_block: int) -> Tensor:
    """float32 [OC, IC, KH, KW] to bf16 [OC/o, IC/i, KH, KW, 3, i/2, o, 2], read in order by `conv2d_in_parts`."""
    if w.dtype is not f32:
        raise TypeMismatch(f"pack_conv_weight_parts takes float32, not {w.dtype}")
    blocks = -(-w.shape[0] // out_block), -(-w.shape[1] // in_block)
    shape = sized(*blocks, *w.shape[2:], PARTS, in_block // GROUP, out_block, GROUP)

    def packed(oo: Expr, ii: Expr, y: Expr, x: Expr, part: Expr, i: Expr, o: Expr, t: Expr) -> Expr:
        oc, ic = oo * out_block + o, ii * in_block + i * GROUP + t
        inside = select(oc < w.shape[0], part_of(w[oc, ic, y, x], part), const(0, bf16))
        return select(ic < w.shape[1], inside, const(0, bf16))

    return compute(shape, packed, "pack_conv_weight_parts", dtype=bf16)


@operator("conv2d_in_parts", reads_bits=True)
def conv2d_in_parts(
    x: Tensor,
    w: Tensor,
    *,
    strides: Ints = (1, 1),
    pads: Ints = (0, 0, 0, 0),
    dilations: Ints = (1, 1),
    panels: int = 1,
) -> Tensor:
    """Convolution of parts x [N, C/c, H, W, 3, c] with w [OC/o, C/c, KH, KW, 3, c/2, o, 2] to float32 [N, OC/(p o), H', W', p o].

    A block of the result has the columns of p *panels* of the weight, which lie one after another.
    """
    if not same_size(x.shape[5], w.shape[5] * GROUP) or not same_size(x.shape[1], w.shape[1]):
        raise TypeMismatch(f"conv2d_in_parts: {show_shape(x.shape)} has not the channels of {show_shape(w.shape)}")
    p = pad_spatial(x, pads)
    outs = window_sizes(p.shape[2:4], w.shape[2:4], strides, dilations)
    icb = reduce_axis(w.shape[1], "icb")
    taps = {d: reduce_axis(w.shape[d], n) for d, n in ((2, "ky"), (3, "kx")) if w.shape[d] is not ONE}
    ky, kx = (taps.get(d, ZERO) for d in (2, 3))  # places of a single tap are read in order, as rows of a matrix are
    pair, ic, t = reduce_axis(len(LEFT_PARTS), "pair"), reduce_axis(w.shape[5], "ic"), reduce_axis(GROUP, "t")
    columns = w.shape[6]

    def contraction(n: Expr, ocb: Expr, oy: Expr, ox: Expr, oc: Expr) -> object:
        place = oy * strides[0] + ky * dilations[0], ox * strides[1] + kx * dilations[1]
        at = (n, icb, *place, looked_up(pair, LEFT_PARTS), ic * GROUP + t)
        panel, column = (ocb, oc) if panels == 1 else (ocb * panels + oc // columns, oc % columns)
        right = w[panel, icb, ky, kx, looked_up(pair, RIGHT_PARTS), ic, column, t]
        return sum_(widened_product(p[at], right), [icb, *taps.values(), pair, ic, t])

    shape = (x.shape[0], w.shape[0] // panels, *outs, columns * panels)
    return compute(shape, contraction, "conv2d_in_parts", dtype=f32)
