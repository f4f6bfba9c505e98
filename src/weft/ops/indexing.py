"""Operators whose indices are data: gathering by tuples, writing along an axis, and weighted sums of chosen elements."""

from __future__ import annotations

from typing import TypeAlias

from weft.ir import INDEX, ZERO, Const, Expr, as_expr, cast, maximum, minimum, select
from weft.ops.index_ranges import IndexRange, Shaped, either_way, takes_indices
from weft.ops.movement import chosen_index
from weft.ops.registry import operator
from weft.ops.shapes import check_shape, normalize_axis
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute, reduce_axis, scatter, sum_

Index: TypeAlias = tuple[Expr, ...]

LONGEST_SUM = 8
"""Most terms of a weighted sum that is unrolled, so that it fuses with its consumers."""


@operator("gather_nd")
def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """The slices of *x* at the index tuples in the last dimension of *indices*, after *batch_dims* dimensions in common."""
    n = indices.rank - 1
    depth = tuple_size(indices)
    if not 0 <= batch_dims <= n or batch_dims + depth > x.rank:
        raise TypeMismatch(
            f"gather_nd: tuples of {depth} indices in {n} dimensions, {batch_dims} of them the batch's, for a tensor of {x.rank}"
        )
    check_shape("gather_nd: the batch", indices.shape[:batch_dims], x.shape[:batch_dims])
    shape = (*indices.shape[:-1], *x.shape[batch_dims + depth :])

    def gathered(*i: Expr) -> Expr:
        at = [chosen_index(indices[(*i[:n], k)], x.shape[batch_dims + k]) for k in range(depth)]
        return x[(*i[:batch_dims], *at, *i[n:])]

    return compute(shape, gathered, "gather_nd", dtype=x.dtype)


@takes_indices("gather_nd")
def tuples_range(x: Shaped, indices: Shaped, *, batch_dims: int = 0) -> IndexRange:
    """Returns where the index tuples in the last dimension of *indices* may be."""
    depth = int(getattr(indices.shape[-1], "value", 0))
    return IndexRange(1, tuple([either_way(s) for s in x.shape[batch_dims : batch_dims + depth]]), by_column=True)


def tuple_size(indices: Tensor) -> int:
    """Returns how many indices a tuple has, in the last dimension of *indices*."""
    if not indices.rank:
        raise TypeMismatch("the index tuples are a single number; they should be the last dimension of a tensor")
    size = indices.shape[-1]
    if not isinstance(size, Const):
        raise TypeMismatch("the number of indices in a tuple must be known")
    return int(size.value)


@operator("write_at")
def write_at(
    x: Tensor, update: Tensor, begin: Tensor, *, axis: int, circular: bool = False, in_place: bool = False
) -> Tensor:
    """*x* with *update* written along *axis* from `begin[b]` on, for each *b* of the first dimension; *circular* wraps around.

    *in_place* says that the result is in the memory of *x*, as for a state: then *update* alone is written.
    """
    if update.rank != x.rank:
        raise TypeMismatch(f"write_at: an update of {update.rank} dimensions for a tensor of {x.rank}")
    check_shape("write_at: the update", update.shape, (*x.shape[:axis], update.shape[axis], *x.shape[axis + 1 :]))
    check_shape("write_at: where to begin", begin.shape, x.shape[:1])

    def written(*i: Expr) -> Expr:
        t = i[axis] - cast(begin[i[0]], INDEX)
        t = t % x.shape[axis] if circular else t
        new = update[(*i[:axis], minimum(maximum(t, 0), update.shape[axis] - 1), *i[axis + 1 :])]
        return select((t >= 0) & (t < update.shape[axis]), new, x[i])

    def placed(*i: Expr) -> tuple[tuple[Expr, ...], Expr, Expr]:
        at = cast(begin[i[0]], INDEX) + i[axis]
        at = at % x.shape[axis] if circular else at
        return (*i[:axis], at, *i[axis + 1 :]), update[i], (at >= 0) & (at < x.shape[axis])

    if in_place or _is_much_less(update.shape[axis], x.shape[axis]):
        return scatter(x, update.shape, placed, None, "write_at", in_place=in_place)
    return compute(x.shape, written, "write_at", dtype=x.dtype)


def _is_much_less(rows: Expr, size: Expr) -> bool:
    """Tells whether it costs less to copy all, and then to write *rows* of *size*, than to choose for each element."""
    return isinstance(rows, Const) and isinstance(size, Const) and int(rows.value) * 8 <= int(size.value)


@takes_indices("write_at")
def _beginnings(
    x: Shaped, update: Shaped, begin: Shaped, *, axis: int, circular: bool = False, in_place: bool = False
) -> IndexRange | None:
    return None if circular else IndexRange(2, ((ZERO, x.shape[axis] - update.shape[axis]),), "position")


@operator("reverse_sequence")
def reverse_sequence(x: Tensor, lengths: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    """Reverses the first `lengths[b]` elements along *time_axis* for each *b* along *batch_axis*."""
    check_shape("reverse_sequence: the vector of lengths", lengths.shape, (x.shape[batch_axis],))

    def turned(*i: Expr) -> Expr:
        size, t = cast(lengths[i[batch_axis]], INDEX), i[time_axis]
        at = minimum(maximum(select(t < size, size - 1 - t, t), 0), x.shape[time_axis] - 1)
        return x[(*i[:time_axis], at, *i[time_axis + 1 :])]

    return compute(x.shape, turned, "reverse_sequence", dtype=x.dtype)


@takes_indices("reverse_sequence")
def _lengths(x: Shaped, lengths: Shaped, *, batch_axis: int = 1, time_axis: int = 0) -> IndexRange:
    return IndexRange(1, ((ZERO, x.shape[time_axis]),), "length")


@operator("resample", along="axis")
def resample(x: Tensor, taps: Tensor, weights: Tensor, *, axis: int) -> Tensor:
    """Along *axis*, element i is the sum over t of `x[taps[i, t]] * weights[i, t]`: any separable interpolation."""
    d = normalize_axis(axis, x.rank)
    check_shape("resample: the table of weights", weights.shape, taps.shape)
    count = taps.shape[1]
    shape = (*x.shape[:d], taps.shape[0], *x.shape[d + 1 :])

    def term(i: Index, t: Expr) -> Expr:
        at = minimum(maximum(cast(taps[i[d], t], INDEX), 0), x.shape[d] - 1)
        return x[(*i[:d], at, *i[d + 1 :])] * weights[i[d], t]

    def written_out(*i: Expr) -> Expr:
        assert isinstance(count, Const)
        terms = [term(i, as_expr(t)) for t in range(int(count.value))]
        return sum(terms[1:], terms[0])

    if isinstance(count, Const) and 0 < int(count.value) <= LONGEST_SUM:
        return compute(shape, written_out, "resample", dtype=x.dtype)
    t = reduce_axis(count, "t")
    return compute(shape, lambda *i: sum_(term(i, t), [t]), "resample", dtype=x.dtype)
