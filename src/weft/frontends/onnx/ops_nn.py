"""Convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontends.onnx.call import Call, Operand, Results, static
from weft.frontends.onnx.registry import translates
from weft.frontends.onnx.windows import Window, window_of
from weft.ir.expr import Expr


def _kernel(c: Call, weight: Operand) -> list[int]:
    """Returns the kernel's sizes, which the weight has and the attribute may repeat."""
    sizes = static(weight.shape[2:])
    if sizes is None:
        c.fail("the size of its kernel is symbolic")
    stated = c.ints("kernel_shape")
    if stated is not None and stated != sizes:
        c.fail(f"its kernel_shape is {stated}, but its weight's kernel is {sizes}")
    return sizes


@translates("Conv")
def conv(c: Call) -> Results:
    """Convolution in any number of dimensions."""
    return convolved(c, c.input(0), c.input(1), c.optional(2))


def convolved(c: Call, x: Operand, weight: Operand, bias: Operand | None) -> Operand:
    """Returns the convolution of *x* as the node's attributes say."""
    w = window_of(c, _kernel(c, weight), x.shape[2:])
    return c.add(
        "conv2d", x, weight, bias, strides=w.strides, pads=w.pads, dilations=w.dilations, group=c.integer("group", 1)
    )


@translates("ConvTranspose", limits="more than two spatial dimensions")
def conv_transpose(c: Call) -> Results:
    """Transposed convolution; one of one dimension is done as one of two."""
    x, weight, bias = c.input(0), c.input(1), c.optional(2)
    n = x.rank - 2
    if n not in (1, 2):
        c.fail(f"a transposed convolution of {n} spatial dimensions is not supported")
    w, extra = _transposed_window(c, _kernel(c, weight), x.shape[2:])
    if n == 1:
        x, weight = (c.reshape(v, [*v.shape[:2], 1, v.shape[2]]) for v in (x, weight))
    lead = [1] * (2 - n)
    pads = [0] * (2 - n)
    y = c.add(
        "conv_transpose2d", x, weight, bias, strides=[*lead, *w.strides], dilations=[*lead, *w.dilations],
        pads=[*pads, *w.pads[:n], *pads, *w.pads[n:]], output_padding=[*pads, *extra], group=c.integer("group", 1),
    )  # fmt: skip
    return y if n == 2 else c.reshape(y, [*y.shape[:2], y.shape[3]])


def _transposed_window(c: Call, kernel: list[int], spatial: Sequence[Expr]) -> tuple[Window, list[int]]:
    """Returns the window and the output padding; an output shape or automatic padding decides the pads."""
    n = len(kernel)
    strides, dilations = c.ints("strides") or [1] * n, c.ints("dilations") or [1] * n
    extra = c.ints("output_padding") or [0] * n
    pads = c.ints("pads") or [0] * (2 * n)
    wanted = c.ints("output_shape")
    auto = c.text("auto_pad", "NOTSET")
    if wanted is None and auto in ("NOTSET", "VALID"):
        return Window(kernel, strides, dilations, pads if auto == "NOTSET" else [0] * (2 * n)), extra
    sizes = static(spatial)
    if sizes is None:
        c.fail("its padding depends on a symbolic size", 'give it a number: shapes={"x": (1, 3, 224, 224)}')
    wanted = [s * st for s, st in zip(sizes, strides, strict=True)] if wanted is None else wanted[-n:]
    before, after = [], []
    for d in range(n):
        total = (sizes[d] - 1) * strides[d] + extra[d] + dilations[d] * (kernel[d] - 1) + 1 - wanted[d]
        small, large = max(total, 0) // 2, max(total, 0) - max(total, 0) // 2
        before.append(small if auto != "SAME_LOWER" else large)
        after.append(large if auto != "SAME_LOWER" else small)
        extra[d] += max(-total, 0)
    return Window(kernel, strides, dilations, before + after), extra


@translates("MaxPool", limits="the output Indices")
def max_pool(c: Call) -> Results:
    """The largest element of each window."""
    x = c.input(0)
    if c.wants(1):
        c.fail("the output Indices of MaxPool is not supported", "export the model without return_indices")
    ceil_mode = c.flag("ceil_mode", False)
    w = window_of(c, c.ints("kernel_shape") or [], x.shape[2:], ceil_mode)
    return c.add(
        "max_pool2d", x, kernel=w.kernel, strides=w.strides, pads=w.pads, dilations=w.dilations, ceil_mode=ceil_mode
    )


@translates("AveragePool")
def average_pool(c: Call) -> Results:
    """The mean of each window."""
    x, ceil_mode = c.input(0), c.flag("ceil_mode", False)
    w = window_of(c, c.ints("kernel_shape") or [], x.shape[2:], ceil_mode)
    return c.add(
        "avg_pool2d", x, kernel=w.kernel, strides=w.strides, pads=w.pads, dilations=w.dilations, ceil_mode=ceil_mode,
        count_include_pad=c.flag("count_include_pad", False),
    )  # fmt: skip


@translates("LpPool")
def lp_pool(c: Call) -> Results:
    """The p-norm of each window: its mean of p-th powers, times its size, to the power 1/p."""
    x, p, ceil_mode = c.input(0), c.integer("p", 2), c.flag("ceil_mode", False)
    w = window_of(c, c.ints("kernel_shape") or [], x.shape[2:], ceil_mode)
    powers = c.add("power", c.add("abs", x), c.scalar(p, x.dtype))
    sums = c.add(
        "sum_pool2d",
        powers,
        kernel=w.kernel,
        strides=w.strides,
        pads=w.pads,
        dilations=w.dilations,
        ceil_mode=ceil_mode,
    )
    return c.add("power", sums, c.scalar(1 / p, x.dtype))


def _spatial(x: Operand) -> tuple[int, ...]:
    return tuple(range(2, x.rank))


@translates("GlobalAveragePool")
def global_average_pool(c: Call) -> Results:
    """The mean over all places."""
    return c.add("reduce_mean", c.input(0), axes=_spatial(c.input(0)), keepdims=True)


@translates("GlobalMaxPool")
def global_max_pool(c: Call) -> Results:
    """The largest element over all places."""
    return c.add("reduce_max", c.input(0), axes=_spatial(c.input(0)), keepdims=True)


@translates("GlobalLpPool")
def global_lp_pool(c: Call) -> Results:
    """The p-norm over all places."""
    x, p = c.input(0), c.integer("p", 2)
    powers = c.add("power", c.add("abs", x), c.scalar(p, x.dtype))
    sums = c.add("reduce_sum", powers, axes=_spatial(x), keepdims=True)
    return c.add("power", sums, c.scalar(1 / p, x.dtype))


@translates("DepthToSpace")
def depth_to_space(c: Call) -> Results:
    """Moves blocks of channels to places; the channel's outer part (DCR) or inner part (CRD) says where."""
    x, b = c.input(0), c.integer("blocksize", 1)
    n, depth, h, w = x.shape
    inner = depth // (b * b)
    if c.text("mode", "DCR") == "DCR":
        y = c.transpose(c.reshape(x, [n, b, b, inner, h, w]), [0, 3, 4, 1, 5, 2])
    else:
        y = c.transpose(c.reshape(x, [n, inner, b, b, h, w]), [0, 1, 4, 2, 5, 3])
    return c.reshape(y, [n, inner, h * b, w * b])


@translates("SpaceToDepth")
def space_to_depth(c: Call) -> Results:
    """Moves blocks of places to channels."""
    x, b = c.input(0), c.integer("blocksize", 1)
    n, depth, h, w = x.shape
    y = c.transpose(c.reshape(x, [n, depth, h // b, b, w // b, b]), [0, 3, 5, 1, 2, 4])
    return c.reshape(y, [n, depth * (b * b), h // b, w // b])
