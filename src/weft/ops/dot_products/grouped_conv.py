"""Convolutions of bytes, summed in 32 bits: on channels as a model has them, and on blocks of them in groups of neighbours.

Padding holds the zero point of the input, so that the padded image less its zero point is padded with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Expr, const, select
from weft.ops.convolutions.conv import check_window, pad_spatial, window_sizes
from weft.ops.dot_products.grouped_matmul import accumulator_of, widened_product
from weft.ops.output_channels import Contraction, along
from weft.ops.registry import operator
from weft.ops.shapes import check_shape, same_size, show_shape, sized
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute, reduce_axis, sum_

Ints = Sequence[int]


@operator("conv2d_integer", reads_bits=True, contraction=Contraction(1, along(0)))
def conv2d_integer(
    x: Tensor,
    w: Tensor,
    zero: Tensor | None = None,
    *,
    strides: Ints = (1, 1),
    pads: Ints = (0, 0, 0, 0),
    dilations: Ints = (1, 1),
) -> Tensor:
    """Convolution of integers x [N, C, H, W] with w [OC, C, KH, KW] to [N, OC, H', W'] in 32 bits; padding holds *zero*."""
    check_window("conv2d_integer", x.rank - 2, w.rank - 2, strides, pads, dilations)
    if not same_size(x.shape[1], w.shape[1]):
        raise TypeMismatch(f"conv2d_integer: {show_shape(x.shape)} has not the channels of {show_shape(w.shape)}")
    p = _padded(x, pads, zero)
    outs = window_sizes(p.shape[2:], w.shape[2:], strides, dilations)
    ic, ky, kx = (reduce_axis(w.shape[d], n) for d, n in enumerate(("ic", "ky", "kx"), 1))

    def contraction(n: Expr, oc: Expr, oy: Expr, ox: Expr) -> object:
        at = (n, ic, oy * strides[0] + ky * dilations[0], ox * strides[1] + kx * dilations[1])
        return sum_(widened_product(p[at], w[oc, ic, ky, kx]), [ic, ky, kx])

    return compute((x.shape[0], w.shape[0], *outs), contraction, "conv2d_integer", dtype=accumulator_of(x.dtype))


@operator("conv2d_grouped", reads_bits=True)
def conv2d_grouped(
    x: Tensor,
    w: Tensor,
    zero: Tensor | None = None,
    *,
    strides: Ints = (1, 1),
    pads: Ints = (0, 0, 0, 0),
    dilations: Ints = (1, 1),
    panels: int = 1,
) -> Tensor:
    """`conv2d_integer` of x [N, C/c, H, W, c] with w [OC/o, C/c, KH, KW, c/g, o, g] to [N, OC/(p o), H', W', p o] in 32 bits.

    Neighbouring channels are summed in groups of g, as dot-product instructions do. A block of the result has the columns of p
    *panels* of the weight, which lie one after another.
    """
    group, block = w.shape[-1], x.shape[-1]
    if not same_size(block, w.shape[4] * group) or not same_size(x.shape[1], w.shape[1]):
        raise TypeMismatch(f"conv2d_grouped: {show_shape(x.shape)} has not the channels of {show_shape(w.shape)}")
    p = _padded(x, pads, zero)
    outs = window_sizes(p.shape[2:4], w.shape[2:4], strides, dilations)
    icb, ky, kx, ic, t = (
        reduce_axis(w.shape[d], n) for d, n in ((1, "icb"), (2, "ky"), (3, "kx"), (4, "ic"), (6, "t"))
    )
    columns = w.shape[5]

    def contraction(n: Expr, ocb: Expr, oy: Expr, ox: Expr, oc: Expr) -> object:
        at = (n, icb, oy * strides[0] + ky * dilations[0], ox * strides[1] + kx * dilations[1], ic * group + t)
        panel, column = (ocb, oc) if panels == 1 else (ocb * panels + oc // columns, oc % columns)
        return sum_(widened_product(p[at], w[panel, icb, ky, kx, ic, column, t]), [icb, ky, kx, ic, t])

    shape = (x.shape[0], w.shape[0] // panels, *outs, columns * panels)
    return compute(shape, contraction, "conv2d_grouped", dtype=accumulator_of(x.dtype))


@operator("pack_conv_weight_groups", prepares=True)
def pack_conv_weight_groups(w: Tensor, *, in_block: int, out_block: int, group: int) -> Tensor:
    """[OC, IC, KH, KW] to [OC/o, IC/i, KH, KW, i/g, o, g]: read in order by `conv2d_grouped`, filled up with zeros."""
    shape = sized(
        -(-w.shape[0] // out_block), -(-w.shape[1] // in_block), *w.shape[2:], in_block // group, out_block, group
    )

    def packed(oo: Expr, ii: Expr, y: Expr, x: Expr, i: Expr, o: Expr, t: Expr) -> Expr:
        oc, ic = oo * out_block + o, ii * in_block + i * group + t
        inside = select(oc < w.shape[0], w[oc, ic, y, x], const(0, w.dtype))
        return select(ic < w.shape[1], inside, const(0, w.dtype))

    return compute(shape, packed, "pack_conv_weight_groups", dtype=w.dtype)


def _padded(x: Tensor, pads: Ints, zero: Tensor | None) -> Tensor:
    """Pads with *zero*, or with 0; raises `TypeMismatch` for a zero point that is no scalar of the type of *x*."""
    if zero is None:
        return pad_spatial(x, pads)
    check_shape("the zero point of a convolution", zero.shape, ())
    if zero.dtype is not x.dtype:
        raise TypeMismatch(f"the zero point of {x.dtype} is to be {x.dtype}, not {zero.dtype}")
    return pad_spatial(x, pads, value=zero)
