"""Operators whose indices are data: gathering and scattering by tuples, sorting, and weighted sums of chosen elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from weft.ir import INDEX, ZERO, Const, Expr, all_of, as_expr, cast, const, eq, maximum, minimum, select
from weft.ops.elementwise import map_tensors
from weft.ops.index_ranges import IndexRange, Shaped, either_way, takes_indices
from weft.ops.movement import chosen_index, from_end
from weft.ops.nan_order import order_key
from weft.ops.registry import operator
from weft.ops.shapes import check_shape, flatten_index, normalize_axis
from weft.support.dtypes import i32
from weft.support.errors import TypeMismatch
from weft.te import ReduceAxis, Reducer, Tensor, compute, compute_many, max_, min_, prod, reduce_axis, sum_

Index: TypeAlias = tuple[Expr, ...]
Hit: TypeAlias = Callable[[Index], tuple[Index, Expr, Expr]]

LONGEST_SUM = 8
"""Most terms of a weighted sum that is unrolled, so that it fuses with its consumers."""


@operator("gather_nd")
def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """The slices of *x* at the index tuples in the last dimension of *indices*, after *batch_dims* dimensions in common."""
    n = indices.rank - 1
    depth = _tuple_size(indices)
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
def _tuples_range(x: Shaped, indices: Shaped, *, batch_dims: int = 0) -> IndexRange:
    depth = int(getattr(indices.shape[-1], "value", 0))
    return IndexRange(1, tuple([either_way(s) for s in x.shape[batch_dims : batch_dims + depth]]), by_column=True)


def _tuple_size(indices: Tensor) -> int:
    if not indices.rank:
        raise TypeMismatch("the index tuples are a single number; they should be the last dimension of a tensor")
    size = indices.shape[-1]
    if not isinstance(size, Const):
        raise TypeMismatch("the number of indices in a tuple must be known")
    return int(size.value)


def _last(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Combines (position, value) pairs: the later one wins."""
    return select(a[0] < b[0], b[0], a[0]), select(a[0] < b[0], b[1], a[1])


_LAST = Reducer("last", _last, lambda t: (const(-1, t[0]), const(0, t[1])))
_REDUCERS = {"add": sum_, "mul": prod, "max": max_, "min": min_}


def _scatter(x: Tensor, updates: Tensor, axes: Sequence[ReduceAxis], reduction: str, hit: Hit, name: str) -> Tensor:
    """Combines with each element of *x* the updates that hit it; *hit* gives an update's index, its condition, its position."""
    if reduction == "none":

        def latest(*i: Expr) -> object:
            at, counts, position = hit(i)
            return _LAST(
                (select(counts, position, const(-1, INDEX)), select(counts, updates[at], const(0, x.dtype))), axes
            )

        place, value = compute_many(x.shape, latest, f"{name}_last")
        return map_tensors(name, lambda p, v, e: select(p >= 0, v, e), place, value, x, dtype=x.dtype)
    reducer = _REDUCERS.get(reduction)
    if reducer is None:
        raise TypeMismatch(f"{name}: there is no reduction {reduction}", hint=f"use none, {', '.join(_REDUCERS)}")
    neutral = reducer.identity((x.dtype,))[0]

    def combined(*i: Expr) -> object:
        at, counts, _ = hit(i)
        return reducer(select(counts, updates[at], neutral), axes)

    made = compute(x.shape, combined, f"{name}_updates", dtype=x.dtype)
    return map_tensors(name, lambda e, u: reducer.combine((e,), (u,))[0], x, made)


@operator("scatter_elements")
def scatter_elements(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none") -> Tensor:
    """*x* with each element of *updates* put at its place, but at the index given along *axis*; the last of several wins.

    Another *reduction* (add, mul, max, min) combines them with what is there.
    """
    d = normalize_axis(axis, x.rank)
    if indices.rank != x.rank:
        raise TypeMismatch(f"scatter_elements: indices of {indices.rank} dimensions for a tensor of {x.rank}")
    check_shape("scatter_elements: the tensor of updates", updates.shape, indices.shape)
    k = reduce_axis(updates.shape[d], "k")

    def hit(i: Index) -> tuple[Index, Expr, Expr]:
        at = (*i[:d], k, *i[d + 1 :])
        inside = [
            v < s for n, (v, s) in enumerate(zip(i, updates.shape, strict=True)) if n != d and s is not x.shape[n]
        ]
        return at, all_of([*inside, eq(from_end(indices[at], x.shape[d]), i[d])]), k

    return _scatter(x, updates, [k], reduction, hit, "scatter_elements")


@takes_indices("scatter_elements")
def _scatter_range(
    x: Shaped, indices: Shaped, updates: Shaped, *, axis: int = 0, reduction: str = "none"
) -> IndexRange:
    return IndexRange(1, (either_way(x.shape[axis]),))


@operator("scatter_nd")
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    """*x* with each slice of *updates* put at its index tuple (the last dimension of *indices*); the last of several wins.

    Another *reduction* (add, mul, max, min) combines them with what is there.
    """
    depth = _tuple_size(indices)
    lead = indices.shape[:-1]
    if depth > x.rank:
        raise TypeMismatch(f"scatter_nd: tuples of {depth} indices for a tensor of {x.rank} dimensions")
    check_shape("scatter_nd: the tensor of updates", updates.shape, (*lead, *x.shape[depth:]))
    ks = [reduce_axis(s, f"k{n}") for n, s in enumerate(lead)] or [reduce_axis(1, "k")]
    row = tuple(ks) if lead else ()

    def hit(i: Index) -> tuple[Index, Expr, Expr]:
        matches = [eq(from_end(indices[(*row, n)], x.shape[n]), i[n]) for n in range(depth)]
        return (*row, *i[depth:]), all_of(matches), flatten_index(row, lead)

    return _scatter(x, updates, ks, reduction, hit, "scatter_nd")


@takes_indices("scatter_nd")
def _scatter_tuples_range(x: Shaped, indices: Shaped, updates: Shaped, *, reduction: str = "none") -> IndexRange:
    return _tuples_range(x, indices)


@operator("write_at")
def write_at(x: Tensor, update: Tensor, begin: Tensor, *, axis: int, circular: bool = False) -> Tensor:
    """*x* with *update* written along *axis* from `begin[b]` on, for each *b* of the first dimension; *circular* wraps around."""
    if update.rank != x.rank:
        raise TypeMismatch(f"write_at: an update of {update.rank} dimensions for a tensor of {x.rank}")
    check_shape("write_at: the update", update.shape, (*x.shape[:axis], update.shape[axis], *x.shape[axis + 1 :]))
    check_shape("write_at: where to begin", begin.shape, x.shape[:1])

    def written(*i: Expr) -> Expr:
        t = i[axis] - cast(begin[i[0]], INDEX)
        t = t % x.shape[axis] if circular else t
        new = update[(*i[:axis], minimum(maximum(t, 0), update.shape[axis] - 1), *i[axis + 1 :])]
        return select((t >= 0) & (t < update.shape[axis]), new, x[i])

    return compute(x.shape, written, "write_at", dtype=x.dtype)


@takes_indices("write_at")
def _beginnings(x: Shaped, update: Shaped, begin: Shaped, *, axis: int, circular: bool = False) -> IndexRange | None:
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


@operator("argsort")
def argsort(x: Tensor, *, axis: int = -1, descending: bool = False) -> Tensor:
    """The indices that sort *x* along *axis*, equal elements in their order: each element's rank is counted, then inverted.

    NaN is larger than any number. The keys that are compared are integers in the same order, so that each rank is there once.
    """
    d = normalize_axis(axis, x.rank)
    keys = map_tensors("order_key", order_key, x, dtype=order_key(const(0, x.dtype)).dtype)
    k = reduce_axis(x.shape[d], "k")

    def before(*i: Expr) -> object:
        own, other = keys[i], keys[(*i[:d], k, *i[d + 1 :])]
        ahead = own < other if descending else other < own
        return sum_(cast(ahead | (eq(other, own) & (k < i[d])), i32), [k])

    rank = compute(x.shape, before, "rank", dtype=i32)

    def holder(*i: Expr) -> object:
        return sum_(select(eq(rank[(*i[:d], k, *i[d + 1 :])], cast(i[d], i32)), cast(k, i32), const(0, i32)), [k])

    return map_tensors("argsort", lambda e: cast(e, INDEX), compute(x.shape, holder, "holder", dtype=i32), dtype=INDEX)


@operator("resample")
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

    if isinstance(count, Const) and int(count.value) <= LONGEST_SUM:
        return compute(shape, written_out, "resample", dtype=x.dtype)
    t = reduce_axis(count, "t")
    return compute(shape, lambda *i: sum_(term(i, t), [t]), "resample", dtype=x.dtype)
