"""Operations that move elements: shapes, slices, padding, joining."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.frontends.coreml.call import AGAIN, Call
from weft.frontends.coreml.registry import translates
from weft.graph.builder import Builder, Operand, total
from weft.graph.composites.pixel_shuffle import depth_to_space, space_to_depth
from weft.graph.composites.sequences import concat as concat_of
from weft.graph.composites.sequences import stack as stack_of
from weft.graph.composites.slicing import FAR, reshape_open, slice_axes, split_axis, split_equally
from weft.support.dtypes import i32, i64


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
    """Tensors one after another."""
    values = c.operands("values")
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
    from_start, to_end, dropped = (c.ints(f"{n}_mask", no) for n in ("begin", "end", "squeeze"))
    if not all(len(v) == x.rank for v in (begin, end, steps, from_start, to_end, dropped)):
        c.fail(f"its ranges are not those of {x!r}", AGAIN)
    for d in range(x.rank):
        back = steps[d] < 0
        begin[d] = (FAR if back else 0) if from_start[d] else begin[d]
        end[d] = (-FAR if back else FAR) if to_end[d] else end[d]
        if dropped[d]:
            end[d] = begin[d] + 1 if begin[d] != -1 else FAR
            steps[d] = 1
    made = slice_axes(c, x, range(x.rank), begin, end, steps)
    return c.reshape(made, [s for d, s in enumerate(made.shape) if not dropped[d]]) if any(dropped) else made


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
    start, end, step = c.number("start"), c.number("end"), c.number("step", 1.0)
    if not step or not -_MOST_NUMBERS < (end - start) / step <= _MOST_NUMBERS:
        c.fail(f"its range goes from {start} to {end} by {step}", AGAIN)
    made = np.arange(start, end, step)
    return c.kept_constant(made.astype(dtype.numpy))


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
