"""The windows of a deformable convolution: each of their elements is moved by an offset that is data."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.ir import Expr, cast
from weft.ops.registry import operator
from weft.ops.sampling.corners import corners, sampled
from weft.ops.shapes import check_shape, flatten_index, sized, unflatten_index
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute


@operator("deform_columns")
def deform_columns(
    x: Tensor,
    offset: Tensor,
    mask: Tensor | None = None,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    groups: int = 1,
    padding: str = "zeros",
) -> Tensor:
    """The windows [N, C * kernel, *O] of images x [N, C, *S] (im2col), their elements moved by offsets between elements.

    *offset* is [N, groups * kernel * n, *O] for n dimensions *S*, *mask*, which scales the elements, [N, groups * kernel, *O];
    each group of channels has its own. Outside of the images are zeros, or what *padding* says (`corners`). See Dai et al.,
    "Deformable convolutional networks", 2017, and Zhu et al., "Deformable ConvNets v2", 2019, for the mask.
    """
    n, area = len(kernel), math.prod(kernel)
    if (
        x.rank != n + 2
        or offset.rank != n + 2
        or any(len(a) != k for a, k in ((strides, n), (pads, 2 * n), (dilations, n)))
    ):
        raise TypeMismatch(f"deform_columns: an image of {x.rank} dimensions, and attributes of {n} of a window")
    outs = [
        (x.shape[2 + d] + (pads[d] + pads[n + d] - dilations[d] * (kernel[d] - 1) - 1)) // strides[d] + 1
        for d in range(n)
    ]
    check_shape("deform_columns: the tensor of offsets", offset.shape, (x.shape[0], groups * area * n, *outs))
    if mask is not None:
        check_shape("deform_columns: the mask", mask.shape, (x.shape[0], groups * area, *outs))
    per_group = sized(x.shape[1] // groups)[0]

    def places(i: Sequence[Expr]) -> list[Expr]:
        (batch, number), at = i[:2], i[2:]
        tap = unflatten_index(number % area, sized(*kernel))
        return [
            cast(at[d] * strides[d] - pads[d] + tap[d] * dilations[d], x.dtype)
            + cast(offset[(batch, number * n + d, *at)], x.dtype)
            for d in range(n)
        ]

    made_of = corners(x, (x.shape[0], *sized(groups * area), *outs), places, padding=padding)

    def moved(*i: Expr) -> Expr:
        (batch, row), at = i[:2], i[2:]
        channel, element = row // area, row % area
        number = flatten_index((channel // per_group, element), sized(groups, area))
        value = sampled(x, (batch, channel), made_of, (batch, number, *at), padding)
        return value if mask is None else value * cast(mask[(batch, number, *at)], x.dtype)

    return compute((x.shape[0], x.shape[1] * area, *outs), moved, "deform_columns", dtype=x.dtype)
