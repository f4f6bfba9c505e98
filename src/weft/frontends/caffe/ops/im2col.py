"""Windows laid out as channels (im2col), and pyramids of pools."""

from __future__ import annotations

from weft.frontends.caffe.call import Call
from weft.frontends.caffe.ops.convolution import spatial, window_of
from weft.frontends.caffe.registry import Tops, layer
from weft.graph.builder import Operand, total
from weft.graph.composites.sequences import concat
from weft.graph.composites.windows import Window, window_elements


@layer("Im2col")
def im2col(c: Call) -> Tops:
    """The elements of each window as channels [N, C * kernel, ...] (im2col)."""
    p = c.parameters("convolution_param")
    x = spatial(c, p, c.input)
    n, w = x.rank - 2, window_of(c, p, x.rank - 2)
    y = window_elements(c, x, w, c.static(x)[1:])
    return c.reshape(y, [*c.input.shape[: c.input.rank - n - 1], total(y.shape[1 : n + 2]), *y.shape[n + 2 :]])


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
    """Returns the pool of one level: windows side by side, with pads at both ends for the elements that windows lack."""
    pads = [(k * b - s + 1) // 2 for k, b, s in zip(kernel, bins, sizes, strict=True)]
    if any(p >= k for p, k in zip(pads, kernel, strict=True)):
        c.fail(f"{x!r} is too small for its pyramid_height", "give it larger images, or a lower pyramid")
    window = Window(kernel, kernel, [1, 1], pads + pads)
    more = {} if op == "max_pool2d" else {"count_include_pad": True}
    return c.add(op, x, **window.attributes, ceil_mode=True, **more)
