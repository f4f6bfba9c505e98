"""Layers that move elements, or leave them as they are."""

from __future__ import annotations

import math

from weft.frontends.caffe.call import Call
from weft.frontends.caffe.registry import Tops, layer
from weft.graph.builder import static_sizes, total
from weft.graph.composites.sequences import concat as concatenated
from weft.graph.composites.slicing import slice_axes
from weft.ir import as_expr


@layer("Dropout")
def dropout(c: Call) -> Tops:
    """Does nothing once a network is trained."""
    return c.input


@layer("Split")
def split(c: Call) -> Tops:
    """The input, by several names."""
    return (c.input,) * max(c.tops, 1)


@layer("Silence", "HDF5Output")
def silence(c: Call) -> Tops:
    """Takes inputs that nobody else takes; HDF5Output writes them to a file in training."""
    return ()


@layer("Concat")
def concat(c: Call) -> Tops:
    """The inputs one after another along an axis."""
    p, x = c.parameters("concat_param"), c.input
    return concatenated(c, c.inputs, c.axis(p.integer("concat_dim" if p.has("concat_dim") else "axis", 1), x))


@layer("Flatten")
def flatten(c: Call) -> Tops:
    """The dimensions from `axis` to `end_axis` as one."""
    p, x = c.parameters("flatten_param"), c.input
    first, last = c.axis(p.integer("axis", 1), x), c.axis(p.integer("end_axis", -1), x)
    if last < first:
        c.fail(f"end_axis is before axis: {last} and {first} of {x!r}", "mend its flatten_param")
    return c.reshape(x, [*x.shape[:first], total(x.shape[first : last + 1]), *x.shape[last + 1 :]])


@layer("Reshape")
def reshape(c: Call) -> Tops:
    """Another shape for the dimensions from `axis` on: 0 keeps a size, and -1 is as many as are left."""
    p, x = c.parameters("reshape_param"), c.input
    axis, count = p.integer("axis", 0), p.integer("num_axes", -1)
    first = axis if axis >= 0 else x.rank + 1 + axis
    last = x.rank if count == -1 else first + count
    if not 0 <= first <= last <= x.rank:
        c.fail(f"axes {first} to {last} are not those of {x!r}", "mend its reshape_param")
    wanted, old = p.inner("shape").integers("dim", -1), x.shape[first:last]
    if any(d == 0 and k >= len(old) for k, d in enumerate(wanted)) or wanted.count(-1) > 1:
        c.fail(f"{x!r} can't take the shape of dimensions {wanted}", "mend its reshape_param")
    made = [old[k] if d == 0 else d for k, d in enumerate(wanted)]
    if -1 in wanted:
        known, sizes = static_sizes([as_expr(d) for d in made if d != -1]), static_sizes(old)
        if known is None or sizes is None or 0 in known:
            c.fail(f"the size -1 of {wanted} can't be found for {x!r}", "write the number itself")
        made[wanted.index(-1)] = math.prod(sizes) // math.prod(known)
    return c.reshape(x, [*x.shape[:first], *made, *x.shape[last:]])


@layer("Permute")
def permute(c: Call) -> Tops:
    """The dimensions in another order; those that are not named follow."""
    order, x = c.parameters("permute_param").integers("order", 0), c.input
    order += [d for d in range(x.rank) if d not in order]
    if sorted(order) != list(range(x.rank)):
        c.fail(f"order: {order} is not one of the dimensions of {x!r}", "mend its permute_param")
    return c.transpose(x, order)


@layer("Crop")
def crop(c: Call) -> Tops:
    """The first input cut to the sizes of the second from `axis` on, at an offset."""
    p, (x, like) = c.parameters("crop_param"), c.two()
    first = c.axis(p.integer("axis", 2), x)
    axes = list(range(first, x.rank))
    offsets = p.integers("offset", 0) or [0]
    offsets = offsets * len(axes) if len(offsets) == 1 else offsets
    sizes, wanted = static_sizes(x.shape[first:]), static_sizes(like.shape[first:])
    if sizes is None or wanted is None or not len(offsets) == len(axes) == len(wanted):
        c.fail(f"{x!r} can't be cropped to {like!r} at the offsets {offsets}", "mend its crop_param")
    ends = [o + n for o, n in zip(offsets, wanted, strict=True)]
    if any(e > s for e, s in zip(ends, sizes, strict=True)):
        c.fail(f"{x!r} has no room for {like!r} at the offsets {offsets}", "mend its crop_param")
    return slice_axes(c, x, axes, offsets, ends, [1] * len(axes))


@layer("Tile")
def tile(c: Call) -> Tops:
    """The input several times along an axis."""
    p, x = c.parameters("tile_param"), c.input
    repeats = [1] * x.rank
    repeats[c.axis(p.integer("axis", 1), x)] = p.integer("tiles", 1, 1)
    return c.add("tile", x, repeats=tuple(repeats))
