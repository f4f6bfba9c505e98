"""Windows laid out as channels (im2col), and pyramids of pools."""

from __future__ import annotations

import numpy as np

from weft.frontends.caffe.call import Call
from weft.frontends.caffe.ops.convolution import spatial, window_of
from weft.frontends.caffe.registry import Tops, layer
from weft.graph.builder import CompileTimeConstant, Operand, total
from weft.graph.composites.sequences import concat
from weft.graph.composites.windows import Window


@layer("Im2col")
def im2col(c: Call) -> Tops:
    """The elements of each window as channels [N, C * kernel, ...] (im2col)."""
    p = c.parameters("convolution_param")
    x = spatial(c, p, c.input)
    n, w, sizes = x.rank - 2, window_of(c, p, x.rank - 2), c.static(x)[1:]
    y: Operand = c.add("pad", x, pads=(0, 0, *w.pads[:n], 0, 0, *w.pads[n:]), mode="constant", value=0.0)
    counts = list[int]()
    for d in range(n):  # dimension d as two, the elements of the window and the windows
        reach = w.dilations[d] * (w.kernel[d] - 1) + 1
        counts.append((sizes[d] + 2 * w.pads[d] - reach) // w.strides[d] + 1)
        if counts[d] < 1:
            c.fail(f"its windows are larger than {x!r}", "mend its convolution_param")
        rows = np.add.outer(np.arange(w.kernel[d]) * w.dilations[d], np.arange(counts[d]) * w.strides[d])
        y = c.add("gather", y, CompileTimeConstant(rows.astype(np.int64)), axis=2 + 2 * d)
    y = c.transpose(y, [0, 1, *range(2, 2 * n + 2, 2), *range(3, 2 * n + 3, 2)])
    return c.reshape(y, [*c.input.shape[: c.input.rank - n - 1], total(y.shape[1 : n + 2]), *counts])


@layer("SPP")
def spatial_pyramid_pooling(c: Call) -> Tops:
    """Pools into 1, 4, 16 ... bins of an image, one after another (He et al., Spatial pyramid pooling, 2014)."""
    p, x = c.parameters("spp_param"), c.image()
    height = p.integer("pyramid_height", 1, 1)
    op = p.choice(
        "pool", "max_pool2d", {"MAX": "max_pool2d", "AVE": "avg_pool2d", "0": "max_pool2d", "1": "avg_pool2d"}
    )
    sizes = c.static(x)[1:]
    made = [_pooled(c, op, x, [-(-s // (1 << k)) for s in sizes], [1 << k] * 2, sizes) for k in range(height)]
    if height == 1:
        return made[0]
    return concat(c, [c.reshape(y, [y.shape[0], total(y.shape[1:])]) for y in made], 1)


def _pooled(c: Call, op: str, x: Operand, kernel: list[int], bins: list[int], sizes: list[int]) -> Operand:
    """Returns the pool of one level: windows side by side, what they are too large by as pads at both ends."""
    pads = [(k * b - s + 1) // 2 for k, b, s in zip(kernel, bins, sizes, strict=True)]
    if any(p >= k for p, k in zip(pads, kernel, strict=True)):
        c.fail(f"{x!r} is too small for its pyramid_height", "give it larger images, or a lower pyramid")
    window = Window(kernel, kernel, [1, 1], pads + pads)
    more = {} if op == "max_pool2d" else {"count_include_pad": True}
    return c.add(op, x, **window.attributes, ceil_mode=True, **more)
