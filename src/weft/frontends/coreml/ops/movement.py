"""Operations that move elements: shapes, slices, padding, joining."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.frontends.coreml.call import AGAIN, Call
from weft.frontends.coreml.registry import translates
from weft.graph.builder import Builder, CompileTimeConstant, Operand, static_sizes, total
from weft.graph.composites.pixel_shuffle import depth_to_space, space_to_depth
from weft.graph.composites.sequences import concat as concat_of
from weft.graph.composites.sequences import stack as stack_of
from weft.graph.composites.slicing import FAR, reshape_open, slice_axes, split_axis, split_equally
from weft.ir import as_expr, maximum
from weft.ops import is_certain, simplify_size
from weft.support.dtypes import DType, i32, i64


@translates("reshape")
def reshape(c: Call) -> Operand:
    """The elements in another shape, of which one size may be -1, and 0 keeps a size."""
    x = c.operand()
    sizes = c.sizes("shape")
    kept = [x.shape[d] if s == 0 and d < x.rank else s for d, s in enumerate(sizes)] if sizes.count(0) else sizes
    return reshape_open(c, x, kept)


@translates("transpose")
def transpose(c: Call) -> Operand:
    """The dimensions in another order."""
    x = c.operand()
    return c.transpose(x, [c.axis_of(a, x.rank) for a in c.ints("perm")])


@translates("expand_dims")
def expand_dims(c: Call) -> Operand:
    """New dimensions of size one."""
    x, axes = c.operand(), c.ints("axes")
    places = {c.axis_of(a, x.rank + len(axes)) for a in axes}
    sizes = iter(x.shape)
    return c.reshape(x, [1 if d in places else next(sizes) for d in range(x.rank + len(places))])


@translates("squeeze")
def squeeze(c: Call) -> Operand:
    """Without dimensions of size one."""
    x = c.operand()
    ones = [d for d, s in enumerate(x.shape) if getattr(s, "value", None) == 1]
    axes = [c.axis_of(a, x.rank) for a in c.ints("axes", ones)]
    return c.reshape(x, [s for d, s in enumerate(x.shape) if d not in axes])


@translates("flatten2d")
def flatten2d(c: Call) -> Operand:
    """The dimensions before an axis as one, and those from it on."""
    x = c.operand()
    axis = c.integer("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    return c.reshape(x, [total(x.shape[:axis]), total(x.shape[axis:])])


@translates("concat")
def concat(c: Call) -> Operand:
    """Tensors one after another; numbers make a vector."""
    values = [x if x.rank else c.reshape(x, [1]) for x in c.operands("values")]
    axis = c.axis_of(c.integer("axis"), values[0].rank)
    return interleaved(c, values, axis) if c.flag("interleave") else concat_of(c, values, axis)


def interleaved(b: Builder, values: Sequence[Operand], axis: int) -> Operand:
    """Returns tensors of one shape as one, whose slices along *axis* are the first of each, then the second ..."""
    shape = [*values[0].shape]
    shape[axis] = shape[axis] * len(values)
    return b.reshape(stack_of(b, values, axis + 1), shape)


@translates("stack")
def stack(c: Call) -> Operand:
    """Tensors in a new dimension."""
    values = c.operands("values")
    return stack_of(c, values, c.axis_of(c.integer("axis"), values[0].rank + 1))


@translates("split")
def split(c: Call) -> tuple[Operand, ...]:
    """Pieces along an axis."""
    x = c.operand()
    axis = c.axis_of(c.integer("axis"), x.rank)
    if c.has("split_sizes"):
        return split_axis(c, x, axis, c.ints("split_sizes"))
    count = c.integer("num_splits")
    if count != len(c.types):
        c.fail(f"it makes {count} pieces, and has {len(c.types)} results", AGAIN)
    return split_equally(c, x, axis, count)


@translates("slice_by_index")
def slice_by_index(c: Call) -> Operand:
    """Every so many elements between two places; masks leave out ends, or drop dimensions."""
    x = c.operand()
    no = [0] * x.rank
    begin, end, steps = c.sizes("begin"), c.sizes("end"), c.ints("stride", [1] * x.rank)
    masks = [c.ints(f"{n}_mask", no) for n in ("begin", "end", "squeeze")]
    return slice_masked(c, x, begin, end, steps, masks)


def slice_masked(
    b: Builder,
    x: Operand,
    begin: Sequence[Any],
    end: Sequence[Any],
    steps: Sequence[int],
    masks: Sequence[Sequence[int]],
) -> Operand:
    """Returns every so many elements between two places; *masks* leave out beginnings and ends, and drop dimensions."""
    from_start, to_end, dropped = masks
    if not all(len(v) == x.rank for v in (begin, end, steps, *masks)):
        b.fail(f"its ranges are not those of {x!r}", AGAIN)
    starts, ends, by = [*begin], [*end], [*steps]
    for d in range(x.rank):
        back = by[d] < 0
        starts[d] = (FAR if back else 0) if from_start[d] else starts[d]
        ends[d] = (-FAR if back else FAR) if to_end[d] else ends[d]
        if dropped[d]:
            ends[d] = starts[d] + 1 if starts[d] != -1 else FAR
            by[d] = 1
    made = slice_axes(b, x, range(x.rank), starts, ends, by)
    return b.reshape(made, [s for d, s in enumerate(made.shape) if not dropped[d]]) if any(dropped) else made


@translates("slice_by_size")
def slice_by_size(c: Call) -> Operand:
    """So many elements from a place on; -1 stands for all that are left."""
    x, begin, sizes = c.operand(), c.sizes("begin"), c.sizes("size")
    if not len(begin) == len(sizes) == x.rank:
        c.fail(f"its ranges are not those of {x!r}", AGAIN)
    ends = [FAR if n == -1 else b + n for b, n in zip(begin, sizes, strict=True)]
    return slice_axes(c, x, range(x.rank), begin, ends, [1] * x.rank)


@translates("pad")
def pad(c: Call) -> Operand:
    """Elements around those of the last dimensions."""
    x, given = c.operand(), c.ints("pad")
    if len(given) % 2 or len(given) > 2 * x.rank:
        c.fail(f"its pad has {len(given)} numbers for {x!r}", AGAIN)
    whole = [0] * (2 * x.rank - len(given)) + given
    mode = c.text("mode", "constant")
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
    if mode not in names:
        c.fail(f"its mode {mode!r} is not supported", f"use one of {', '.join(names)}")
    return c.add("pad", x, pads=(*whole[::2], *whole[1::2]), mode=names[mode], value=c.number("constant_val", 0.0))


@translates("tile")
def tile(c: Call) -> Operand:
    """The tensor repeated along each dimension."""
    return c.add("tile", c.operand(), repeats=c.ints("reps"))


@translates("reverse")
def reverse(c: Call) -> Operand:
    """The elements in the opposite order along axes."""
    x = c.operand()
    axes = c.axes(x.rank)
    return slice_axes(c, x, axes, [FAR] * len(axes), [-FAR] * len(axes), [-1] * len(axes))


@translates("shape")
def shape(c: Call) -> Operand:
    """The sizes of a tensor."""
    return c.cast(c.vector(c.operand().shape), i32)


@translates("fill")
def fill(c: Call) -> Operand:
    """A tensor of one number."""
    value = c.optional("value") or c.scalar(0, c.dtype())
    return c.add("expand", c.reshape(value, ()), shape=tuple(c.sizes("shape")))


_MOST_NUMBERS: Final = 1 << 24


@translates("range_1d")
def range_1d(c: Call) -> Operand:
    """Numbers from a start to before an end."""
    dtype = c.operand("start").dtype
    if not all(_is_known(c.operand(n)) for n in ("start", "end")):
        return _range_of_sizes(c, dtype)
    start, end, step = c.number("start"), c.number("end"), c.number("step", 1.0)
    if not step or not -_MOST_NUMBERS < (end - start) / step <= _MOST_NUMBERS:
        c.fail(f"its range goes from {start} to {end} by {step}", AGAIN)
    made = np.arange(start, end, step)
    return c.kept_constant(made.astype(dtype.numpy))


def _is_known(x: Operand) -> bool:
    return isinstance(x, CompileTimeConstant) and not x.symbolic


def _range_of_sizes(c: Call, dtype: DType) -> Operand:
    """Returns integers between numbers that depend on sizes, or that a run computes."""
    if any(_is_known(c.operand(n)) and c.number(n) != c.integer(n) for n in ("start", "end")):
        c.fail("its range has steps between integers, and a number of them that a run tells", AGAIN)
    return range_between(c, c.operand("start"), c.operand("end"), c.integer("step", 1), dtype)


def range_between(b: Builder, start: Operand, end: Operand, step: int, dtype: DType) -> Operand:
    """Returns integers from *start* to before *end*, which depend on sizes, or which a run computes."""
    low, high = b.late_number(start, "start", "its start"), b.late_number(end, "end", "its end")
    if not step:
        b.fail("its step is 0", AGAIN)
    span = high - low if step > 0 else low - high
    size = simplify_size(as_expr(span + (abs(step) - 1)) // abs(step))
    size = size if is_certain(size >= 0) else simplify_size(maximum(size, 0))
    return b.cast(b.add("range", start=low, size=size, step=step), dtype)


@translates("gather")
def gather(c: Call) -> Operand:
    """The slices at indices along an axis."""
    x, indices = c.operand(), c.cast(c.operand("indices"), i64)
    axis, batch = c.axis_of(c.integer("axis", 0), x.rank), c.integer("batch_dims", 0)
    if not batch:
        return c.add("gather", x, indices, axis=axis)
    moved = c.transpose(x, [*range(batch), axis, *[d for d in range(batch, x.rank) if d != axis]])
    found = c.add("gather_nd", moved, c.reshape(indices, [*indices.shape, 1]), batch_dims=batch)
    at, between = indices.rank, axis - batch
    order = [*range(batch), *range(at, at + between), *range(batch, at), *range(at + between, found.rank)]
    return c.transpose(found, order)


@translates("gather_along_axis")
def gather_along_axis(c: Call) -> Operand:
    """For each index, the element at its place, but at the index along an axis."""
    x = c.operand()
    axis = c.axis_of(c.integer("axis", 0), x.rank)
    return c.add("gather_elements", x, c.cast(c.operand("indices"), i64), axis=axis)


@translates("gather_nd")
def gather_nd(c: Call) -> Operand:
    """The slices at tuples of indices."""
    given = c.cast(c.operand("indices"), i64)
    return c.add("gather_nd", c.operand(), given, batch_dims=c.integer("batch_dims", 0))


@translates("pixel_shuffle")
def pixel_shuffle(c: Call) -> Operand:
    """Channels moved to blocks of pixels."""
    return depth_to_space(c, c.operand(), c.integer("upscale_factor"), outer=False)


@translates("depth_to_space")
def to_space(c: Call) -> Operand:
    """Channels moved to blocks of pixels, of which those of one channel of the result are far apart."""
    return depth_to_space(c, c.operand(), c.integer("block_size"), outer=True)


@translates("space_to_depth")
def to_depth(c: Call) -> Operand:
    """Blocks of pixels moved to channels."""
    return space_to_depth(c, c.operand(), c.integer("block_size"), outer=True)


@translates("pixel_unshuffle")
def pixel_unshuffle(c: Call) -> Operand:
    """Blocks of pixels moved to channels, those of one channel side by side."""
    return space_to_depth(c, c.operand(), c.integer("downscale_factor"), outer=False)


@translates("reshape_like")
def reshape_like(c: Call) -> Operand:
    """The elements in a shape of which parts are dimensions of other tensors."""
    others = c.operands("ref_tensors")
    begins, ends, masks = (c.listed(name) for name in ("begins", "ends", "end_masks"))
    sizes = [s for x, b, e, m in zip(others, begins, ends, masks, strict=True) for s in x.shape[b : None if m else e]]
    return c.reshape(c.operand(), sizes)


@translates("sliding_windows")
def sliding_windows(c: Call) -> Operand:
    """Windows along an axis, each with its elements in a new dimension behind it."""
    return windows_along(c, c.operand(), c.integer("axis"), c.integer("size"), c.integer("stride", 1))


def windows_along(b: Builder, x: Operand, axis: int, size: int, step: int) -> Operand:
    """Returns windows of *size* elements along an axis, every *step*: each window's elements in a new dimension behind it."""
    axis = b.axis_of(axis, x.rank)
    length = static_sizes(x.shape[axis : axis + 1])
    if length is None or size < 1 or step < 1 or size > length[0]:
        b.fail(f"its windows of {size} elements are not those of {x!r}", AGAIN)
    rows = np.add.outer(np.arange(0, length[0] - size + 1, step), np.arange(size))
    return b.add("gather", x, CompileTimeConstant(rows.astype(np.int64)), axis=axis)
