"""Convolutions as products of matrices whose right-hand one, of patches of the image, is computed where it is read.

The matrix of patches [channels * taps, places] is a formula (im2col): a schedule for grids computes the parts of it that a block
of threads needs as it fetches them, padding included, so that it is never in memory (the implicit GEMM of Chetlur et al.,
"cuDNN: efficient primitives for deep learning", 2014).
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Expr, all_of, const, select
from weft.ops.convolutions.conv import Ints, add_bias, check_window, window_size
from weft.ops.registry import operator
from weft.ops.shapes import check_shape, product, sized
from weft.te import Tensor, as_stored, compute, reduce_axis, sum_


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
) -> Tensor:
    """Convolution of x [N, C, *S] with w [K1 * K2 ... * C, OC] to [N, OC, places], for any number of spatial dimensions.

    Channels are the innermost terms of the sum: the terms of a step are those of one tap, with one condition for its padding.
    """
    check_window("conv2d_implicit", x.rank - 2, len(kernel), strides, pads, dilations)
    taps = sized(*kernel)
    check_shape("the weight of conv2d_implicit", w.shape, (product((*taps, x.shape[1])), w.shape[1]))
    patches = as_stored(x, lambda t: _patches(t, taps, strides, pads, dilations))
    k = reduce_axis(w.shape[0], "k")
    shape = (x.shape[0], w.shape[1], patches.shape[2])
    y = compute(shape, lambda n, oc, p: sum_(w[k, oc] * patches[n, k, p], [k]), "conv2d", dtype=x.dtype)
    return add_bias(y, bias, lambda i: (i[1],))


def _patches(x: Tensor, taps: Sequence[Expr], strides: Ints, pads: Ints, dilations: Ints) -> Tensor:
    """Returns the elements that meet each tap and channel, for each place; zero where that is beyond the image."""
    rank, channels = len(taps), x.shape[1]
    windows = zip(x.shape[2:], taps, strides, dilations, pads[:rank], pads[rank:], strict=True)
    outs = [window_size(size + low + high, tap, stride, step) for size, tap, stride, step, low, high in windows]

    def patch(n: Expr, k: Expr, p: Expr) -> Expr:
        tap, place = _unravelled(k // channels, taps), _unravelled(p, outs)
        at = [o * s + t * d - b for o, s, t, d, b in zip(place, strides, tap, dilations, pads[:rank], strict=True)]
        inside = [i >= 0 for i, b in zip(at, pads[:rank], strict=True) if b]
        inside += [i < size for i, size, b in zip(at, x.shape[2:], pads[rank:], strict=True) if b]
        return select(all_of(inside), x[(n, k % channels, *at)], const(0, x.dtype))

    shape = (x.shape[0], product((*taps, channels)), product(outs))
    return compute(shape, patch, "patches", dtype=x.dtype)


def _unravelled(i: Expr, sizes: Sequence[Expr]) -> list[Expr]:
    """Returns the index in each dimension of the element that is at *i* in row-major order."""
    found: list[Expr] = []
    for size in reversed(sizes[1:]):
        found.insert(0, i % size)
        i = i // size
    return [i, *found]
