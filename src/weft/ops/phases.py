"""Strided convolutions as convolutions at stride one, over the phases of their input.

Rows and columns that leave the same remainder by the stride are a *phase*; a convolution at stride s over C channels is one at
stride 1 over the s * s phases as channels, with windows of ceil(k / s) (the polyphase decomposition of multirate signal
processing; Vaidyanathan, "Multirate digital filters, filter banks, polyphase networks, and applications", 1990, section III).
"""

from __future__ import annotations

from weft.ir.expr import Expr, all_of, ceil_div, const, select
from weft.ops.conv import Ints, window_size
from weft.ops.registry import operator
from weft.ops.shapes import sized
from weft.te import Tensor, compute


@operator("split_phases")
def split_phases(x: Tensor, *, kernel: Ints, strides: Ints, pads: Ints, block: int) -> Tensor:
    """[N, C/c, H, W, c] to [N, sh * sw * C/block, H', W', block], padded: channel (py * sw + px) * C + ic is x's, in one phase.

    H' and W' are what a convolution at stride 1 with ceil(*kernel* / *strides*) taps needs for the strided one's outputs.
    """
    (kh, kw), (sh, sw) = kernel, strides
    oh = window_size(sized(x.shape[2] + (pads[0] + pads[2]))[0], sized(kh)[0], sh, 1)
    ow = window_size(sized(x.shape[3] + (pads[1] + pads[3]))[0], sized(kw)[0], sw, 1)
    channels, inner = sized(x.shape[1] * x.shape[4])[0], x.shape[4]
    rows, columns = sized(oh + (-(-kh // sh) - 1), ow + (-(-kw // sw) - 1))

    def split(n: Expr, cb: Expr, y: Expr, z: Expr, c: Expr) -> Expr:
        ch = cb * block + c
        phase, ic = ch // channels, ch % channels
        h, w = y * sh + phase // sw - pads[0], z * sw + phase % sw - pads[1]
        inside = all_of([h >= 0, h < x.shape[2], w >= 0, w < x.shape[3]])
        return select(inside, x[n, ic // inner, h, w, ic % inner], const(0, x.dtype))

    shape = (x.shape[0], *sized(ceil_div(channels * (sh * sw), block)), rows, columns, *sized(block))
    return compute(shape, split, "split_phases", dtype=x.dtype)


@operator("split_weight_phases")
def split_weight_phases(w: Tensor, *, strides: Ints) -> Tensor:
    """[OC, IC, KH, KW] to [OC, sh * sw * IC, ceil(KH / sh), ceil(KW / sw)]: the taps that meet each phase, in its order."""
    sh, sw = strides
    channels = w.shape[1]

    def split(oc: Expr, ch: Expr, y: Expr, z: Expr) -> Expr:
        phase = ch // channels
        h, v = y * sh + phase // sw, z * sw + phase % sw
        return select(all_of([h < w.shape[2], v < w.shape[3]]), w[oc, ch % channels, h, v], const(0, w.dtype))

    shape = (w.shape[0], *sized(channels * (sh * sw), ceil_div(w.shape[2], sh), ceil_div(w.shape[3], sw)))
    return compute(shape, split, "split_weight_phases", dtype=w.dtype)
