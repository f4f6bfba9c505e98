"""Convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Final

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.graph.builder import static_sizes, total
from weft.graph.composites import pixel_shuffle, pooling
from weft.graph.composites.run_time.late_windows import same_padded, same_pool
from weft.graph.composites.windows import Window, filtered_columns, same_pads, transposed_pads
from weft.ir import INDEX, Expr, ExprLike, as_expr, eq
from weft.support.dtypes import DType


def _kernel(c: Call, weight: Operand) -> list[int]:
    """Returns the kernel's sizes, which the weight has and the attribute may repeat."""
    sizes = static_sizes(weight.shape[2:])
    if sizes is None:
        c.fail("the size of its kernel is symbolic")
    stated = c.ints("kernel_shape")
    if stated is not None and stated != sizes:
        c.fail(f"its kernel_shape is {stated}, but its weight's kernel is {sizes}")
    return sizes


_SAME: Final = ("SAME_UPPER", "SAME_LOWER")
_LOWER: Final = "SAME_LOWER"


def window_of(c: Call, kernel: Sequence[int], spatial: Sequence[Expr]) -> Window:
    """Reads the window of *kernel* over dimensions of the sizes *spatial*."""
    w, auto = _stated_window(c, kernel, spatial), c.text("auto_pad", "NOTSET")
    if auto not in _SAME:
        return w
    return replace(w, pads=same_pads(c, kernel, w.strides, w.dilations, spatial, lower=auto == _LOWER))


def _padded_window(c: Call, x: Operand, kernel: Sequence[int], around: float = 0.0) -> tuple[Operand, Window]:
    """Returns the images that windows of *kernel* are over, and these.

    Images of symbolic sizes are padded with *around* where the padding depends on the remainder by a stride.
    """
    w, auto = _stated_window(c, kernel, x.shape[2:]), c.text("auto_pad", "NOTSET")
    if auto not in _SAME:
        return x, w
    made, pads = same_padded(c, x, kernel, w.strides, w.dilations, around, lower=auto == _LOWER)
    return made, replace(w, pads=pads)


def _stated_window(c: Call, kernel: Sequence[int], spatial: Sequence[Expr]) -> Window:
    """Reads a window as the attributes state it, without padding that follows from sizes."""
    n = len(kernel)
    strides = c.ints("strides") or [1] * n
    dilations = c.ints("dilations") or [1] * n
    pads = c.ints("pads") or [0] * (2 * n)
    if len(pads) != 2 * n or len(strides) != n or len(dilations) != n or len(spatial) != n:
        c.fail(
            f"a kernel of {n} dimensions with {len(spatial)} spatial dimensions, strides {strides}, dilations {dilations} "
            f"and pads {pads} does not fit together"
        )
    pads = pads if c.text("auto_pad", "NOTSET") == "NOTSET" else [0] * (2 * n)
    return Window(list(kernel), strides, dilations, pads)


@translates("Conv")
def conv(c: Call) -> Results:
    """Convolution in any number of dimensions."""
    return convolved(c, c.input(0), c.input(1), c.optional(2))


def convolved(c: Call, x: Operand, weight: Operand, bias: Operand | None) -> Operand:
    """Returns the convolution of *x* as the node's attributes say."""
    images, w = _padded_window(c, x, _kernel(c, weight))
    return c.add(
        "conv2d",
        images,
        weight,
        bias,
        strides=w.strides,
        pads=w.pads,
        dilations=w.dilations,
        group=c.integer("group", 1),
    )


@translates("ConvTranspose")
def conv_transpose(c: Call) -> Results:
    """Transposed convolution in any number of dimensions."""
    x, weight, bias = c.input(0), c.input(1), c.optional(2)
    w, extra = _transposed_window(c, _kernel(c, weight), x.shape[2:])
    return c.add(
        "conv_transpose2d",
        x,
        weight,
        bias,
        strides=w.strides,
        dilations=w.dilations,
        pads=w.pads,
        output_padding=extra,
        group=c.integer("group", 1),
    )


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
    sizes = static_sizes(spatial)
    if sizes is None:
        c.fail("its padding depends on a symbolic size", 'give it a number: shapes={"x": (1, 3, 224, 224)}')
    wanted = [s * st for s, st in zip(sizes, strides, strict=True)] if wanted is None else wanted[-n:]
    return transposed_pads(Window(kernel, strides, dilations, pads), sizes, extra, wanted, lower=auto == "SAME_LOWER")


def _lowest(dtype: DType) -> float:
    return -inf if dtype.is_float else float(dtype.int_range[0])


@translates("MaxPool")
def max_pool(c: Call) -> Results:
    """The largest element of each window, and where in the flat tensor it is."""
    x, ceil_mode = c.input(0), c.flag("ceil_mode", False)
    if not c.wants(1):
        images, w = _padded_window(c, x, c.ints("kernel_shape") or [], _lowest(x.dtype))
        return c.add("max_pool2d", images, **w.attributes, ceil_mode=ceil_mode)
    w = window_of(c, c.ints("kernel_shape") or [], x.shape[2:])
    y = c.add("max_pool2d", x, **w.attributes, ceil_mode=ceil_mode)
    column_major = c.flag("storage_order", False)
    return y, c.add("max_pool2d_indices", x, **w.attributes, ceil_mode=ceil_mode, column_major=column_major)


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
    return pooling.max_unpool(
        c, x, where, shape, c.late_sizes(c.input(2), "size", "a size of the output") if c.has(2) else None
    )


@translates("AveragePool")
def average_pool(c: Call) -> Results:
    """The mean of each window."""
    x, ceil_mode, counts_padding = c.input(0), c.flag("ceil_mode", False), c.flag("count_include_pad", False)
    kernel, auto = c.ints("kernel_shape") or [], c.text("auto_pad", "NOTSET")
    if auto in _SAME and not counts_padding:
        w = _stated_window(c, kernel, x.shape[2:])
        return same_pool(c, "avg_pool2d", x, w.kernel, w.strides, 0.0, w.dilations, lower=auto == _LOWER)
    images, w = _padded_window(c, x, kernel)
    return c.add("avg_pool2d", images, **w.attributes, ceil_mode=ceil_mode, count_include_pad=counts_padding)


@translates("LpPool")
def lp_pool(c: Call) -> Results:
    """The p-norm of each window: its mean of p-th powers, times its size, to the power 1/p."""
    x, p, ceil_mode = c.input(0), c.integer("p", 2), c.flag("ceil_mode", False)
    w = window_of(c, c.ints("kernel_shape") or [], x.shape[2:])
    _check_order(c, p)
    return pooling.lp_pool(c, x, p, w, ceil_mode=ceil_mode)


def _check_order(c: Call, p: int) -> None:
    if p < 1:
        c.fail(f"there is no norm of order {p}", "ONNX's orders are 1 and more; export the model again")


@translates("GlobalAveragePool")
def global_average_pool(c: Call) -> Results:
    """The mean over all places."""
    return c.add("reduce_mean", c.input(0), axes=pooling.spatial_axes(c.input(0)), keepdims=True)


@translates("GlobalMaxPool")
def global_max_pool(c: Call) -> Results:
    """The largest element over all places."""
    return c.add("reduce_max", c.input(0), axes=pooling.spatial_axes(c.input(0)), keepdims=True)


@translates("GlobalLpPool")
def global_lp_pool(c: Call) -> Results:
    """The p-norm over all places."""
    x, p = c.input(0), c.integer("p", 2)
    _check_order(c, p)
    return pooling.global_lp_pool(c, x, p)


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
    return pixel_shuffle.depth_to_space(c, x, b, outer=c.text("mode", "DCR") == "DCR")


@translates("SpaceToDepth")
def space_to_depth(c: Call) -> Results:
    """Moves blocks of places to the outer part (DCR) or the inner part (CRD) of the channels."""
    x, b = _in_blocks(c)
    return pixel_shuffle.space_to_depth(c, x, b, outer=c.text("mode", "DCR") == "DCR")


@translates("DeformConv", limits="symbolic sizes of kernels")
def deform_conv(c: Call) -> Results:
    """A convolution whose windows' elements are moved by offsets, and scaled."""
    x, weight, bias = c.input(0), c.input(1), c.optional(3)
    kernel = _kernel(c, weight)
    w = window_of(c, kernel, x.shape[2:])
    groups, moved = c.integer("group", 1), c.integer("offset_group", 1)
    columns = c.add("deform_columns", x, c.input(2), c.optional(4), groups=moved, **w.attributes)
    return filtered_columns(c, columns, weight, bias, groups)


@translates("Col2Im")
def col2im(c: Call) -> Results:
    """Adds up overlapping windows to the images that they cover."""
    image = c.late_sizes(c.input(1), "image", "a size of the images", least=1)
    block = c.late_sizes(c.input(2), "window", "a size of the windows", least=1)
    n, x = len(image), c.ranked(0, 3, "the windows")
    strides, pads, dilations = c.ints_for("strides", n, 1), c.ints_for("pads", 2 * n, 0), c.ints_for("dilations", n, 1)
    if any(isinstance(s, Expr) for s in (*image, *block)):
        reach = [dilations[d] * (s - 1) + 1 for d, s in enumerate(block)]
        counts = [(s + pads[d] + pads[n + d] - reach[d]) // strides[d] + 1 for d, s in enumerate(image)]
        _require_size(c, "rows", x.shape[1], x.shape[1] // total(block) * total(block))
        _require_size(c, "windows", x.shape[2], total(counts))
    return c.add(
        "col2im",
        x,
        image=tuple(image),
        block=tuple(block),
        strides=tuple(strides),
        pads=tuple(pads),
        dilations=tuple(dilations),
    )


def _require_size(c: Call, what: str, own: Expr, wanted: ExprLike) -> None:
    """Makes calls fail in which a tensor of windows does not have the number of rows, or of windows, that sizes tell."""
    size = as_expr(wanted, INDEX)
    c.require(eq(own, size), f"its tensor has {{0}} {what}, and the sizes of images and windows make {{1}}", own, size)
