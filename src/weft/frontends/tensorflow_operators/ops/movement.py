"""Operators that move elements: other shapes, pieces, joins, paddings, blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, Results
from weft.frontends.tensorflow_operators.images import is_channels_last, static_size
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.pixel_shuffle import depth_to_space, space_to_depth
from weft.graph.composites.run_time import late_axes, late_shapes
from weft.graph.composites.sequences import element, stack
from weft.graph.composites.slicing import MOST_PIECES, reshape_open, roll_axis, slice_axes, split_axis
from weft.ir import ONE
from weft.ops import simplify_size
from weft.support.dtypes import bool_

"""Pieces that a tensor is split into at most: a damaged number of them would take all memory."""


@translates("Reshape")
def reshape(c: Call) -> Operand:
    """Another shape; -1 is inferred from the number of elements."""
    x = c.tensor(0)
    if not c.is_known(1):
        return late_shapes.reshape_late(c, x, c.tensor(1), keeps_zero=True)
    return reshape_open(c, x, c.sizes(1, "the new shape"))


@translates("Squeeze")
def squeeze(c: Call) -> Operand:
    """Drops dimensions of size one: those given, or all."""
    x = c.tensor(0)
    axes = c.ints("squeeze_dims", [])
    drop = {c.axis_of(a, x.rank) for a in axes} if axes else {d for d, s in enumerate(x.shape) if s is ONE}
    wide = [d for d in sorted(drop) if x.shape[d] is not ONE]
    if wide:
        c.fail(f"dimension {wide[0]} of {x!r} can't be dropped: its size is not known to be one", "give it a number")
    return c.reshape(x, [s for d, s in enumerate(x.shape) if d not in drop])


@translates("ExpandDims")
def expand_dims(c: Call) -> Operand:
    """Adds a dimension of size one."""
    x = c.tensor(0)
    if not c.is_known(1):
        return late_axes.unsqueeze_named(c, x, c.tensor(1))
    axis = c.axis_at(1, x.rank + 1)
    return c.reshape(x, [*x.shape[:axis], ONE, *x.shape[axis:]])


@translates("Transpose", "ConjugateTranspose")
def transpose(c: Call) -> Operand:
    """The dimensions in another order; images that are moved to where they were are those."""
    x, perm = c.tensor(0), c.ints_at(1, "the order of dimensions")
    perm = [c.axis_of(d, x.rank) for d in perm]
    if sorted(perm) != list(range(x.rank)):
        c.fail(f"{perm} is no order of the dimensions of {x!r}", SAVE_AGAIN)
    if x.rank > 2 and perm == [0, x.rank - 1, *range(1, x.rank - 1)]:
        return c.first(x)
    if x.rank > 2 and perm == [0, *range(2, x.rank), 1]:
        return c.last(x)
    return c.permuted(x, perm)


@translates("ConcatV2", "Concat")
def concat(c: Call) -> Operand:
    """Tensors one after another along a dimension; those without elements are left out."""
    first = c.op == "Concat"
    given = c.tensors(1) if first else c.tensors(0, -1)
    axis = c.axis_at(0 if first else len(c.inputs) - 1, given[0].rank)
    return joined(c, given, axis)


def joined(c: Call, given: list[Operand], axis: int) -> Operand:
    """Returns tensors one after another along *axis*, images with their channels first."""
    rank = given[0].rank
    if any(x.rank != rank for x in given):
        c.fail(f"its inputs have several numbers of dimensions: {given[0]!r} and others", SAVE_AGAIN)
    kept = [x for x in given if getattr(x.shape[axis], "value", None) != 0] or given[:1]
    if len(kept) == 1:
        return kept[0]
    return c.along(lambda d, *v: c.add("concat", *v, axis=d), axis, *kept)


@translates("Pack")
def pack(c: Call) -> Operand:
    """Tensors of one shape along a new dimension."""
    given = c.tensors()
    return stack(c, given, c.axis_of(c.integer("axis", 0), given[0].rank + 1))


@translates("Unpack")
def unpack(c: Call) -> Results:
    """The elements along a dimension, which is dropped."""
    x = c.tensor(0)
    axis, count = c.axis_of(c.integer("axis", 0), x.rank), c.integer("num")
    if static_size(c, x.shape[axis], f"dimension {axis}, which it takes apart,") != count:
        c.fail(f"it takes dimension {axis} of {x!r} apart into {count}", SAVE_AGAIN)
    return tuple([element(c, x, axis, k) for k in range(count)])


@translates("Split")
def split(c: Call) -> Results:
    """Equal pieces along a dimension."""
    x, count = c.tensor(1), c.integer("num_split")
    axis = c.axis_at(0, x.rank)
    if not 1 <= count <= MOST_PIECES:
        c.fail(f"it splits {x!r} into {count} pieces; 1 to {MOST_PIECES} are supported", SAVE_AGAIN)
    return _pieces(c, x, axis, [simplify_size(x.shape[axis] // count)] * count)


@translates("SplitV")
def split_v(c: Call) -> Results:
    """Pieces of given sizes along a dimension; one of them may be -1."""
    x, sizes = c.tensor(0), c.sizes(1, "the sizes of the pieces")
    axis = c.axis_at(2, x.rank)
    if -1 in sizes:
        rest = x.shape[axis] - sum((s for s in sizes if s != -1), start=0)
        sizes = [simplify_size(rest) if isinstance(s, int) and s == -1 else s for s in sizes]
    return _pieces(c, x, axis, sizes)


def _pieces(c: Call, x: Operand, axis: int, sizes: list[Any]) -> Results:
    """Returns pieces, those of images with their channels first."""
    if x not in c.images:
        return split_axis(c, x, axis, sizes)
    moved = 0 if axis == 0 else 1 if axis == x.rank - 1 else axis + 1
    return tuple([c.last(p) for p in split_axis(c, c.first(x), moved, sizes)])


@translates("Pad", "PadV2")
def pad(c: Call) -> Operand:
    """Pads by a constant."""
    x = c.tensor(0)
    if c.has(2) and not c.is_known(2):
        return _padded_with(c, x, c.tensor(2))
    value = c.number_at(2, "the value of the padding") if c.has(2) else 0
    if not c.is_known(1):
        order = c.reshape(c.transpose(c.tensor(1, 2), [1, 0]), [2 * x.rank])
        filler = c.scalar(value, x.dtype)
        return late_shapes.pad_late(c, x, order, range(x.rank), filler, "constant")
    return _padded(c, x, _pairs(c, x), "constant", value)


def _padded_with(c: Call, x: Operand, value: Operand) -> Operand:
    """Pads by a number that a run computes."""
    pairs = _pairs(c, x)
    is_inside = _padded(c, c.add("full", shape=x.shape, value=1, dtype=x.dtype), pairs, "constant")
    return c.add("where", c.cast(is_inside, bool_), _padded(c, x, pairs, "constant"), c.reshape(value, ()))


def _pairs(c: Call, x: Operand) -> list[list[int]]:
    """Returns how much is added before and behind each dimension."""
    found = c.numbers(1, "the sizes of the padding")
    if found.shape != (x.rank, 2):
        c.fail(f"its padding is of shape {found.shape}, and {x!r} takes ({x.rank}, 2)", SAVE_AGAIN)
    return [[int(v) for v in pair] for pair in found]


def _padded(c: Call, x: Operand, pairs: list[list[int]], mode: str, value: Any = 0) -> Operand:
    if x not in c.images:
        return c.add("pad", x, pads=_flat(pairs), mode=mode, value=value)
    moved = [pairs[0], pairs[-1], *pairs[1:-1]]
    return c.last(c.add("pad", c.first(x), pads=_flat(moved), mode=mode, value=value))


def _flat(pairs: list[list[int]]) -> tuple[int, ...]:
    return (*[p[0] for p in pairs], *[p[1] for p in pairs])


@translates("MirrorPad")
def mirror_pad(c: Call) -> Operand:
    """Pads by a reflection at the edge, which is repeated (SYMMETRIC) or not (REFLECT)."""
    x, mode = c.tensor(0), c.text("mode")
    pairs = _pairs(c, x)
    if mode == "REFLECT":
        return _padded(c, x, pairs, "reflect")
    for d, (before, behind) in enumerate(pairs):
        if before or behind:
            size = static_size(c, x.shape[d], f"dimension {d}, which it pads,")
            if max(before, behind) > size:
                c.fail(f"it pads dimension {d} of {x!r} by {max(before, behind)}", "pad by no more than its size")
            first, last = [(0, before)] if before else [], [(size - behind, size)] if behind else []
            parts = [
                [_reversed(c, slice_axes(c, x, [d], [span[0]], [span[1]], [1]), d) for span in spans]
                for spans in (first, last)
            ]
            x = c.add("concat", *parts[0], x, *parts[1], axis=d)
    return x


@translates("Tile")
def tile(c: Call) -> Operand:
    """The tensor repeated along each dimension."""
    x = c.tensor(0)
    if not c.is_known(1):
        return late_shapes.tile_late(c, x, c.tensor(1))
    counts = c.sizes(1, "the repeats")
    if all(isinstance(n, int) for n in counts):
        return c.add("tile", x, repeats=tuple(counts))
    if len(counts) != x.rank or any(
        s is not ONE for s, n in zip(x.shape, counts, strict=True) if not isinstance(n, int)
    ):
        return late_shapes.tile_late(c, x, c.tensor(1))
    fixed = c.add("tile", x, repeats=tuple([n if isinstance(n, int) else 1 for n in counts]))
    shape = [s if isinstance(n, int) else n for s, n in zip(fixed.shape, counts, strict=True)]
    return c.add("expand", fixed, shape=tuple(shape))


@translates("BroadcastTo")
def broadcast_to(c: Call) -> Operand:
    """The tensor repeated along dimensions of size one."""
    if not c.is_known(1):
        return late_shapes.expand_late(c, c.tensor(0), c.tensor(1))
    return c.add("expand", c.tensor(0), shape=tuple(c.sizes(1, "the shape to broadcast to")))


@translates("ReverseV2")
def reverse(c: Call) -> Operand:
    """The elements along some dimensions in reverse order."""
    x = c.tensor(0)
    axes = c.axes_at(1, x.rank)
    return _reversed(c, x, *axes) if axes else x


@translates("Reverse")
def reverse_where(c: Call) -> Operand:
    """The elements in reverse order along the dimensions that a vector of bools says."""
    x = c.tensor(0)
    axes = [d for d, turns in enumerate(c.numbers(1, "which dimensions are reversed").reshape(-1)) if turns]
    return _reversed(c, x, *axes) if axes else x


def _reversed(c: Call, x: Operand, *axes: int) -> Operand:
    count = len(axes)
    return c.add("slice", x, starts=(-1,) * count, ends=(-(2**62),) * count, axes=axes, steps=(-1,) * count)


@translates("ReverseSequence")
def reverse_sequence(c: Call) -> Operand:
    """Reverses the first elements of each batch's sequence, as many as its length says."""
    x = c.tensor(0)
    batch, time = (c.axis_of(c.integer(n, 0), x.rank) for n in ("batch_dim", "seq_dim"))
    return c.add("reverse_sequence", x, c.tensor(1, 1), batch_axis=batch, time_axis=time)


@translates("Roll")
def roll(c: Call) -> Operand:
    """The elements moved along dimensions, those beyond the end to the beginning."""
    x = c.tensor(0)
    for shift, axis in zip(c.ints_at(1, "the shifts"), c.ints_at(2, "the axes"), strict=True):
        x = roll_axis(c, x, shift, c.axis_of(axis, x.rank))
    return x


@translates("DepthToSpace", "SpaceToDepth")
def shuffle(c: Call) -> Operand:
    """Channels moved to blocks of pixels, or back."""
    last, block = is_channels_last(c), c.integer("block_size")
    if c.text("data_format", "NHWC") not in ("NHWC", "NCHW") or block < 1:
        c.fail(f"blocks of {block} in the order {c.text('data_format')} are not supported", "use NHWC")
    x = c.first(c.tensor(0, 4), last=last)
    return c.last((depth_to_space if c.op == "DepthToSpace" else space_to_depth)(c, x, block, outer=True), last=last)


@translates("SpaceToBatchND", "SpaceToBatch")
def space_to_batch(c: Call) -> Operand:
    """Blocks of pixels moved to the batch, after padding."""
    x = c.tensor(0)
    block, pads = _blocks(c, "the padding")
    m, tail = len(block), x.shape[len(block) + 1 :]
    x = c.add("pad", x, pads=_flat([[0, 0], *pads, *[[0, 0]] * len(tail)]))
    sizes = [simplify_size(s // n) for s, n in zip(x.shape[1:], block, strict=False)]
    parts = [v for s, n in zip(sizes, block, strict=True) for v in (s, n)]
    y = c.reshape(x, [x.shape[0], *parts, *tail])
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(2 * m + 1, y.rank)]
    batch = x.shape[0] * int(np.prod(block))
    return c.reshape(c.transpose(y, order), [simplify_size(batch), *sizes, *tail])


@translates("BatchToSpaceND", "BatchToSpace")
def batch_to_space(c: Call) -> Operand:
    """Blocks of pixels moved back from the batch, then cropped."""
    x = c.tensor(0)
    block, crops = _blocks(c, "the cropping")
    m, sizes, tail = len(block), x.shape[1 : len(block) + 1], x.shape[len(block) + 1 :]
    batch = simplify_size(x.shape[0] // int(np.prod(block)))
    y = c.reshape(x, [*block, batch, *sizes, *tail])
    order = [m, *[v for k in range(m) for v in (m + 1 + k, k)], *range(2 * m + 1, y.rank)]
    whole = c.reshape(
        c.transpose(y, order), [batch, *[simplify_size(s * n) for s, n in zip(sizes, block, strict=True)], *tail]
    )
    negative = [[0, 0], *[[-a, -b] for a, b in crops], *[[0, 0]] * len(tail)]
    return c.add("pad", whole, pads=_flat(negative)) if any(map(any, crops)) else whole


def _blocks(c: Call, what: str) -> tuple[list[int], list[list[int]]]:
    """Returns the sizes of blocks, and *what* is before and after each; operators without ND have one size, an attribute."""
    found = c.ints_at(1, "the sizes of blocks") if c.has(2) else [c.integer("block_size", 0)] * 2
    if not found or min(found) < 1 or len(found) > c.tensor(0).rank - 1:
        c.fail(f"blocks of {found} of {c.tensor(0)!r} are not supported", SAVE_AGAIN)
    ends = c.numbers(2 if c.has(2) else 1, what).astype(int).reshape(-1, 2).tolist()
    if len(ends) != len(found):
        c.fail(f"{what} has {len(ends)} pairs for {len(found)} dimensions", SAVE_AGAIN)
    return found, ends
