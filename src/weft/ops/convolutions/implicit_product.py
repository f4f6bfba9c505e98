"""Convolutions as products of matrices whose right-hand one, of patches of the image, is computed where it is read.

The matrix of patches [channels * taps, places] is a formula (im2col): a schedule for grids computes the parts of it that a block
of threads needs as it fetches them, padding included, so that it is never in memory (the implicit GEMM of Chetlur et al.,
"cuDNN: efficient primitives for deep learning", 2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir import Expr, all_of, cast, const, index, prove, select, simplify
from weft.ops.convolutions.conv import Ints, add_bias, check_window, window_sizes
from weft.ops.dot_products.rounded_factors import tf32_bits
from weft.ops.dot_products.tf32_matmul import TF32Numbers
from weft.ops.registry import operator
from weft.ops.shapes import product, show_shape, size_bounds, sized
from weft.support.dtypes import DType, u32
from weft.support.errors import TypeMismatch
from weft.te import Tensor, Widened, as_stored, compute, reduce_axis, sum_


@operator("conv2d_implicit")
def conv2d_implicit(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    kernel: Ints,
    strides: Ints = (1, 1),
    pads: Ints = (0, 0, 0, 0),
    dilations: Ints = (1, 1),
    merged: bool = False,
    trans: bool = False,
    channels: int | None = None,
) -> Tensor:
    """Convolution of x [N, C, *S] with w [K1 * K2 ... * C, OC] to [N, OC, places], for any number of spatial dimensions.

    Channels are the innermost terms of the sum: the terms of a step are those of one tap, with one condition for its padding. The
    weight may have more rows, of zeros, so that all steps are whole. With *merged*, the images are in the columns of one product,
    beside each other. With *trans*, the weight is [OC, K1 * K2 ... * C]. With *channels*, each tap has so many terms, of which
    those beyond the image's C are zeros.

    Patches are in the type of the weight, to which they are rounded where they are read; products are summed in float32. A weight
    of u32 is of the bits of numbers in tf32.
    """
    check_window("conv2d_implicit", x.rank - 2, len(kernel), strides, pads, dilations)
    taps = sized(*kernel)
    terms = product((*taps, x.shape[1] if channels is None else index(channels)))
    w = TF32Numbers.of(w) if w.dtype is u32 else w
    made, rows = w.shape if trans else reversed(w.shape)
    if prove(rows < terms, size_bounds(terms)):
        raise TypeMismatch(
            f"conv2d_implicit: {show_shape(w.shape)} has not a row for each of {show_shape((terms,))} terms"
        )
    window = _Window(taps, strides, pads, dilations)
    patches = _patches(x, w, window, (rows, terms), merged=merged)
    k, places = reduce_axis(rows, "k"), product(window.outs(x))
    shape = (x.shape[0], made, places)

    def weight(oc: Expr) -> Expr:
        return w[oc, k] if trans else w[k, oc]

    if merged:
        row = compute(
            (made, patches.shape[1]), lambda oc, p: sum_(weight(oc) * patches[k, p], [k]), "conv2d", dtype=x.dtype
        )
        y = compute(shape, lambda n, oc, p: row[oc, n * places + p], "images", dtype=x.dtype)
    else:
        y = compute(shape, lambda n, oc, p: sum_(weight(oc) * patches[n, k, p], [k]), "conv2d", dtype=x.dtype)
    return add_bias(y, bias, lambda i: (i[1],))


@dataclass(frozen=True)
class _Window:
    """The *taps* of a window in each dimension, its strides, the padding before and behind the image, and its dilations."""

    taps: Sequence[Expr]
    strides: Ints
    pads: Ints
    dilations: Ints

    def outs(self, x: Tensor) -> list[Expr]:
        """Returns the number of places in each dimension."""
        rank = len(self.taps)
        ends = zip(x.shape[2:], self.pads[:rank], self.pads[rank:], strict=True)
        return window_sizes([size + low + high for size, low, high in ends], self.taps, self.strides, self.dilations)


def _patches(x: Tensor, w: Tensor, window: _Window, sizes: tuple[Expr, Expr], *, merged: bool) -> Tensor:
    """Returns the patches in the type that *x* is stored in, or that of the weight *w* where this is narrower."""

    def made(t: Tensor) -> Tensor:
        stored = w.stored.dtype if isinstance(w, Widened) and not isinstance(x, Widened) else t.dtype
        return _patches_of(t, stored, window, sizes, merged=merged)

    if isinstance(w, Widened) and not isinstance(x, Widened):
        return type(w).of(made(x))
    return as_stored(x, made)


def _patches_of(x: Tensor, stored: DType, window: _Window, sizes: tuple[Expr, Expr], *, merged: bool) -> Tensor:
    """Returns the elements that meet each tap and channel, for each place; zero beyond the image, and its channels.

    *sizes* are the rows, of which those beyond the terms are zeros, and the terms. Images are the first dimension, or *merged*
    with the places in the last.
    """
    (rows, terms), outs, zero = sizes, window.outs(x), const(0, stored)
    channels, places = simplify(terms // product(window.taps)), product(outs)
    before, behind = window.pads[: len(outs)], window.pads[len(outs) :]

    def patch(n: Expr, k: Expr, p: Expr) -> Expr:
        tap, place = _unravelled(k // channels, window.taps), _unravelled(p, outs)
        steps = zip(place, window.strides, tap, window.dilations, before, strict=True)
        at = [o * s + t * d - b for o, s, t, d, b in steps]
        inside = [i >= 0 for i, b in zip(at, before, strict=True) if b]
        inside += [i < size for i, size, b in zip(at, x.shape[2:], behind, strict=True) if b]
        inside += [] if rows is terms else [k < terms]
        found = x[(n, k % channels, *at)]
        found = found if stored is x.dtype else tf32_bits(found) if stored is u32 else cast(found, stored)
        if channels is not x.shape[1]:
            found = select(k % channels < x.shape[1], found, zero)
        return select(all_of(inside), found, zero)

    if merged:
        shape = (rows, x.shape[0] * places)
        return compute(shape, lambda k, p: patch(p // places, k, p % places), "patches", dtype=stored)
    return compute((x.shape[0], rows, places), patch, "patches", dtype=stored)


def _unravelled(i: Expr, sizes: Sequence[Expr]) -> list[Expr]:
    """Returns the index in each dimension of the element that is at *i* in row-major order."""
    found: list[Expr] = []
    for size in reversed(sizes[1:]):
        found.insert(0, i % size)
        i = i // size
    return [i, *found]
