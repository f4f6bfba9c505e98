"""Scatters: updates put, or combined, at indices that are data, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir import INDEX, TRUE, ZERO, Expr, ExprLike, all_of, as_expr, cast
from weft.ops.index_ranges import IndexRange, Shaped, either_way, takes_indices
from weft.ops.indexing import tuple_size, tuples_range
from weft.ops.movement import chosen_index
from weft.ops.registry import operator
from weft.ops.shapes import check_shape, normalize_axis
from weft.support.errors import TypeMismatch
from weft.te import Reducer, Tensor, Widened, max_, min_, prod, put_last, scatter, sum_

_REDUCERS: dict[str, Reducer | None] = {"none": None, "add": sum_, "mul": prod, "max": max_, "min": min_}


def _always(*_: Expr) -> Expr:
    return TRUE


def _scattered(
    x: Tensor,
    updates: Tensor,
    reduction: str,
    place: Callable[..., Sequence[Expr]],
    name: str,
    *,
    in_place: bool,
    any_order: bool,
    counts: Callable[..., Expr] = _always,
) -> Tensor:
    """Combines each element of *updates* that *counts* with the element of *x* at *place* of its index.

    *in_place* is as `append` takes it. In *any_order*, several at one place are combined as they come, but the last one replaces.
    """
    if reduction not in _REDUCERS:
        raise TypeMismatch(f"{name}: there is no reduction {reduction}", hint=f"use {', '.join(_REDUCERS)}")
    reducer = _REDUCERS[reduction]
    if reducer in (None, max_, min_):  # nothing is computed: elements are moved as they are stored
        x, updates = (t.stored if isinstance(t, Widened) else t for t in (x, updates))

    def update(*i: Expr) -> tuple[Sequence[Expr], Expr, Expr]:
        return place(*i), updates[i], counts(*i)

    if any_order and reducer is None:
        return put_last(x, updates.shape, update, name, in_place=in_place)
    return scatter(x, updates.shape, update, reducer, name, in_place=in_place, any_order=any_order)


@operator("scatter_elements")
def scatter_elements(
    x: Tensor,
    indices: Tensor,
    updates: Tensor,
    *,
    axis: int = 0,
    reduction: str = "none",
    in_place: bool = False,
    any_order: bool = False,
) -> Tensor:
    """*x* with each element of *updates* put at its place, but at the index given along *axis*; the last of several wins.

    Another *reduction* (add, mul, max, min) combines them with the elements there, in *any_order* if that is said. *in_place*
    says that the result is in the memory of *x*, as for a state: then the updates alone are written.
    """
    d = normalize_axis(axis, x.rank)
    if indices.rank != x.rank:
        raise TypeMismatch(f"scatter_elements: indices of {indices.rank} dimensions for a tensor of {x.rank}")
    check_shape("scatter_elements: the tensor of updates", updates.shape, indices.shape)

    def place(*i: Expr) -> Sequence[Expr]:
        return (*i[:d], chosen_index(indices[i], x.shape[d]), *i[d + 1 :])

    return _scattered(x, updates, reduction, place, "scatter_elements", in_place=in_place, any_order=any_order)


@takes_indices("scatter_elements")
def _scatter_range(
    x: Shaped,
    indices: Shaped,
    updates: Shaped,
    *,
    axis: int = 0,
    reduction: str = "none",
    in_place: bool = False,
    any_order: bool = False,
) -> IndexRange:
    return IndexRange(1, (either_way(x.shape[axis]),))


@operator("scatter_nd")
def scatter_nd(
    x: Tensor,
    indices: Tensor,
    updates: Tensor,
    *,
    reduction: str = "none",
    axes: tuple[int, ...] | None = None,
    drop: bool = False,
    in_place: bool = False,
    any_order: bool = False,
) -> Tensor:
    """*x* with each slice of *updates* put at its index tuple (the last dimension of *indices*); the last of several wins.

    Another *reduction* (add, mul, max, min) combines them with the elements there, in *any_order* if that is said. *axes* are the
    dimensions that a tuple has indices of, the first ones unless given. With *drop*, updates outside of the tensor are left out,
    and no index counts from the end. *in_place* says that the result is in the memory of *x*, as for a state: then the updates
    alone are written.
    """
    depth = tuple_size(indices)
    lead = len(indices.shape) - 1
    if depth > x.rank:
        raise TypeMismatch(f"scatter_nd: tuples of {depth} indices for a tensor of {x.rank} dimensions")
    chosen = tuple(range(depth)) if axes is None else axes
    if len(chosen) != depth:
        raise TypeMismatch(f"scatter_nd: tuples of {depth} indices for {len(chosen)} axes")
    rest = [d for d in range(x.rank) if d not in chosen]
    wanted = (*indices.shape[:-1], *[x.shape[d] for d in rest])
    check_shape("scatter_nd: the tensor of updates", updates.shape, wanted)

    def index(n: int, d: int, i: Sequence[Expr]) -> Expr:
        given = indices[(*i[:lead], n)]
        return cast(given, INDEX) if drop else chosen_index(given, x.shape[d])

    def place(*i: Expr) -> Sequence[Expr]:
        at = dict(zip(rest, i[lead:], strict=True))
        at |= {d: index(n, d, i) for n, d in enumerate(chosen)}
        return [at[d] for d in range(x.rank)]

    def is_inside(*i: Expr) -> Expr:
        at = [(index(n, d, i), x.shape[d]) for n, d in enumerate(chosen)]
        return all_of([all_of([v >= ZERO, v < size]) for v, size in at])

    counts = is_inside if drop else _always
    return _scattered(x, updates, reduction, place, "scatter_nd", in_place=in_place, any_order=any_order, counts=counts)


@takes_indices("scatter_nd")
def _scatter_tuples_range(
    x: Shaped,
    indices: Shaped,
    updates: Shaped,
    *,
    reduction: str = "none",
    axes: tuple[int, ...] | None = None,
    drop: bool = False,
    in_place: bool = False,
    any_order: bool = False,
) -> IndexRange | None:
    if drop:
        return None
    if axes is None:
        return tuples_range(x, indices)
    return IndexRange(1, tuple([either_way(x.shape[d]) for d in axes]), by_column=True)


@operator("append")
def append(x: Tensor, rows: Tensor, *, axis: int, begin: ExprLike, in_place: bool = False) -> Tensor:
    """*x* with *rows* in it, along *axis* from *begin* on: there has to be room for them.

    *in_place* says that the result is in the memory of *x*, as for a state: then the rows alone are written.
    """
    d = normalize_axis(axis, x.rank)
    expected = (*x.shape[:d], rows.shape[d], *x.shape[d + 1 :]) if rows.rank == x.rank else x.shape
    check_shape("append: the tensor of rows", rows.shape, expected)
    x, rows = (t.stored if isinstance(t, Widened) else t for t in (x, rows))  # elements are moved as they are stored
    first = as_expr(begin, INDEX)

    def placed(*i: Expr) -> tuple[tuple[Expr, ...], Expr]:
        return (*i[:d], first + i[d], *i[d + 1 :]), rows[i]

    return scatter(x, rows.shape, placed, None, "append", in_place=in_place)
