"""Axes that depend on the values of inputs: tensors are seen in shapes in which the axes are always the same dimensions.

    y = ReduceSum(x, axes)    x [2, 3, 4] is seen as [k0, r0, k1, r1, k2, r2], where r is the size of a dimension that `axes`
                              names, else 1, and k the other way round: the sum is over the dimensions 1, 3 and 5
    y = CumSum(x, axis)       x is seen as [before, size, behind], and the sums are along dimension 1

So one kernel serves all axes. The sizes are late ones, which the graph's own operators compute of the axes; elements stay where
they are. Calls in which an axis is out of range, or named twice, are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from weft.graph.builder.builder import Builder
from weft.graph.builder.constants import CompileTimeConstant
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import element_count, static_sizes
from weft.graph.composites.branches_and_loops import branch
from weft.graph.composites.sequences import element
from weft.ir import INDEX, ONE, Expr, Var, as_expr, eq, free_vars
from weft.ops import is_certain, same_size
from weft.support.dtypes import i64
from weft.support.errors import UnknownValues
from weft.support.text import in_format


def named(b: Builder, axes: Operand, rank: int) -> Operand:
    """Returns a vector of *rank* elements: 1 for each dimension that *axes*, a vector or one number, names, else 0.

    Calls are refused in which an axis is out of range, or, if there are several, named twice.
    """
    told = f"by {in_format(axes.name)}, axis" if axes.name else "axis"
    found = b.add("count_axes", axes, rank=rank, what=told)
    if _known_count(axes) == 1:
        return found
    once = b.add("minimum", found, b.scalar(1, i64))
    different = b.late_number(b.add("reduce_sum", once, axes=(0,), keepdims=True), "axes", "the number of axes")
    distinct, given = as_expr(different, INDEX), element_count(axes.shape)
    b.require(eq(distinct, given), "its {1} axes name only {0} different dimensions", distinct, given)
    return once


def count_of(b: Builder, axes: Operand) -> int:
    """Returns how many axes there are, on which the rank of a result depends; raises `UnknownValues` where only a run tells."""
    known = _known_count(axes)
    if known is None:
        b.fail(
            f"the number of dimensions of its result depends on how many axes there are, which only a run tells: {axes!r}",
            "give the axes a shape of numbers, or export the model with them as a constant",
            UnknownValues,
        )
    return known


def _known_count(axes: Operand) -> int | None:
    """Returns how many *axes* there are, one for a number that is no vector; None where only a run tells."""
    sizes = static_sizes(axes.shape)
    return None if sizes is None else math.prod(sizes)


def reduce_named(
    b: Builder, op: str, x: Operand, axes: Operand, *, keepdims: bool, none_is_all: bool = False
) -> Operand:
    """Returns the reduction *op* of *x* over the *axes* that a run tells; over all dimensions for no axes, if *none_is_all*."""
    count = _known_count(axes)
    mask = named(b, axes, x.rank)
    if count is None and none_is_all:
        none = _is_zero(b, b.add("reduce_sum", mask, axes=(0,), keepdims=True))
        mask = b.add("where", none, b.scalar(1, i64), mask)
    shape = None if keepdims else _kept_sizes(b, x.shape, mask, count_of(b, axes))
    if count == 1:
        reduced = b.add(op, _viewed(b, x, _along(b, x.shape, mask)), axes=(1,), keepdims=False)
        return _viewed(b, reduced, _kept_or_one(b, x.shape, mask) if shape is None else shape)
    view = _viewed(b, x, _interleaved(b, x.shape, mask))
    reduced = b.add(op, view, axes=tuple(range(1, view.rank, 2)), keepdims=False)
    return reduced if shape is None else _viewed(b, reduced, shape)


def _viewed(b: Builder, x: Operand, shape: Sequence[Expr]) -> Operand:
    """Returns *x* in a *shape* that has as many elements by the way it was made."""
    return b.add("reshape_checked", x, shape=tuple(shape))


def _interleaved(b: Builder, shape: Sequence[Expr], mask: Operand) -> list[Expr]:
    """Returns two sizes for each dimension of *shape*: what is kept of it, and what is reduced; one of the two is 1."""
    over = b.add("where", _is_zero(b, mask), b.scalar(1, i64), b.vector(shape))
    pairs = zip(shape, _kept_or_one(b, shape, mask), _sizes(b, over, shape, "reduced"), strict=True)
    return [ONE if s is ONE else part for s, *both in pairs for part in both]


def _kept_or_one(b: Builder, shape: Sequence[Expr], mask: Operand) -> list[Expr]:
    """Returns the sizes of a reduction's result that keeps the dimensions that *mask* names, as ones."""
    kept = b.add("where", _is_zero(b, mask), b.vector(shape), b.scalar(1, i64))
    return [ONE if s is ONE else k for s, k in zip(shape, _sizes(b, kept, shape, "kept"), strict=True)]


def _is_zero(b: Builder, x: Operand) -> Operand:
    return b.add("equal", x, b.scalar(0, i64))


def along_named(b: Builder, x: Operand, axis: Operand, body: Callable[[Operand], Operand]) -> Operand:
    """Returns the result of *body*, which works along dimension 1 of *x* as [before, size, behind], in the shape of *x*."""
    return _viewed(b, body(_viewed(b, x, _along(b, x.shape, named(b, axis, x.rank)))), x.shape)


def _along(b: Builder, shape: Sequence[Expr], mask: Operand) -> list[Expr]:
    """Returns three sizes: the elements before the one dimension that *mask* names, its own, and those behind it."""
    rank = len(shape)
    place = b.add("sub", b.add("mul", _passed(b, mask), b.scalar(2, i64)), mask)  # 0 before the axis, 1 at it, 2 behind
    parts = b.add("equal", b.reshape(place, (1, rank)), CompileTimeConstant(np.arange(3)[:, None]))
    sizes = b.add("where", parts, b.reshape(b.vector(shape), (1, rank)), b.scalar(1, i64))
    return _sizes(b, b.add("reduce_prod", sizes, axes=(1,), keepdims=False), shape, "part")


def for_axis(
    b: Builder, axis: Operand, rank: int, axes: Sequence[int], body: Callable[[Builder, int], Sequence[Operand]]
) -> list[Operand]:
    """Returns the results of *body* for the *axis*, one of *axes* of *rank* dimensions: a branch for each, one of which runs.

    That is for operators that compute tables for a known length; others work along an axis of `along_named`. Calls are refused
    with another axis.
    """
    mask = named(b, axis, rank)
    for d in sorted(set(range(rank)) - set(axes)):
        taken = as_expr(b.late_number(element(b, mask, 0, d), "taken", "the number of axes"), INDEX)
        b.require(eq(taken, 0), f"it does not work along the axis {d} of its input")

    def chosen(inner: Builder, rest: Sequence[int]) -> Sequence[Operand]:
        if len(rest) == 1:
            return body(inner, rest[0])
        is_it = inner.add("equal", element(inner, mask, 0, rest[0]), inner.scalar(1, i64))
        return branch(inner, is_it, lambda r: body(r, rest[0]), lambda r: chosen(r, rest[1:]))

    return list(chosen(b, axes))


def squeeze_named(b: Builder, x: Operand, axes: Operand) -> Operand:
    """Returns *x* without the dimensions that *axes* name, all of which have to be of size one."""
    count = count_of(b, axes)
    shape = _kept_sizes(b, x.shape, named(b, axes, x.rank), count)
    elements, left = (element_count(s) for s in (x.shape, shape))
    b.require(
        eq(elements, left),
        "a dimension that it drops is not of size one: {0} elements, of which {1} are left",
        elements,
        left,
    )
    return _viewed(b, x, shape)


def unsqueeze_named(b: Builder, x: Operand, axes: Operand) -> Operand:
    """Returns *x* with dimensions of size one at *axes*, counted in the result."""
    rank = x.rank + count_of(b, axes)
    mask = named(b, axes, rank)
    free = b.add("sub", b.scalar(1, i64), mask)
    own = _placed(b, b.vector(x.shape), free)
    return _viewed(b, x, _sizes(b, b.add("maximum", own, mask), x.shape, "size"))


def spread(b: Builder, axes: Operand, values: Operand, others: Operand, rank: int) -> Operand:
    """Returns *values*, an integer for each of *axes*, as a vector of *rank*; those of other dimensions are *others*."""
    count = count_of(b, axes)
    mask = named(b, axes, rank)
    at = b.reshape(b.cast(axes, i64), (count, 1))
    d = b.vector(range(rank))
    is_it = b.add("logical_or", b.add("equal", at, d), b.add("equal", at, b.add("sub", d, b.scalar(rank, i64))))
    chosen = b.add("where", is_it, b.reshape(b.cast(values, i64), (count, 1)), b.scalar(0, i64))
    given = b.add("reduce_sum", chosen, axes=(0,), keepdims=False)
    return b.add("where", _is_zero(b, mask), others, given)


def _kept_sizes(b: Builder, shape: Sequence[Expr], mask: Operand, count: int) -> tuple[Expr, ...]:
    """Returns the sizes of the dimensions of *shape* that *mask* does not name; it names *count*."""
    rank = len(shape)
    free = b.add("sub", b.scalar(1, i64), mask)
    place = b.add("sub", _passed(b, free), free)  # of a dimension among those that are kept
    at = b.add("equal", b.reshape(place, (1, rank)), CompileTimeConstant(np.arange(rank - count)[:, None]))
    chosen = b.add("logical_and", at, _is_zero(b, b.reshape(mask, (1, rank))))
    sizes = b.add("where", chosen, b.reshape(b.vector(shape), (1, rank)), b.scalar(0, i64))
    made = _sizes(b, b.add("reduce_sum", sizes, axes=(1,), keepdims=False), shape, "size")
    runs = [shape[j : j + count + 1] for j in range(rank - count)]
    return tuple([run[0] if all(same_size(run[0], s) for s in run) else s for run, s in zip(runs, made, strict=True)])


def _placed(b: Builder, values: Operand, free: Operand) -> Operand:
    """Returns *values* in their order at the places where *free* is 1, and zeros elsewhere."""
    count, rank = (static_sizes(v.shape) or [0] for v in (values, free))
    place = b.reshape(b.add("sub", _passed(b, free), free), (rank[0], 1))
    at = b.add("equal", place, CompileTimeConstant(np.arange(count[0])[None, :]))
    sizes = b.add("where", at, b.reshape(values, (1, count[0])), b.scalar(0, i64))
    return b.add("mul", b.add("reduce_sum", sizes, axes=(1,), keepdims=False), free)


def _passed(b: Builder, mask: Operand) -> Operand:
    """Returns the sums of the elements of the vector *mask* up to each."""
    (rank,) = static_sizes(mask.shape) or [0]
    until = CompileTimeConstant(np.tri(rank, dtype=np.bool_))
    taken = b.add("where", until, b.reshape(mask, (1, rank)), b.scalar(0, i64))
    return b.add("reduce_sum", taken, axes=(1,), keepdims=False)


def _sizes(b: Builder, x: Operand, shape: Sequence[Expr], name: str) -> list[Expr]:
    """Returns the elements of *x*, sizes or products of sizes of *shape*, as late sizes."""
    found = b.late_sizes(x, name, f"a size that is {name}", least=_least(b, shape))
    return [as_expr(s, INDEX) for s in found]


def _least(b: Builder, shape: Sequence[Expr]) -> int:
    """Returns the least size that a dimension of *shape* may have: where that is 0, there are kernels for empty tensors."""
    late, evaluator = set[Var](), b.evaluator
    while True:
        late |= {known.size for known in evaluator.graph.late_sizes}
        if evaluator.around is None:
            break
        evaluator = evaluator.around
    sizes = [v for s in shape for v in free_vars(s)]
    may_be_zero = any(v in late if v.limits is None else v.limits[0] == 0 for v in sizes)
    return int(not may_be_zero and all(is_certain(s >= 1) for s in shape))
