"""Slices, pieces and shapes whose sizes may be symbolic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import total
from weft.ir import ZERO, Const, Expr, as_expr, eq, simplify
from weft.ops import is_certain, same_size, simplify_size
from weft.support.dtypes import i64

Sizes = Sequence[Any]
MOST_PIECES: Final = 1 << 16

FAR: Final = 1 << 31
"""A bound from which on a slice goes to the end, whatever the size."""


def slice_axes(
    b: Builder, x: Operand, axes: Sequence[int], starts: Sizes, ends: Sizes, steps: Sequence[int]
) -> Operand:
    """Returns ranges along *axes*; bounds are integers or index expressions, negative ones counted from the end.

    A bound that depends on symbolic sizes must lie inside its dimension: conditions that can't be proved at compile time are
    checked when the model is called. Clamping the bound silently would make sizes that equal no other size of the model.
    """
    fit = len(axes) == len(starts) == len(ends) == len(steps)
    if fit and any(isinstance(p, Expr) for p in (*starts, *ends)) and all(st > 0 for st in steps):
        spans = [(_placed(s, x.shape[d]), _placed(e, x.shape[d])) for s, e, d in zip(starts, ends, axes, strict=True)]
        if not any(p is None for span in spans for p in span):
            inside = [(s, e) for s, e in spans if s is not None and e is not None]
            return _slice_inside(b, x, axes, inside, steps)
    return b.add("slice", x, starts=tuple(starts), ends=tuple(ends), axes=tuple(axes), steps=tuple(steps))


def _placed(position: Expr | int, size: Expr) -> Expr | None:
    """Returns a slice's bound counted from the front; None if its sign depends on symbolic sizes, or if it lies outside."""
    if isinstance(position, int) and position >= FAR:
        return size
    at = as_expr(position)
    if is_certain(at < 0):
        at = simplify_size(at + size)
    return at if is_certain(at >= 0) and not is_certain(size < at) else None


def _slice_inside(
    b: Builder, x: Operand, axes: Sequence[int], spans: Sequence[tuple[Expr, Expr]], steps: Sequence[int]
) -> Operand:
    for d, (start, end) in zip(axes, spans, strict=True):
        size = x.shape[d]
        for low, high in ((start, end), (end, size)):
            if not is_certain(low <= high):
                b.require(
                    low <= high, f"takes elements {{0}} to {{1}} of dimension {d}, which has {{2}}", start, end, size
                )
    starts, ends = zip(*spans, strict=True)
    return b.add("slice", x, starts=starts, ends=ends, axes=tuple(axes), steps=tuple(steps), inside=True)


def reshape_open(b: Builder, x: Operand, target: Sizes) -> Operand:
    """Returns *x* in the shape *target*, in which one size may be -1: it is inferred. Raises `ModelError` for two of them."""
    open_ = [d for d, s in enumerate(target) if isinstance(s, int) and s == -1]
    if len(open_) > 1:
        b.fail(f"its shape {list(target)} leaves {len(open_)} dimensions open; only one may be -1")
    shape = list(target)
    if open_:
        shape[open_[0]] = _open_size(x.shape, [s for d, s in enumerate(target) if d != open_[0]])
    return b.reshape(x, shape)


def _open_size(shape: Sequence[Expr], others: Sequence[int | Expr]) -> Expr:
    """Returns the size -1 of a reshape: the elements of *shape* divided by those of the *others*.

    Sizes of zero that stand on both sides cancel, as symbolic ones do: (0, 4, 2) as (0, -1) is (0, 8), and so it is as (-1, 8).
    """
    own, given = [s for s in shape if s is not ZERO], [s for s in others if as_expr(s) is not ZERO]
    if len(shape) - len(own) > len(others) - len(given):
        return ZERO
    return simplify_size(as_expr(total(own)) // total(given))


def equal_sizes(size: Expr, count: int) -> list[Expr]:
    """Returns the sizes of *count* equal pieces; the last is smaller where they don't divide *size*."""
    chunk = simplify_size((size + (count - 1)) // count)
    if same_size(chunk * count, size):
        return [chunk] * count
    return [chunk] * (count - 1) + [simplify_size(size - chunk * (count - 1))]


def split_equally(b: Builder, x: Operand, axis: int, count: int) -> tuple[Operand, ...]:
    """Returns *count* equal pieces along *axis*, of which the last may be smaller; raises `ModelError` for none, or too many."""
    if not 1 <= count <= MOST_PIECES:
        b.fail(f"it splits {x!r} into {count} pieces; 1 to {MOST_PIECES} are supported")
    return split_axis(b, x, axis, equal_sizes(x.shape[axis], count))


def split_axis(b: Builder, x: Operand, axis: int, sizes: Sizes) -> tuple[Operand, ...]:
    """Returns pieces of *sizes* along *axis*; raises `ModelError` if these do not add up to its extent.

    Calls that tell sizes which do not add up are refused.
    """
    ends = list(accumulate(map(as_expr, sizes), initial=as_expr(0)))
    if same_size(ends[-1], x.shape[axis]):
        return b.add_many("split", x, axis=axis, sizes=tuple(sizes))
    holds = simplify(eq(ends[-1], x.shape[axis]))
    if isinstance(holds, Const):
        b.fail(f"pieces of sizes {list(sizes)} do not make up dimension {axis} of {x!r}")
    b.require(holds, "the sizes of the pieces add up to {0}, and there are {1} elements", ends[-1], x.shape[axis])
    cuts = pairwise(ends)
    return tuple([b.add("slice", x, starts=(i,), ends=(j,), axes=(axis,), steps=(1,), inside=True) for i, j in cuts])


def neighbours(b: Builder, x: Operand, axis: int) -> tuple[Operand, Operand]:
    """Returns all elements along *axis* but the first, and all but the last."""
    return slice_axes(b, x, [axis], [1], [FAR], [1]), slice_axes(b, x, [axis], [0], [-1], [1])


def roll_axis(b: Builder, x: Operand, shift: int | Expr, axis: int) -> Operand:
    """Returns the elements moved by *shift* along *axis*, those beyond the end put at the beginning."""
    size = x.shape[axis]
    if not isinstance(size, Const) or isinstance(shift, Expr):
        places = b.add("sub", b.cast(b.add("range", start=0, size=size, step=1), i64), b.size(shift))
        return b.add("gather", x, b.add("floor_mod", places, b.size(size)), axis=axis)
    extent = int(size.value)
    cut = -shift % max(extent, 1)
    return b.add("concat", *reversed(split_axis(b, x, axis, [cut, extent - cut])), axis=axis) if cut else x
