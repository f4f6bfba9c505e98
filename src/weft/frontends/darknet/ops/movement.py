"""Layers that combine the layers before them, or move their elements."""

from __future__ import annotations

from weft.frontends.darknet.call import Call
from weft.frontends.darknet.ops.convolution import activated, same_image
from weft.frontends.darknet.registry import layer
from weft.graph.builder import Operand
from weft.graph.composites.pixel_shuffle import depth_to_space, space_to_depth
from weft.graph.composites.sequences import concat
from weft.graph.composites.slicing import slice_axes


@layer("route")
def route(c: Call) -> Operand:
    """The channels of other layers, one after another; of each, only part `group_id` of `groups`."""
    names = c.integers("layers")
    if not names:
        c.wrong("layers", "should name the layers to put together", "write layers=-1,8")
    groups, part = c.integer("groups", 1, 1), c.integer("group_id", 0, 0)
    if part >= groups:
        c.wrong("group_id", f"should be below groups, {groups}")
    found = [_part(c, c.image(c.layer(n, "layers")), groups, part) for n in names]
    for x in found[1:]:
        if not same_image(found[0], x):
            c.fail(f"layers of other sizes can't be put together: {found[0]!r} and {x!r}", "mend its layers=")
    return concat(c, found, 1)


def _part(c: Call, x: Operand, groups: int, part: int) -> Operand:
    channels = c.static(x)[0]
    if channels % groups:
        c.wrong("groups", f"does not divide {channels} channels")
    size = channels // groups
    return x if groups == 1 else slice_axes(c, x, [1], [part * size], [(part + 1) * size], [1])


@layer("shortcut", "residual")
def shortcut(c: Call) -> Operand:
    """The sum with other layers; channels and pixels that only one has are added to nothing."""
    c.refuse("weights_type", "weights_normalization")
    y, names = c.image(), c.integers("from")
    alpha, beta = c.number("alpha", 1.0), c.number("beta", 1.0)
    if not names:
        c.wrong("from", "should name the layer to add", "write from=-3")
    for n in names:
        x = c.image(c.layer(n, "from"))
        if alpha != 1.0 and c.static(x) != c.static(y):
            c.wrong("alpha", "is supported for layers of one size")
        y = c.add("add", _times(c, y, alpha), _times(c, _fitted(c, x, y), beta))
    return activated(c, y, "linear")


def _times(c: Call, x: Operand, scale: float) -> Operand:
    return x if scale == 1.0 else c.add("mul", x, c.scalar(scale, x.dtype))


def _fitted(c: Call, x: Operand, like: Operand) -> Operand:
    """Returns *x* with every n-th pixel, and fewer channels or more (of zeros), so that its shape is that of *like*."""
    if not same_image(x, like):
        (_, h, w), (_, height, width) = c.static(x), c.static(like)
        step = w // width
        if step < 1 or (height * step, width * step) != (h, w):
            c.wrong("from", f"names a layer whose size can't be added: {x!r} to {like!r}", "mend from=, or the strides")
        x = slice_axes(c, x, [2, 3], [0, 0], [h, w], [step, step])
    have, want = c.static(x)[0], c.static(like)[0]
    if have > want:
        return slice_axes(c, x, [1], [0], [want], [1])
    return x if have == want else c.add("pad", x, pads=(0, 0, 0, 0, 0, want - have, 0, 0))


@layer("scale_channels")
def scale_channels(c: Call) -> Operand:
    """The layer `from`, each of its channels times an element of the layer before: squeeze and excitation."""
    c.refuse("scale_wh")
    x, scale = c.image(c.layer(c.integer("from", -1), "from")), c.image()
    if c.static(scale) != [c.static(x)[0], 1, 1]:
        c.wrong("from", f"names {x!r}, whose channels {scale!r} can't scale")
    return activated(c, c.add("mul", x, scale), "linear")


@layer("sam")
def sam(c: Call) -> Operand:
    """The product with another layer, element by element: spatial attention."""
    x, scale = c.image(c.layer(c.integer("from", -1), "from")), c.image()
    if c.static(scale) != c.static(x):
        c.wrong("from", f"names {x!r}, which has not the shape of {scale!r}")
    return activated(c, c.add("mul", x, scale), "linear")


@layer("upsample")
def upsample(c: Call) -> Operand:
    """Each pixel `stride` times in both directions, times `scale`."""
    x, stride, scale = c.image(), c.integer("stride", 2, 1), c.number("scale", 1.0)
    for axis in (2, 3):
        x = x if stride == 1 else c.add("repeat", x, axis=axis, times=stride)
    return _times(c, x, scale)


@layer("reorg", "reorg_old")
def reorg(c: Call) -> Operand:
    """Blocks of pixels to channels, as YOLOv2 was trained: of the image's elements in another shape, as blas.c reads them.

    `reverse` moves channels to blocks of pixels, and `extra` puts zeros after an image's elements.
    """
    c.refuse("flatten")
    if extra := c.integer("extra", 0, 0):
        return c.add("pad", c.flat(), pads=(0, 0, 0, extra))
    x, s = c.image(), c.integer("stride", 1, 1)
    channels, h, w = c.static(x)
    if c.flag("reverse"):
        if channels % (s * s):
            c.wrong("stride", f"does not divide {x!r}: its square the channels")
        return depth_to_space(c, x, s, outer=True)
    if channels % (s * s) or h % s or w % s:
        c.wrong("stride", f"does not divide {x!r}: its square the channels, and itself the size")
    n = x.shape[0]
    blocks = space_to_depth(c, c.reshape(x, [n, channels // (s * s), h * s, w * s]), s, outer=True)
    return c.reshape(blocks, [n, channels * s * s, h // s, w // s])


@layer("reorg3d")
def reorg3d(c: Call) -> Operand:
    """Blocks of pixels to channels."""
    c.refuse("reverse", "flatten", "extra")
    x, s = c.image(), c.integer("stride", 1, 1)
    _, h, w = c.static(x)
    if h % s or w % s:
        c.wrong("stride", f"does not divide the size of {x!r}")
    return space_to_depth(c, x, s, outer=True)


@layer("crop")
def crop(c: Call) -> Operand:
    """The middle of an image, its elements moved from 0..1 to -1..1 unless `noadjust` is set."""
    x, height, width = c.image(), c.integer("crop_height", 1, 1), c.integer("crop_width", 1, 1)
    _, h, w = c.static(x)
    if height > h or width > w:
        c.fail(f"{height} times {width} pixels can't be cropped from {x!r}", "mend crop_height and crop_width")
    top, left = (h - height) // 2, (w - width) // 2
    y = slice_axes(c, x, [2, 3], [top, left], [top + height, left + width], [1, 1])
    if c.flag("noadjust"):
        return y
    return c.add("sub", c.add("mul", y, c.scalar(2.0, y.dtype)), c.scalar(1.0, y.dtype))


@layer("dropout", "cost", "empty", "silence")
def unchanged(c: Call) -> Operand:
    """Layers of training, which do nothing to a result."""
    return c.input
