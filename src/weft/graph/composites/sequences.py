"""Sequences along an axis, split into steps and stacked again: shared by all operators whose loops are unrolled."""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import MOST_UNROLLED_STEPS
from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.ir import Const, Expr


def few_steps(size: Expr, most: int = MOST_UNROLLED_STEPS) -> int:
    """Returns the length of a sequence whose steps, at *most* so many, are to be unrolled; 0 where they are to be a loop."""
    return int(size.value) if isinstance(size, Const) and size.value <= most else 0


def element(b: Builder, x: Operand, axis: int, k: int) -> Operand:
    """Returns element *k* of *x* along *axis*, which is dropped."""
    piece = b.add("slice", x, starts=(k,), ends=(k + 1,), axes=(axis,), steps=(1,))
    return b.reshape(piece, [*x.shape[:axis], *x.shape[axis + 1 :]])


def stack(b: Builder, parts: Sequence[Operand], axis: int) -> Operand:
    """Returns tensors of one shape as one tensor with a new dimension at *axis*."""
    return concat(b, [b.reshape(p, [*p.shape[:axis], 1, *p.shape[axis:]]) for p in parts], axis)


def concat(b: Builder, parts: Sequence[Operand], axis: int) -> Operand:
    """Returns tensors one after another along *axis*; a single one as it is."""
    return parts[0] if len(parts) == 1 else b.add("concat", *parts, axis=axis)


def equal_split(b: Builder, x: Operand, count: int) -> tuple[Operand, ...]:
    """Returns *count* equal pieces along the last dimension."""
    d = x.rank - 1
    return b.add_many("split", x, axis=d, sizes=tuple([x.shape[d] // count] * count))


def reverse(b: Builder, x: Operand, lengths: Operand | None) -> Operand:
    """Returns sequences [time, batch, ...] reversed in time.

    Where *lengths* [batch] are given, only as many elements of each are reversed, and the others stay.
    """
    if lengths is not None:
        return b.add("reverse_sequence", x, lengths, batch_axis=1, time_axis=0)
    return b.add("slice", x, starts=(-1,), ends=(-(2**62),), axes=(0,), steps=(-1,))
