"""Shapes, and operators that move elements without computing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.ops.reduction import axes_of
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.graph.builder import total
from weft.graph.composites.run_time import late_axes, late_shapes
from weft.graph.composites.slicing import equal_sizes, reshape_open, slice_axes, split_axis
from weft.ir import ONE, Const, eq, ne
from weft.support.dtypes import i64

Sizes = list[Any]

AXES_ARE_INPUT: Final = 13
"""The operator set since which the axes of Squeeze and Unsqueeze are an input."""


@translates("Reshape")
def reshape(c: Call) -> Results:
    """Another shape: 0 keeps a dimension (unless `allowzero`), -1 is inferred from the number of elements."""
    x = c.input(0)
    if c.opset >= 5 and not c.is_known(1):
        return late_shapes.reshape_late(c, x, c.input(1), keeps_zero=c.flag("allowzero", False))
    target: Sizes = list(c.ints("shape") or []) if c.opset < 5 else c.sizes(1, "the new shape")
    if not c.flag("allowzero", False):
        for d, s in enumerate(target):
            if isinstance(s, int) and s == 0:
                if d >= x.rank:
                    c.fail(f"its shape {target} keeps dimension {d} of an input of {x.rank} dimensions")
                target[d] = x.shape[d]
    return reshape_open(c, x, target)


@translates("Flatten")
def flatten(c: Call) -> Results:
    """A matrix: dimensions before the axis are its rows, the others its columns."""
    x = c.input(0)
    axis = c.integer("axis", 1)
    axis += x.rank if axis < 0 else 0
    return c.reshape(x, [total(x.shape[:axis]), total(x.shape[axis:])])


@translates("Squeeze")
def squeeze(c: Call) -> Results:
    """Drops dimensions of size one: those given, or all."""
    x = c.input(0)
    if c.opset >= AXES_ARE_INPUT and not c.is_known(1):
        return late_axes.squeeze_named(c, x, c.input(1))
    axes = axes_of(c, AXES_ARE_INPUT, "axes")
    drop = _of_size_one(c, x) if axes is None else {c.axis_of(a, x.rank) for a in axes}
    wide = [d for d in sorted(drop) if x.shape[d] is not ONE]
    if any(isinstance(x.shape[d], Const) for d in wide):
        c.fail(f"dimension {wide[0]} of {x!r} can't be dropped: its size is not one")
    for d in wide:
        c.require(eq(x.shape[d], 1), f"dimension {d}, which it drops, is {{0}}, and not 1", x.shape[d])
    kept = [s for d, s in enumerate(x.shape) if d not in drop]
    return c.add("reshape_checked", x, shape=tuple(kept)) if wide else c.reshape(x, kept)


def _of_size_one(c: Call, x: Operand) -> set[int]:
    """Returns the dimensions of size one; of those whose size is unknown, all are taken to be, or none, and calls check it."""
    ones = {d for d, s in enumerate(x.shape) if s is ONE}
    unknown = {d for d, s in enumerate(x.shape) if not isinstance(s, Const)}
    if unknown and _are_ones(c, x.rank - len(ones), len(unknown)):
        return ones | unknown
    for d in unknown:
        c.require(ne(x.shape[d], 1), f"dimension {d} is 1, and would be dropped; it was compiled for other sizes")
    return ones


def _are_ones(c: Call, most: int, unknown: int) -> bool:
    """Tells whether *unknown* dimensions are dropped of a result of at *most* so many, by what the model declares or needs."""
    if c.declared_rank in (most, most - unknown):
        return c.declared_rank != most
    return c.choices.fewer()


@translates("Unsqueeze")
def unsqueeze(c: Call) -> Results:
    """Adds dimensions of size one at the axes given, counted in the result."""
    x = c.input(0)
    if c.opset >= AXES_ARE_INPUT and not c.is_known(1):
        return late_axes.unsqueeze_named(c, x, c.input(1))
    axes = axes_of(c, AXES_ARE_INPUT, "axes") or []
    rank = x.rank + len(axes)
    added = {c.axis_of(a, rank) for a in axes}
    if len(added) < len(axes):
        c.fail(f"its axes {axes} name a dimension twice")
    sizes = iter(x.shape)
    return c.reshape(x, [ONE if d in added else next(sizes) for d in range(rank)])


@translates("Transpose")
def transpose(c: Call) -> Results:
    """The dimensions in another order; reversed if none is given."""
    x = c.input(0)
    return c.transpose(x, c.ints("perm") or list(reversed(range(x.rank))))


@translates("Concat")
def concat(c: Call) -> Results:
    """Tensors one after another along an axis; those without elements are left out."""
    given = [c.input(i) for i in range(len(c.inputs))]
    axis = c.axis(1, given[0].rank)
    kept = [x for x in given if x.rank != given[0].rank or getattr(x.shape[axis], "value", None) != 0] or given[:1]
    return kept[0] if len(kept) == 1 else c.add("concat", *kept, axis=axis)


@translates("Split")
def split(c: Call) -> Results:
    """Pieces along an axis, of sizes given or equal."""
    x = c.input(0)
    axis = c.axis(0, x.rank)
    if c.opset >= 13 and not c.is_known(1):
        return late_shapes.split_late(c, x, axis, c.input(1))
    sizes: Sizes | None = c.sizes(1, "the sizes of the pieces") if c.opset >= 13 and c.has(1) else c.ints("split")
    if sizes is None:
        if c.integer("num_outputs", len(c.node.output)) != len(c.node.output):
            c.fail(f"it has {len(c.node.output)} outputs, and its num_outputs is {c.attributes['num_outputs']}", UNFIT)
        sizes = list(equal_sizes(x.shape[axis], len(c.node.output)))
    return split_axis(c, x, axis, sizes)


@translates("Slice")
def slice_(c: Call) -> Results:
    """Ranges along some axes."""
    x = c.input(0)
    if c.opset < 10:
        starts, ends, axes = c.ints("starts") or [], c.ints("ends") or [], c.ints("axes")
        return slice_axes(c, x, _axes(c, x, axes, len(starts)), starts, ends, [1] * len(starts))
    if not all(c.is_known(i) for i in range(1, 5)):
        return _slice_late(c, x)
    begins, stops = c.sizes(1, "the starts of the slice"), c.sizes(2, "the ends of the slice")
    steps = c.ints_at(4, "the steps of the slice") if c.has(4) else [1] * len(begins)
    given = c.ints_at(3, "the axes of the slice") if c.has(3) else None
    return slice_axes(c, x, _axes(c, x, given, len(begins)), begins, stops, steps)


def _slice_late(c: Call, x: Operand) -> Operand:
    """Returns ranges of which bounds, steps or axes are known only when the model runs."""
    count = c.count_of(1 if not c.is_known(1) else 2, "the bounds of the slice")
    starts, ends = c.input(1), c.input(2)
    steps = c.input(4) if c.has(4) else c.vector([1] * count)
    if c.is_known(3):
        along = _axes(c, x, c.ints_at(3, "the axes of the slice") if c.has(3) else None, count)
        return late_shapes.slice_late(c, x, along, starts, ends, steps)
    whole = c.vector([0] * x.rank), c.vector(x.shape), c.vector([1] * x.rank)
    given = (late_axes.spread(c, c.input(3), v, w, x.rank) for v, w in zip((starts, ends, steps), whole, strict=True))
    return late_shapes.slice_late(c, x, range(x.rank), *given)


def _axes(c: Call, x: Operand, given: Sequence[int] | None, count: int) -> list[int]:
    """Returns axes counted from the front: those *given*, or the first *count* for None."""
    return [c.axis_of(a, x.rank) for a in (range(count) if given is None else given)]


@translates("Pad")
def pad(c: Call) -> Results:
    """Pads by a constant, the edge, a reflection or the other end."""
    x = c.input(0)
    value: float = c.number("value", 0.0)
    if c.opset < 11:
        pads = c.ints("pads") or c.ints("paddings") or []
    elif not all(c.is_known(i) for i in (1, 2, 3)):
        return _pad_late(c, x)
    else:
        pads = c.ints_at(1, "the pads")
        value = c.number_at(2, "the padding value") if c.has(2) else 0
    if c.has(3):
        pads = _spread(c, pads, [c.axis_of(a, x.rank) for a in c.ints_at(3, "the axes to pad")], x.rank)
    return c.add("pad", x, pads=tuple(pads), mode=c.text("mode", "constant"), value=value)


def _pad_late(c: Call, x: Operand) -> Operand:
    """Returns *x* padded by amounts, along axes or with a value that are known only when the model runs."""
    pads, mode = c.cast(c.input(1), i64), c.text("mode", "constant")
    if c.is_known(3):
        along = _axes(c, x, c.ints_at(3, "the axes to pad") if c.has(3) else None, x.rank)
        return late_shapes.pad_late(c, x, pads, along, c.optional(2), mode)
    count, none = late_axes.count_of(c, c.input(3)), c.vector([0] * x.rank)
    sides = c.add_many("split", pads, axis=0, sizes=(count, count))
    spread = [late_axes.spread(c, c.input(3), side, none, x.rank) for side in sides]
    return late_shapes.pad_late(c, x, c.add("concat", *spread, axis=0), range(x.rank), c.optional(2), mode)


def _spread(c: Call, pads: list[int], axes: list[int], rank: int) -> list[int]:
    """Returns the pads of all dimensions from those of *axes*."""
    full = [0] * (2 * rank)
    for n, d in enumerate(axes):
        full[d], full[rank + d] = pads[n], pads[len(axes) + n]
    return full


@translates("Tile")
def tile(c: Call) -> Results:
    """The tensor repeated along each dimension."""
    x = c.input(0)
    if c.opset >= 6 and not c.is_known(1):
        return late_shapes.tile_late(c, x, c.input(1))
    if c.opset >= 6:
        return c.add("tile", x, repeats=tuple(c.sizes(1, "the repeats")))
    repeats = [1] * x.rank
    repeats[c.ints_at(2, "the axis")[0]] = c.ints_at(1, "the repeats")[0]
    return c.add("tile", x, repeats=tuple(repeats))


@translates("Expand")
def expand(c: Call) -> Results:
    """The tensor broadcast together with a shape."""
    if not c.is_known(1):
        return late_shapes.expand_late(c, c.input(0), c.input(1))
    return c.add("expand", c.input(0), shape=tuple(c.sizes(1, "the shape to expand to")))


@translates("Shape")
def shape(c: Call) -> Results:
    """The sizes as a vector, known when the model is compiled except for symbolic ones."""
    x = c.input(0)
    start, end = c.integer("start", 0), c.integer("end", x.rank)
    return c.vector(x.shape[start:end])


@translates("Size")
def size(c: Call) -> Results:
    """The number of elements."""
    return c.size(total(c.input(0).shape))


@translates("Trilu")
def trilu(c: Call) -> Results:
    """The upper or the lower triangle of matrices."""
    upper = c.flag("upper", True)
    if not c.is_known(1):
        return late_shapes.trilu_late(c, c.input(0), c.input(1), upper=upper)
    k = c.ints_at(1, "the diagonal k")[0] if c.has(1) else 0
    return c.add("trilu", c.input(0), k=k, upper=upper)
