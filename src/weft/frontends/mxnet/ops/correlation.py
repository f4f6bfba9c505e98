"""Images compared with others at all offsets, as networks of optical flow do (Dosovitskiy et al., "FlowNet", 2015)."""

from __future__ import annotations

from typing import Final

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import translates
from weft.graph.builder import Operand, static_sizes
from weft.graph.composites.sequences import concat

_MOST_OFFSETS: Final = 1 << 10
"""How many offsets images are compared at at most: each adds operators to the graph."""


@translates("Correlation")
def correlation(c: Call) -> Operand:
    """The mean product of windows of two images (or absolute difference), for each offset of the second in a square."""
    kernel, most = c.integer("kernel_size", 1), c.integer("max_displacement", 1)
    stride, step, padding = c.integer("stride1", 1), c.integer("stride2", 1), c.integer("pad_size", 0)
    if min(kernel, stride, step) < 1 or min(most, padding) < 0 or kernel % 2 == 0:
        c.fail(
            f"windows of {kernel}, strides {stride} and {step}, offsets to {most} are not supported", "save it again"
        )
    offsets = range(-(most // step) * step, most + 1, step)
    if len(offsets) ** 2 > _MOST_OFFSETS:
        c.fail(f"{len(offsets) ** 2} offsets are not supported; {_MOST_OFFSETS} are the most", "use a larger stride2")
    pads = (0, 0, padding, padding) * 2
    x, y = (c.add("pad", c.input(k, rank=4), pads=pads, mode="constant", value=0.0) for k in (0, 1))
    sizes = static_sizes(x.shape[2:])
    if sizes is None:
        c.fail(f"the sizes of its images are not known: {x!r}", 'give them: shapes={"data": (1, 3, 224, 224)}')
    border = most + kernel // 2
    counts = [-(-(s - 2 * border) // stride) for s in sizes]
    if min(counts) < 1:
        c.fail(f"images of {sizes} pixels are too small for offsets to {most}", "give larger images")
    reach = [(n - 1) * stride + kernel for n in counts]
    here = _part(c, x, [most, most], reach)
    op = "mul" if c.flag("is_multiply", True) else "sub"
    made: list[Operand] = []
    for down in offsets:
        for right in offsets:
            both = c.add(op, here, _part(c, y, [most + down, most + right], reach))
            made.append(c.add("reduce_mean", both if op == "mul" else c.add("abs", both), axes=(1,), keepdims=True))
    window = {"kernel": [kernel] * 2, "strides": [stride] * 2, "pads": [0] * 4, "dilations": [1, 1]}
    return c.add("avg_pool2d", concat(c, made, 1), **window, ceil_mode=False, count_include_pad=True)


def _part(c: Call, x: Operand, begin: list[int], sizes: list[int]) -> Operand:
    """Returns a part of images; those that are padded too little for the last window go on with zeros."""
    ends = [b + s for b, s in zip(begin, sizes, strict=True)]
    return c.add("slice", x, starts=tuple(begin), ends=tuple(ends), axes=(2, 3))
