"""Strided convolutions as convolutions at stride one, over the phases of their input.

Rows and columns that leave the same remainder by the stride are a *phase*; a convolution at stride s over C channels is one at
stride 1 over the s * s phases as channels, with windows of ceil(k / s) (the polyphase decomposition of multirate signal
processing; Vaidyanathan, "Multirate digital filters, filter banks, polyphase networks, and applications", 1990, section III).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from weft.ir import ONE, Expr, all_of, ceil_div, const, select
from weft.ops.convolutions.conv import Ints
from weft.ops.registry import operator
from weft.ops.shapes import sized
from weft.te import Tensor, compute

PLACES: Final = ("d", "y", "z")
"""The names of frames, rows and columns."""


def padded_phases(x: Tensor, strides: Ints, pads: Ints, sizes: Sequence[Expr], filled: int) -> Tensor:
    """[N, C/c, H, W, c] to [N, sh * sw * C/c', *sizes, c'], padded: channel (py * sw + px) * C + ic is x's, in one phase.

    Blocks stay as they are; those of one channel become blocks of *filled*, the last one filled up with zeros. Images may have
    any number of dimensions.
    """
    total_phases = prod(strides)
    channels, inner = sized(x.shape[1] * x.shape[-1])[0], x.shape[-1]
    total = sized(channels * total_phases)[0]
    block = sized(filled)[0] if inner is ONE else inner
    shape = sized(x.shape[0], ceil_div(total, block), *sizes, block)
    if total_phases == 1 and tuple(shape) == tuple(x.shape) and not any(pads[: len(strides)]):
        return x

    def split(n: Expr, cb: Expr, *at: Expr) -> Expr:
        *places, c = at
        ch = cb * block + c
        phase, ic = ch // channels, ch % channels
        found = [
            place * s + digit - before
            for place, s, digit, before in zip(places, strides, _digits(phase, strides), pads, strict=False)
        ]
        inside = [e for v, size in zip(found, x.shape[2:], strict=False) for e in (v >= 0, v < size)]
        inside += [ch < total] if inner is ONE else []
        return select(all_of(inside), x[n, ic // inner, *found, ic % inner], const(0, x.dtype))

    return compute(shape, split, "pad", dtype=x.dtype, axis_names=("n", "cb", *PLACES[-len(sizes) :], "c"))


def _digits(phase: Expr, strides: Ints) -> list[Expr]:
    """Returns the phase along each dimension, the last one's changing fastest."""
    digits: list[Expr] = []
    rest = phase
    for n, s in reversed(list(enumerate(strides))):
        digits.insert(0, rest % s if n else rest)
        rest = rest // s
    return digits


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
