"""Operators that order elements or choose among them: extremes, sorting, picking by indices."""

from __future__ import annotations

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import translates
from weft.graph.builder import Operand, static_sizes, total
from weft.graph.composites import ordering
from weft.ir import ExprLike
from weft.support.dtypes import f32, i64


def _along(c: Call, x: Operand, default: int = -1) -> tuple[Operand, int]:
    """Returns a tensor and the axis along which it is ordered; without an axis, all of its elements are in a row."""
    axis = c.value("axis", default)
    return (c.reshape(x, [total(x.shape)]), 0) if axis is None else (x, c.axis_of(c.integer("axis", default), x.rank))


@translates("argmax", "argmin")
def extreme(c: Call) -> Operand:
    """Where the largest, or the smallest, element is, as floats."""
    x, keep = c.input(), c.flag("keepdims")
    if c.value("axis") is not None:
        found = c.add(c.node.op, x, axis=c.axis_of(c.integer("axis"), x.rank), keepdims=keep)
        return c.cast(found, f32)
    found = c.add(c.node.op, c.reshape(x, [total(x.shape)]), axis=0, keepdims=False)
    return c.cast(c.reshape(found, [1] * x.rank if keep else [1]), f32)


@translates("argmax_channel")
def argmax_channel(c: Call) -> Operand:
    """Where the largest of the channels is, as floats."""
    return c.cast(c.add("argmax", c.input(), axis=1, keepdims=False), f32)


@translates("sort", "argsort")
def sort(c: Call) -> Operand:
    """The elements in order along an axis, or where they were."""
    x, axis = _along(c, c.input())
    order = c.add("argsort", x, axis=axis, descending=not c.flag("is_ascend", True))
    return (
        c.cast(order, c.dtype("float32")) if c.node.op == "argsort" else c.add("gather_elements", x, order, axis=axis)
    )


@translates("topk")
def topk(c: Call) -> Operand | tuple[Operand, ...]:
    """The largest, or smallest, elements along an axis, where they are, or both, or ones at their places."""
    x, axis = _along(c, c.input())
    known = static_sizes([x.shape[axis]])
    most = c.integer("k", 1)
    if most < 1:  # all of them
        if known is None:
            c.fail("it takes all elements of a symbolic size", "give it a number: shapes={...}")
        most = known[0]
    values, places = ordering.top_k(c, x, most, axis, largest=not c.flag("is_ascend"))
    kind, dtype = c.text("ret_typ", "indices"), c.dtype("float32")
    if kind == "mask":
        return _mask(c, x, places, axis)
    made = {"indices": c.cast(places, dtype), "value": values, "both": (values, c.cast(places, dtype))}.get(kind)
    if made is None:
        c.fail(f"its ret_typ {kind!r} is not supported", "use indices, value, mask or both")
    return made


def _mask(c: Call, x: Operand, places: Operand, axis: int) -> Operand:
    """Returns ones at *places* along an axis, and zeros elsewhere, in the shape of the input."""
    zeros = c.add("full", shape=x.shape, value=0, dtype=x.dtype)
    ones = c.add("full", shape=places.shape, value=1, dtype=x.dtype)
    made = c.add("scatter_elements", zeros, c.cast(places, i64), ones, axis=axis, reduction="none")
    return c.reshape(made, c.input().shape)


@translates("pick")
def pick(c: Call) -> Operand:
    """The element at an index along an axis, for each place of the others; indices outside are those at the ends."""
    x = c.input(0)
    axis = c.axis_of(c.integer("axis", -1), x.rank)
    kept: list[ExprLike] = [*x.shape[:axis], 1, *x.shape[axis + 1 :]]
    found = c.add("gather_elements", x, c.reshape(inside(c, c.input(1), x, axis), kept), axis=axis)
    return found if c.flag("keepdims") else c.reshape(found, [*x.shape[:axis], *x.shape[axis + 1 :]])


def inside(c: Call, indices: Operand, x: Operand, axis: int) -> Operand:
    """Returns indices along an axis of *x*: those outside moved to the ends, or with the mode `wrap` counted round."""
    found, size = c.cast(indices, i64), c.cast(c.size(x.shape[axis]), i64)
    if c.text("mode", "clip") == "wrap":
        return c.add("floor_mod", found, size)
    return c.add("clip", found, c.scalar(0, i64), c.add("sub", size, c.scalar(1, i64)))


@translates("gather_nd")
def gather_nd(c: Call) -> Operand:
    """The slices at indices, of which the first dimension has the coordinates."""
    indices = c.cast(c.input(1), i64)
    return c.add("gather_nd", c.input(0), c.transpose(indices, [*range(1, indices.rank), 0]))


@translates("one_hot", "_npx_one_hot")
def one_hot(c: Call) -> Operand:
    """A new dimension with one number at each index, and another elsewhere."""
    dtype = c.dtype("float32")
    values = [c.reshape(c.scalar(c.number(n, d), dtype), [1]) for n, d in (("off_value", 0.0), ("on_value", 1.0))]
    at = c.cast(c.input(), i64)
    return c.add("one_hot", at, c.add("concat", *values, axis=0), depth=c.integer("depth"), axis=at.rank)


@translates("_unravel_index", "unravel_index")
def unravel_index(c: Call) -> Operand:
    """The indices in a shape of row-major positions: a row for each dimension."""
    x, shape = c.input(rank=1), c.ints("shape")
    return c.cast(c.add("unravel_index", c.cast(x, i64), shape=tuple(shape)), x.dtype)
