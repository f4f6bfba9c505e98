"""Operations that move elements: shapes, slices, padding, joining, and numbers counted along a dimension."""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.registry import translates
from weft.graph.builder import Builder, CompileTimeConstant, Operand
from weft.graph.composites.sequences import concat
from weft.ir import ExprLike
from weft.support.dtypes import DType

FAR = -(2**62)
"""Before the first element, counted from the end."""


def spread(c: Builder, x: Operand, dims: Sequence[int], shape: Sequence[ExprLike]) -> Operand:
    """Returns *x* repeated to *shape*, of which its dimensions are *dims*."""
    if len(dims) != x.rank or any(not 0 <= d < len(shape) for d in dims):
        c.fail(f"its dims {list(dims)} are not those of {x!r} among {len(shape)}", AGAIN)
    order = sorted(range(x.rank), key=lambda k: dims[k])
    moved = c.transpose(x, order)
    sizes: list[ExprLike] = [1] * len(shape)
    for k in order:
        sizes[dims[k]] = x.shape[k]
    kept = c.reshape(moved, sizes) if len(sizes) != x.rank else moved
    return c.add("expand", kept, shape=tuple(shape)) if shape else kept


@translates("broadcast_in_dim")
def broadcast_in_dim(c: Call) -> Operand:
    """A tensor repeated along new dimensions, and along those of size one."""
    return spread(c, c.operand(0), c.ints("dims", "broadcast_dimensions"), c.result_shape())


@translates("dynamic_broadcast_in_dim")
def dynamic_broadcast_in_dim(c: Call) -> Operand:
    """The same, to a shape that is an operand."""
    shape = c.late_sizes(c.operand(1), "size", "the shape of its result")
    return spread(c, c.operand(0), c.ints("dims", "broadcast_dimensions"), shape)


@translates("broadcast")
def broadcast(c: Call) -> Operand:
    """A tensor repeated along new dimensions before its own."""
    x, sizes = c.operand(0), c.ints("sizes", "broadcast_sizes")
    return c.add("expand", x, shape=(*sizes, *x.shape))


@translates("reshape")
def reshape(c: Call) -> Operand:
    """The elements in another shape."""
    return c.reshape(c.operand(0), c.result_shape())


@translates("dynamic_reshape")
def dynamic_reshape(c: Call) -> Operand:
    """The elements in a shape that is an operand."""
    return c.reshape(c.operand(0), c.late_sizes(c.operand(1), "size", "the shape of its result"))


@translates("get_dimension_size")
def get_dimension_size(c: Call) -> Operand:
    """The size of a dimension."""
    x = c.operand(0)
    return c.cast(c.size(x.shape[c.axis_of(c.integer("dim", "dimension"), x.rank)]), c.result_dtype())


@translates("transpose")
def transpose(c: Call) -> Operand:
    """The dimensions in another order."""
    return c.transpose(c.operand(0), c.ints("dims", "permutation"))


@translates("reverse")
def reverse(c: Call) -> Operand:
    """The elements in the opposite order along dimensions."""
    x, axes = c.operand(0), c.dims("dims", "dimensions")
    return turned(c, x, axes)


def turned(c: Builder, x: Operand, axes: Sequence[int]) -> Operand:
    """Returns *x* in the opposite order along *axes*."""
    if not axes:
        return x
    count = len(axes)
    return c.add("slice", x, starts=(-1,) * count, ends=(FAR,) * count, axes=tuple(axes), steps=(-1,) * count)


@translates("slice")
def slice_(c: Call) -> Operand:
    """Every so many elements between two places."""
    ranges = c.value("ranges")
    if ranges is None:
        starts, ends, steps = (c.ints(f"{n}_indices" if n != "strides" else n) for n in ("start", "limit", "strides"))
    else:
        triples = [(*r, 1)[:3] if isinstance(r, tuple) else () for r in ranges]
        if any(len(r) != 3 for r in triples):
            c.fail(f"its ranges {ranges!r} should have a start and an end each", AGAIN)
        starts, ends, steps = (c.integers_of([r[k] for r in triples], "ranges") for k in range(3))
    x = c.operand(0)
    if not len(starts) == len(ends) == len(steps) == x.rank or min(steps, default=1) < 1:
        c.fail(f"its ranges are not those of {x!r}", AGAIN)
    return c.add("slice", x, starts=tuple(starts), ends=tuple(ends), axes=tuple(range(x.rank)), steps=tuple(steps))


@translates("concatenate")
def concatenate(c: Call) -> Operand:
    """Tensors one after another."""
    return concat(c, c.operands, c.axis_of(c.integer("dim", "dimension"), c.operand(0).rank))


@translates("iota", "dynamic_iota")
def iota(c: Call) -> Operand:
    """Numbers counted along a dimension."""
    given = c.late_sizes(c.operand(0), "size", "the shape of its result") if c.operands else c.result_shape()
    axis = c.axis_of(c.integer("dim", "iota_dimension"), len(given))
    return spread(c, counted(c, given[axis], c.result_dtype()), [axis], given)


def counted(c: Builder, size: ExprLike, dtype: DType) -> Operand:
    """Returns the numbers from 0 to before *size*."""
    return c.cast(c.add("range", start=0, size=size, step=1), dtype)


@translates("pad")
def pad(c: Call) -> Operand:
    """Elements around and between those of a tensor; a negative number cuts them off."""
    x, value = c.operand(0), c.operand(1)
    low, high, inner = (c.ints(*names) for names in _PADS)
    if not len(low) == len(high) == len(inner) == x.rank or min(inner, default=0) < 0:
        c.fail(f"its pads are not those of {x!r}", AGAIN)
    return padded(c, x, value, low, high, inner)


_PADS = (("low", "edge_padding_low"), ("high", "edge_padding_high"), ("interior", "interior_padding"))


def padded(
    c: Builder, x: Operand, value: Operand, low: Sequence[int], high: Sequence[int], inner: Sequence[int]
) -> Operand:
    """Returns *x* with *value* *inner* times between its elements, and around them; negative numbers cut off."""
    for d, n in enumerate(inner):
        x = _dilated(c, x, value, d, n) if n else x
    if isinstance(value, CompileTimeConstant) and not x.dtype.is_int:
        return c.add("pad", x, pads=(*low, *high), value=float(value.array.item())) if any([*low, *high]) else x
    for d in range(x.rank):
        x = _cut(c, x, d, max(-low[d], 0), max(-high[d], 0))
    for d in range(x.rank):
        sides = [_filled(c, x, value, d, max(n, 0)) for n in (low[d], high[d])]
        x = concat(c, [p for p in (sides[0], x, sides[1]) if p is not None], d)
    return x


def _filled(c: Builder, x: Operand, value: Operand, d: int, count: int) -> Operand | None:
    """Returns *count* slices along a dimension of *value* alone; None for none."""
    shape = (*x.shape[:d], count, *x.shape[d + 1 :])
    return c.add("expand", c.reshape(value, [1] * x.rank), shape=shape) if count else None


def _cut(c: Builder, x: Operand, d: int, before: int, after: int) -> Operand:
    """Returns *x* without the first and the last elements along a dimension."""
    if not before and not after:
        return x
    return c.add("slice", x, starts=(before,), ends=(x.shape[d] - after,), axes=(d,), steps=(1,))


def _dilated(c: Builder, x: Operand, value: Operand, d: int, inner: int) -> Operand:
    """Returns *x* with *value* *inner* times after each element but the last along a dimension."""
    apart = c.reshape(x, [*x.shape[: d + 1], 1, *x.shape[d + 1 :]])
    between = _filled(c, apart, value, d + 1, inner)
    assert between is not None
    wide = concat(c, [apart, between], d + 1)
    whole = c.reshape(wide, [*x.shape[:d], x.shape[d] * (inner + 1), *x.shape[d + 1 :]])
    return _cut(c, whole, d, 0, inner)
