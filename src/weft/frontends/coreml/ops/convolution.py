"""Convolutions, and pools over windows, of images [N, C, ...]."""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontends.coreml.call import AGAIN, Call
from weft.frontends.coreml.registry import translates
from weft.graph.builder import Operand, static_sizes
from weft.graph.composites.pooling import lp_pool
from weft.graph.composites.windows import Window, same_pads, transposed_pads


def _each_side(c: Call, n: int) -> list[int]:
    """Returns the pads, which Core ML has before and after each dimension in turn, before all and after all."""
    given = c.ints("pad", [0] * (2 * n))
    if len(given) != 2 * n:
        c.fail(f"its pad has {len(given)} numbers for {n} dimensions", AGAIN)
    return [*given[::2], *given[1::2]]


def window(c: Call, x: Operand, kernel: Sequence[int]) -> Window:
    """Returns the window over the dimensions after the first two."""
    n = len(kernel)
    strides, dilations = c.ints("strides", [1] * n), c.ints("dilations", [1] * n)
    kind = c.text("pad_type", "valid")
    if kind == "valid":
        pads = [0] * (2 * n)
    elif kind == "custom":
        pads = _each_side(c, n)
    elif kind in ("same", "same_lower"):
        pads = same_pads(c, kernel, strides, dilations, x.shape[2:], lower=kind == "same_lower")
    else:
        c.fail(f"its pad_type {kind!r} is not supported", "use valid, same, same_lower or custom")
    return Window(list(kernel), strides, dilations, pads)


def _kernel(c: Call, w: Operand) -> list[int]:
    found = static_sizes(w.shape[2:])
    if found is None:
        c.fail(f"the sizes of its weight are not known: {w!r}", AGAIN)
    return found


@translates("conv")
def conv(c: Call) -> Operand:
    """A convolution."""
    x, w = c.operand(), c.operand("weight")
    how = window(c, x, _kernel(c, w))
    attributes = {"strides": how.strides, "pads": how.pads, "dilations": how.dilations}
    return c.add("conv2d", x, w, c.optional("bias"), **attributes, group=c.integer("groups", 1))


@translates("conv_transpose")
def conv_transpose(c: Call) -> Operand:
    """A transposed convolution."""
    x, w = c.operand(), c.operand("weight")
    kernel = _kernel(c, w)
    n = len(kernel)
    kind = c.text("pad_type", "valid")
    pads = _each_side(c, n) if kind == "custom" else [0] * (2 * n)
    how = Window(kernel, c.ints("strides", [1] * n), c.ints("dilations", [1] * n), pads)
    extra = [0] * n
    spatial = static_sizes(x.shape[2:])
    wanted = c.ints("output_shape")[-n:] if c.has("output_shape") else None
    if kind == "same" and wanted is None and spatial is not None:
        wanted = [s * k for s, k in zip(spatial, how.strides, strict=True)]
    if wanted is not None and kind != "custom":
        if spatial is None:
            c.fail(f"the sizes of its input are not known: {x!r}", "convert it with fixed shapes")
        how, extra = transposed_pads(how, spatial, extra, wanted, lower=False)
    elif wanted is not None and spatial is not None:
        reached = [
            (s - 1) * t + d * (k - 1) + 1 - how.pads[i] - how.pads[n + i]
            for i, (s, t, d, k) in enumerate(zip(spatial, how.strides, how.dilations, kernel, strict=True))
        ]
        extra = [w_ - r for w_, r in zip(wanted, reached, strict=True)]
    return c.add(
        "conv_transpose2d",
        x,
        w,
        c.optional("bias"),
        strides=how.strides,
        pads=how.pads,
        dilations=how.dilations,
        group=c.integer("groups", 1),
        output_padding=extra,
    )


@translates("max_pool")
def max_pool(c: Call) -> Operand:
    """The largest element of each window."""
    x = c.operand()
    how = window(c, x, c.ints("kernel_sizes"))
    return c.add("max_pool2d", x, **how.attributes, ceil_mode=c.flag("ceil_mode"))


@translates("avg_pool")
def avg_pool(c: Call) -> Operand:
    """The mean of each window."""
    x = c.operand()
    how = window(c, x, c.ints("kernel_sizes"))
    counted = not c.flag("exclude_padding_from_average")
    return c.add("avg_pool2d", x, **how.attributes, ceil_mode=c.flag("ceil_mode"), count_include_pad=counted)


@translates("l2_pool")
def l2_pool(c: Call) -> Operand:
    """The root of the sum of squares of each window."""
    x = c.operand()
    return lp_pool(c, x, 2, window(c, x, c.ints("kernel_sizes")), ceil_mode=c.flag("ceil_mode"))
