"""Convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontends.onnx.call import Call, Operand, Results, static, total
from weft.frontends.onnx.registry import translates
from weft.frontends.onnx.windows import Window, window_of
from weft.graph.graph import UNFIT
from weft.ir.expr import Expr, ExprLike


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


@translates("ConvTranspose")
def conv_transpose(c: Call) -> Results:
    """Transposed convolution in any number of dimensions."""
    x, weight, bias = c.input(0), c.input(1), c.optional(2)
    w, extra = _transposed_window(c, _kernel(c, weight), x.shape[2:])
    return c.add(
        "conv_transpose2d", x, weight, bias, strides=w.strides, dilations=w.dilations, pads=w.pads, output_padding=extra,
        group=c.integer("group", 1),
    )  # fmt: skip


def _transposed_window(c: Call, kernel: list[int], spatial: Sequence[Expr]) -> tuple[Window, list[int]]:
    """Returns the window and the output padding; an output shape or automatic padding decides the pads."""
    n = len(kernel)
    strides, dilations = c.ints_for("strides", n, 1), c.ints_for("dilations", n, 1)
    extra, pads = c.ints_for("output_padding", n, 0), c.ints_for("pads", 2 * n, 0)
    wanted = c.ints("output_shape")
    if len(spatial) != n or (wanted is not None and len(wanted) < n):
        c.fail(f"a kernel of {n} dimensions does not fit {len(spatial)}, or the output_shape {wanted}", UNFIT)
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


@translates("MaxPool")
def max_pool(c: Call) -> Results:
    """The largest element of each window, and where in the flat tensor it is."""
    x, ceil_mode = c.input(0), c.flag("ceil_mode", False)
    w = window_of(c, c.ints("kernel_shape") or [], x.shape[2:], ceil_mode)
    how = {"kernel": w.kernel, "strides": w.strides, "pads": w.pads, "dilations": w.dilations, "ceil_mode": ceil_mode}
    y = c.add("max_pool2d", x, **how)
    if not c.wants(1):
        return y
    return y, c.add("max_pool2d_indices", x, **how, column_major=c.flag("storage_order", False))


@translates("MaxUnpool")
def max_unpool(c: Call) -> Results:
    """Puts pooled elements back where their indices say, zero elsewhere."""
    x, where = c.input(0), c.input(1)
    w = window_of(c, c.ints("kernel_shape") or [], x.shape[2:])
    n = len(w.kernel)
    if where.shape != x.shape:
        c.fail(f"its indices should be of the shape of its input, not {where!r} for {x!r}", UNFIT)
    sizes = [(s - 1) * w.strides[d] + (w.kernel[d] - w.pads[d] - w.pads[n + d]) for d, s in enumerate(x.shape[2:])]
    shape = [*x.shape[:2], *sizes]
    target = c.sizes(2, "the output shape") if c.has(2) else shape
    empty = c.add("full", shape=(total(target),), value=0, dtype=x.dtype)
    flat = c.reshape(where, [total(x.shape)])
    if c.has(2):
        flat = _moved(c, flat, shape, target)
    filled = c.add("scatter_elements", empty, flat, c.reshape(x, [total(x.shape)]), axis=0, reduction="none")
    return c.reshape(filled, target)


def _moved(c: Call, positions: Operand, old: Sequence[ExprLike], new: Sequence[ExprLike]) -> Operand:
    """Returns row-major positions in a tensor of shape *old* as positions in one of shape *new*."""
    moved: Operand = c.scalar(0, positions.dtype)
    stride_old: ExprLike = 1
    stride_new: ExprLike = 1
    for a, b in zip(reversed(old), reversed(new), strict=True):
        digit = c.add("trunc_mod", c.add("div", positions, _size(c, stride_old)), _size(c, a))
        moved = c.add("add", moved, c.add("mul", digit, _size(c, stride_new)))
        stride_old, stride_new = total([stride_old, a]), total([stride_new, b])
    return moved


def _size(c: Call, size: ExprLike) -> Operand:
    return c.reshape(c.vector([size]), [])


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
    _check_order(c, p)
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


def _check_order(c: Call, p: int) -> None:
    if p < 1:
        c.fail(f"there is no norm of order {p}", "ONNX's orders are 1 and more; export the model again")


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
    _check_order(c, p)
    powers = c.add("power", c.add("abs", x), c.scalar(p, x.dtype))
    sums = c.add("reduce_sum", powers, axes=_spatial(x), keepdims=True)
    return c.add("power", sums, c.scalar(1 / p, x.dtype))


def _in_blocks(c: Call) -> tuple[Operand, int]:
    """Returns the images to be cut into blocks or put together from them, and the size of a block."""
    x, size = c.ranked(0, 4, "its input"), c.integer("blocksize", 1)
    if size < 1:
        c.fail(f"its blocks have the size {size}", "export the model again, with blocks of 1 or more")
    return x, size


@translates("DepthToSpace")
def depth_to_space(c: Call) -> Results:
    """Moves blocks of channels to places; the channel's outer part (DCR) or inner part (CRD) says where."""
    x, b = _in_blocks(c)
    n, depth, h, w = x.shape
    inner = depth // (b * b)
    if c.text("mode", "DCR") == "DCR":
        y = c.transpose(c.reshape(x, [n, b, b, inner, h, w]), [0, 3, 4, 1, 5, 2])
    else:
        y = c.transpose(c.reshape(x, [n, inner, b, b, h, w]), [0, 1, 4, 2, 5, 3])
    return c.reshape(y, [n, inner, h * b, w * b])


@translates("SpaceToDepth")
def space_to_depth(c: Call) -> Results:
    """Moves blocks of places to the outer part (DCR) or the inner part (CRD) of the channels."""
    x, b = _in_blocks(c)
    n, depth, h, w = x.shape
    order = [0, 3, 5, 1, 2, 4] if c.text("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    y = c.transpose(c.reshape(x, [n, depth, h // b, b, w // b, b]), order)
    return c.reshape(y, [n, depth * (b * b), h // b, w // b])
