"""Selections with a data-dependent number of elements."""

from __future__ import annotations

from dataclasses import dataclass

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import total
from weft.graph.core.graph_values import Value
from weft.ir import Expr
from weft.support.dtypes import i64


def late_prefix(b: Builder, x: Operand, count: Operand, name: str, what: str) -> Operand:
    """Returns the first elements of *x* along axis 0, as many as *count*, a vector of one integer, says when it is computed."""
    size = b.late_number(count, name, what)
    return b.add("slice", x, starts=(0,), ends=(size,), axes=(0,), steps=(1,), inside=True)


def true_positions(b: Builder, x: Operand) -> Operand:
    """Returns the row-major positions of the elements of *x* that are not zero, as a vector: each *x* has one late size."""
    positions, count = _found_before(b, x) or b.add_many("nonzero_positions", x)
    return late_prefix(b, positions, count, "found", "the number of elements that are not zero")


def _found_before(b: Builder, x: Operand) -> tuple[Operand, Operand] | None:
    """Returns the positions and their number where another operator has asked for those of *x*: selections then have one size."""
    for late in b.evaluator.graph.late_sizes:
        node = late.value.producer
        if node is not None and node.op == "nonzero_positions" and _in_order(node.inputs[0]) is _in_order(x):
            positions, count = node.outputs
            return positions, count
    return None


def _in_order(x: Operand | None) -> Operand | None:
    """Returns the tensor that *x* has the elements of, in their row-major order."""
    while isinstance(x, Value) and x.producer is not None and x.producer.op == "reshape":
        x = x.producer.inputs[0]
    return x


def non_zero(b: Builder, x: Operand) -> Operand:
    """Returns the indices of the elements of *x* that are not zero: a row for each dimension, a column for each element."""
    return b.add("unravel_index", true_positions(b, x), shape=x.shape)


def first_true(b: Builder, flags: Operand) -> Operand:
    """Returns the row-major place of the first of *flags* that holds, counted from 1; 0 where none does."""
    count = total(flags.shape)
    behind = b.add("sub", b.size(count), b.add("range", start=0, size=count))  # how many there are from each on
    found = b.add("where", b.reshape(flags, (count,)), behind, b.scalar(0, i64))
    most = b.add("reduce_max", found, axes=(0,), keepdims=False)
    place = b.add("sub", b.size(count + 1), most)
    return b.add("where", b.add("equal", most, b.scalar(0, i64)), most, place)


def compress(b: Builder, x: Operand, condition: Operand, axis: int | None) -> Operand:
    """Returns the slices of *x* along *axis* at which the vector *condition* holds; elements of the flat tensor for None."""
    chosen = true_positions(b, condition)
    if axis is None:
        return b.add("gather", b.reshape(x, (total(x.shape),)), chosen, axis=0)
    return b.add("gather", x, chosen, axis=axis)


@dataclass(frozen=True)
class Unique:
    """The distinct slices of a tensor, where each stands first, which of them each slice is, and how often each is there."""

    values: Operand
    first: Operand
    which: Operand
    counts: Operand


def unique(b: Builder, x: Operand, axis: int | None, *, in_order: bool) -> Unique:
    """Returns the distinct slices of *x* along *axis*, or its elements for None: *in_order*, or as they stand in *x*."""
    flat = b.reshape(x, (total(x.shape),)) if axis is None else x
    size = flat.shape[axis or 0]
    if axis is None:
        order = b.add("argsort", flat, axis=0)
        ordered = b.add("gather", flat, order, axis=0)
        before = b.add("gather", ordered, _clipped(b, b.add("range", start=-1, size=size, step=1), size), axis=0)
        is_first = b.add("equal", b.add("range", start=0, size=size, step=1), b.scalar(0, i64))
        differs = b.add("logical_or", is_first, b.add("logical_not", b.add("equal", ordered, before)))
    else:
        perm = [axis, *[d for d in range(x.rank) if d != axis]]
        rest = [s for d, s in enumerate(x.shape) if d != axis]
        order, differs = b.add_many("order_rows", b.reshape(b.transpose(x, perm), (size, total(rest))))
    room, count = b.add_many("nonzero_positions", differs)
    begins = late_prefix(b, room, count, "distinct", "the number of distinct elements")
    number = begins.shape[0]
    ranks = b.add("sub", b.add("cumsum", b.cast(differs, i64), axis=0), b.scalar(1, i64))
    which = b.add("gather", ranks, b.add("argsort", order, axis=0), axis=0)
    first = b.add("gather", order, begins, axis=0)
    following = b.add("range", start=1, size=number, step=1)
    ends = b.add("gather", room, _clipped(b, following, size), axis=0)
    is_last = b.add("equal", following, b.size(number))
    counts = b.add("sub", b.add("where", is_last, b.size(size), ends), begins)
    if not in_order:
        stands = b.add("argsort", first, axis=0)
        which = b.add("gather", b.add("argsort", stands, axis=0), which, axis=0)
        first, counts = (b.add("gather", v, stands, axis=0) for v in (first, counts))
    return Unique(b.add("gather", flat, first, axis=axis or 0), first, which, counts)


def _clipped(b: Builder, places: Operand, size: Expr) -> Operand:
    """Returns places moved to the nearest that a dimension of *size* has."""
    last = b.add("sub", b.size(size), b.scalar(1, i64))
    return b.add("minimum", b.add("maximum", places, b.scalar(0, i64)), last)
