"""Elements of which only a run tells how many there are."""

from __future__ import annotations

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import total


def late_prefix(b: Builder, x: Operand, count: Operand, name: str, what: str) -> Operand:
    """Returns the first elements of the vector *x*, as many as *count*, a vector of one integer, says when it is computed."""
    (size,) = b.late_sizes(count, name, what)
    return b.add("slice", x, starts=(0,), ends=(size,), axes=(0,), steps=(1,), inside=True)


def true_positions(b: Builder, x: Operand) -> Operand:
    """Returns the row-major positions of the elements of *x* that are not zero, as a vector of a late size."""
    positions, count = b.add_many("nonzero_positions", x)
    return late_prefix(b, positions, count, "found", "the number of elements that are not zero")


def non_zero(b: Builder, x: Operand) -> Operand:
    """Returns the indices of the elements of *x* that are not zero: a row for each dimension, a column for each element."""
    return b.add("unravel_index", true_positions(b, x), shape=x.shape)


def compress(b: Builder, x: Operand, condition: Operand, axis: int | None) -> Operand:
    """Returns the slices of *x* along *axis* at which the vector *condition* holds; elements of the flat tensor for None."""
    chosen = true_positions(b, condition)
    if axis is None:
        return b.add("gather", b.reshape(x, (total(x.shape),)), chosen, axis=0)
    return b.add("gather", x, chosen, axis=axis)
