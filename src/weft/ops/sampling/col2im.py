"""Overlapping windows added up to the image that they cover."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Const, Expr, ExprLike, all_of, const, eq, select
from weft.ops.registry import operator
from weft.ops.shapes import check_shape, flatten_index, product, sized
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute, reduce_axis, sum_


@operator("col2im")
def col2im(
    x: Tensor,
    *,
    image: Sequence[ExprLike],
    block: Sequence[ExprLike],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
) -> Tensor:
    """Adds up windows [N, C * block, windows] of the size *block* to images [N, C, *image]; elements on the *pads* are left out.

    This is the transpose of taking windows apart (im2col), whose strides, pads and dilations these are. Sizes of the image
    and of the windows may be symbolic: that they fit is a requirement of the graph's then.
    """
    n, area = len(image), product(sized(*block))
    if x.rank != 3 or any(len(a) != k for a, k in ((block, n), (strides, n), (pads, 2 * n), (dilations, n))):
        raise TypeMismatch(f"col2im: windows of {x.rank} dimensions, and attributes that do not fit {n} of the image")
    counts = sized(
        *[(image[d] + pads[d] + pads[n + d] - dilations[d] * (block[d] - 1) - 1) // strides[d] + 1 for d in range(n)]
    )
    if any(isinstance(k, Const) and k.value < 1 for k in counts):
        raise TypeMismatch(f"col2im: windows of {tuple(block)} do not fit an image of {tuple(image)}")
    channels = sized(x.shape[1] // area)[0]
    wanted = (x.shape[0], channels * area, product(counts))
    if isinstance(area, Const) and all(isinstance(k, Const) for k in counts):
        check_shape("col2im: the tensor of windows", x.shape, wanted)
    axes = [reduce_axis(k, f"k{d}") for d, k in enumerate(block)]

    def covered(*i: Expr) -> object:
        moved = [i[2 + d] + pads[d] - axes[d] * dilations[d] for d in range(n)]
        window = [v // s for v, s in zip(moved, strides, strict=True)]
        begins = [eq(v % s, 0) for v, s in zip(moved, strides, strict=True) if s > 1]
        inside = [c for w, v, count in zip(window, moved, counts, strict=True) for c in (v >= 0, w < count)]
        row = i[1] * area + flatten_index(axes, sized(*block))
        element = x[i[0], row, flatten_index(window, counts)]
        return sum_(select(all_of([*inside, *begins]), element, const(0, x.dtype)), axes)

    return compute((x.shape[0], channels, *sized(*image)), covered, "col2im", dtype=x.dtype)
