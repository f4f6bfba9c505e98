"""Operators that move elements without computing: reshape, transpose, slices, concatenation, gathering, padding."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from weft.ir import (
    INDEX,
    ZERO,
    Bounds,
    Expr,
    ExprLike,
    apply,
    as_expr,
    cast,
    const,
    eq,
    free_vars,
    maximum,
    minimum,
    prove,
    select,
    simplify,
)
from weft.ops.cases import piecewise
from weft.ops.convolutions.conv import pad_spatial
from weft.ops.folding import Array, Fold, NotFoldable, check_count, integers, settled, static_sizes
from weft.ops.index_ranges import IndexRange, Shaped, either_way, takes_indices
from weft.ops.registry import operator
from weft.ops.shapes import (
    at_broadcast,
    bounds_of_existing,
    broadcast_shapes,
    check_shape,
    flatten_index,
    multiplied,
    normalize_axis,
    product,
    same_size,
    show_shape,
    simplify_size,
    size_bounds,
    sized,
    unflatten_index,
)
from weft.support.dtypes import DType, f32, i64
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute

Ints = Sequence[int]
Sizes = Sequence[ExprLike]


@operator("reshape", fold=Fold(lambda a, *, shape: a.reshape(static_sizes(shape))))
def reshape(x: Tensor, *, shape: tuple[ExprLike, ...]) -> Tensor:
    """The elements, in row-major order, in another shape of as many elements."""
    target = sized(*shape)
    if not same_size(product(x.shape), product(target)):
        raise TypeMismatch(f"{show_shape(x.shape)} can't be reshaped to {show_shape(target)}: the sizes differ")
    return compute(target, lambda *i: x[unflatten_index(flatten_index(i, target), x.shape)], "reshape", dtype=x.dtype)


@operator("transpose", fold=Fold(lambda a, *, perm: a.transpose(perm)))
def transpose(x: Tensor, *, perm: tuple[int, ...]) -> Tensor:
    """The dimensions in another order: dimension d of the result is dimension `perm[d]` of *x*."""
    if sorted(perm) != list(range(x.rank)):
        raise TypeMismatch(f"transpose: {perm} is not an order of {x.rank} dimensions")
    inverse = [perm.index(d) for d in range(x.rank)]
    shape = [x.shape[d] for d in perm]
    return compute(shape, lambda *i: x[tuple([i[d] for d in inverse])], "transpose", dtype=x.dtype)


def _fold_expand(a: Array, *, shape: Sizes) -> Array:
    target = np.broadcast_shapes(a.shape, tuple(static_sizes(shape)))
    check_count(prod(target))
    return np.broadcast_to(a, target)


@operator("expand", fold=Fold(_fold_expand))
def expand(x: Tensor, *, shape: tuple[ExprLike, ...]) -> Tensor:
    """*x* repeated along dimensions of size one, to the shape that it and *shape* broadcast to."""
    target = broadcast_shapes(x.shape, sized(*shape))
    return compute(target, lambda *i: at_broadcast(x, i, target), "expand", dtype=x.dtype)


@operator("repeat", along="axis")
def repeat(x: Tensor, *, axis: int, times: int) -> Tensor:
    """Each element of *x* along *axis* *times* times, one after another."""
    d = normalize_axis(axis, x.rank)
    if times < 1:
        raise TypeMismatch(f"repeat: {times} times", hint="once or more")
    shape = (*x.shape[:d], simplify_size(x.shape[d] * times), *x.shape[d + 1 :])
    return compute(shape, lambda *i: x[(*i[:d], i[d] // times, *i[d + 1 :])], "repeat", dtype=x.dtype)


@operator("concat", fold=Fold(lambda *arrays, axis: np.concatenate(arrays, axis)))
def concat(*xs: Tensor, axis: int) -> Tensor:
    """The tensors one after another along *axis*."""
    d = normalize_axis(axis, xs[0].rank)
    for x in xs[1:]:
        if x.rank != xs[0].rank:
            raise TypeMismatch(f"concat takes tensors of as many dimensions each, not {xs[0].rank} and {x.rank}")
        check_shape("concat: a tensor", (*x.shape[:d], *x.shape[d + 1 :]), (*xs[0].shape[:d], *xs[0].shape[d + 1 :]))
        if x.dtype is not xs[0].dtype:
            raise TypeMismatch(f"concat takes tensors of one type, not {xs[0].dtype} and {x.dtype}")
    ends: list[Expr] = []
    end: Expr = ZERO
    xs = tuple([x for x in xs if x.shape[d] is not ZERO]) or xs[:1]  # nothing is read of those without elements
    for x in xs:
        end = simplify_size(end + x.shape[d])
        ends.append(end)

    def joined(*i: Expr) -> Expr:
        begins = [ZERO, *ends]
        pieces = [x[(*i[:d], i[d] - begin, *i[d + 1 :])] for x, begin in zip(xs, begins, strict=False)]
        return piecewise(i[d], list(zip(ends, pieces, strict=True)))

    return compute((*xs[0].shape[:d], end, *xs[0].shape[d + 1 :]), joined, "concat", dtype=xs[0].dtype)


def _fold_slice(
    a: Array, *, starts: Sizes, ends: Sizes, axes: Ints | None = None, steps: Ints | None = None, inside: bool = False
) -> Array:
    where: list[slice] = [slice(None)] * a.ndim
    along = range(a.ndim) if axes is None else axes
    strides = [1] * len(starts) if steps is None else steps
    for d, s, e, st in zip(along, integers(starts), integers(ends), strides, strict=True):
        where[d] = slice(s, e, st)
    return a[tuple(where)]


@operator("slice", fold=Fold(_fold_slice))
def slice_(
    x: Tensor, *, starts: Sizes, ends: Sizes, axes: Ints | None = None, steps: Ints | None = None, inside: bool = False
) -> Tensor:
    """Every *steps*-th element from *starts* to before *ends* along *axes*; negative numbers count from the end, as in NumPy.

    Numbers beyond a dimension are moved to its end, unless *inside* promises that there are none (and none is negative).
    """
    along = range(x.rank) if axes is None else [normalize_axis(a, x.rank) for a in axes]
    strides = [1] * len(starts) if steps is None else steps
    if not len(along) == len(starts) == len(ends) == len(strides) or 0 in strides:
        raise TypeMismatch(
            f"slice: {len(along)} axes, {len(starts)} starts, {len(ends)} ends and the steps {tuple(strides)} do not fit together"
        )
    begin: dict[int, Expr] = {}
    step: dict[int, int] = {}
    shape = list(x.shape)
    for d, s, e, st in zip(along, starts, ends, strides, strict=True):
        begin[d], shape[d] = _range_inside(s, e, st) if inside else _slice_range(x.shape[d], s, e, st)
        step[d] = st

    def sliced(*i: Expr) -> Expr:
        return x[tuple([begin[d] + v * step[d] if d in begin else v for d, v in enumerate(i)])]

    return compute(shape, sliced, "slice", dtype=x.dtype)


def _range_inside(start: ExprLike, end: ExprLike, step: int) -> tuple[Expr, Expr]:
    """Returns the first index and the number of elements of a slice that lies inside its dimension."""
    first, last = sized(start, end)
    return first, simplify_size((last - first + (step - 1)) // step)


def _slice_range(size: Expr, start: ExprLike, end: ExprLike, step: int) -> tuple[Expr, Expr]:
    """Returns the first index and the number of elements of a slice of a dimension."""
    low, high = (ZERO, size) if step > 0 else (as_expr(-1), size - 1)
    known = bounds_of_existing(size, *[v for p in (start, end) if isinstance(p, Expr) for v in free_vars(p)])
    first, last = (_clamped(v, size, low, high, known) for v in (start, end))
    span = last - first if step > 0 else first - last
    count = maximum((span + (abs(step) - 1)) // abs(step), 0)
    return simplify(first, known), simplify(count, known)


def _clamped(position: ExprLike, size: Expr, low: Expr, high: Expr, known: Bounds) -> Expr:
    """Returns *position*, counted from the end if negative, kept between *low* and *high*."""
    if not isinstance(position, Expr) and abs(position) >= 1 << 31:
        return high if position > 0 else low
    at = as_expr(position, INDEX)
    if prove(at < 0, size_bounds(at)):
        at = at + size
    elif not prove(at >= 0, size_bounds(at)):
        at = select(at < 0, at + size, at)
    return simplify(minimum(maximum(at, low), high), known)


def _fold_split(a: Array, *, axis: int, sizes: Sizes) -> list[Array]:
    return np.split(a, np.cumsum(static_sizes(sizes))[:-1], axis)


@operator("split", fold=Fold(_fold_split))
def split(x: Tensor, *, axis: int, sizes: tuple[ExprLike, ...]) -> tuple[Tensor, ...]:
    """Pieces of *sizes* along *axis*."""
    d = normalize_axis(axis, x.rank)
    total = sum(sized(*sizes), ZERO)
    if not same_size(total, x.shape[d]):
        raise TypeMismatch(f"split: {show_shape(sized(*sizes))} do not make up dimension {d} of {show_shape(x.shape)}")
    made: list[Tensor] = []
    begin: Expr = ZERO
    for n, size in enumerate(sized(*sizes)):

        def piece(*i: Expr, begin: Expr = begin) -> Expr:
            return x[(*i[:d], begin + i[d], *i[d + 1 :])]

        made.append(compute((*x.shape[:d], size, *x.shape[d + 1 :]), piece, f"split_{n}", dtype=x.dtype))
        begin = simplify_size(begin + size)
    return tuple(made)


def from_end(i: Expr, size: Expr) -> Expr:
    """Returns an index that may be negative, counted from the front; one outside is moved to the nearest inside."""
    return minimum(maximum(_counted(i, size), 0), size - 1)


def chosen_index(i: Expr, size: Expr) -> Expr:
    """Returns an index that may be negative, counted from the front; the kernel reports one outside, see `guard_indices`."""
    return apply("watched", _counted(i, size), ZERO, size - 1)


def _counted(i: Expr, size: Expr) -> Expr:
    wide = cast(i, INDEX)
    return select(wide < 0, wide + size, wide)


def _fold_gather(a: Array, indices: Array, *, axis: int = 0) -> Array:
    if indices.dtype == object or not ((-a.shape[axis] <= indices) & (indices < a.shape[axis])).all():
        raise NotFoldable
    check_count(a.size // max(1, a.shape[axis]) * indices.size)
    return np.asarray(np.take(a, indices, axis))


@operator("gather", fold=Fold(_fold_gather))
def gather(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """The slices of *x* at *indices* along *axis*; negative ones count from the end, and the kernel reports ones outside."""
    d = normalize_axis(axis, x.rank)
    n = indices.rank

    def gathered(*i: Expr) -> Expr:
        at = chosen_index(indices[i[d : d + n]], x.shape[d])
        return x[(*i[:d], at, *i[d + n :])]

    return compute((*x.shape[:d], *indices.shape, *x.shape[d + 1 :]), gathered, "gather", dtype=x.dtype)


@takes_indices("gather")
def _gather_range(x: Shaped, indices: Shaped, *, axis: int = 0) -> IndexRange:
    return IndexRange(1, (either_way(x.shape[axis]),))


@operator("gather_elements")
def gather_elements(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """For each element of *indices*, the element of *x* at its place, but at the index given along *axis*."""
    d = normalize_axis(axis, x.rank)
    pairs = enumerate(zip(indices.shape, x.shape, strict=False))
    if indices.rank != x.rank or not all(n == d or _is_within(a, b) for n, (a, b) in pairs):
        raise TypeMismatch(
            f"gather_elements: indices {show_shape(indices.shape)} reach beyond {show_shape(x.shape)} along another axis than {d}"
        )

    def gathered(*i: Expr) -> Expr:
        return x[(*i[:d], chosen_index(indices[i], x.shape[d]), *i[d + 1 :])]

    return compute(indices.shape, gathered, "gather_elements", dtype=x.dtype)


def _is_within(a: Expr, b: Expr) -> bool:
    """Tells whether a size is at most another, or possibly equal to it."""
    return prove(a <= b, size_bounds(a, b)) or same_size(a, b)


takes_indices("gather_elements")(_gather_range)


@operator("pad")
def pad(x: Tensor, *, pads: Ints, mode: str = "constant", value: float = 0.0) -> Tensor:
    """Pads every dimension by a constant, the edge, a reflection or the other end; negative pads cut off."""
    n = x.rank
    if len(pads) != 2 * n:
        raise TypeMismatch(f"pad: {len(pads)} pads for a tensor of {n} dimensions")
    if not any(pads):
        return compute(x.shape, lambda *i: x[i], "pad", dtype=x.dtype)
    if mode == "constant" and all(p >= 0 for p in pads):
        return pad_spatial(x, pads, 0, value)
    shape = sized(*[s + pads[d] + pads[n + d] for d, s in enumerate(x.shape)])

    def padded(*i: Expr) -> Expr:
        at = [v - pads[d] for d, v in enumerate(i)]
        if mode != "constant":
            return x[tuple([_outside(a, s, mode) for a, s in zip(at, x.shape, strict=True)])]
        e = x[tuple(at)]
        for a, s in zip(at, x.shape, strict=True):
            e = select((a >= 0) & (a < s), e, const(value, x.dtype))
        return e

    return compute(shape, padded, "pad", dtype=x.dtype)


def _outside(i: Expr, size: Expr, mode: str) -> Expr:
    """Returns the index inside that stands for *i*, by the padding *mode*."""
    if mode == "edge":
        return minimum(maximum(i, 0), size - 1)
    if mode == "wrap":
        return i % size
    if mode == "reflect":
        period = maximum(2 * (size - 1), 1)
        folded = i % period
        return minimum(folded, period - folded)
    raise TypeMismatch(f"there is no padding mode {mode}", hint="use constant, edge, reflect or wrap")


def _fold_tile(a: Array, *, repeats: Ints) -> Array:
    check_count(a.size * prod(repeats))
    return np.tile(a, repeats)


@operator("tile", fold=Fold(_fold_tile))
def tile(x: Tensor, *, repeats: tuple[ExprLike, ...]) -> Tensor:
    """*x* repeated along each dimension."""
    if len(repeats) != x.rank:
        raise TypeMismatch(f"tile: {len(repeats)} repeats for a tensor of {x.rank} dimensions")
    counts = zip(x.shape, repeats, strict=True)
    shape = sized(*[s * r if isinstance(r, Expr) else multiplied(s, int(r)) for s, r in counts])
    return compute(shape, lambda *i: x[tuple([v % s for v, s in zip(i, x.shape, strict=True)])], "tile", dtype=x.dtype)


def _fold_full(*, shape: Sizes, value: float | int | bool = 0, dtype: DType = f32) -> Array:
    sizes = static_sizes(shape)
    check_count(prod(sizes))
    return np.full(sizes, value, dtype.numpy)


@operator("full", fold=Fold(_fold_full, typed_by=None))
def full(*, shape: tuple[ExprLike, ...], value: float | int | bool = 0, dtype: DType = f32) -> Tensor:
    """A tensor of one value."""
    return compute(sized(*shape), lambda *i: const(value, dtype), "full", dtype=dtype)


@operator("one_hot")
def one_hot(indices: Tensor, values: Tensor, *, depth: ExprLike, axis: int = -1) -> Tensor:
    """A new dimension of *depth* at *axis*, with `values[1]` at the index given and `values[0]` elsewhere."""
    d = normalize_axis(axis, indices.rank + 1)
    check_shape("one_hot: the pair of values", values.shape, (2,))

    def hot(*i: Expr) -> Expr:
        at = cast(indices[(*i[:d], *i[d + 1 :])], INDEX)
        return select(eq(select(at < 0, at + depth, at), i[d]), values[1], values[0])

    shape = (*indices.shape[:d], as_expr(depth, INDEX), *indices.shape[d:])
    return compute(shape, hot, "one_hot", dtype=values.dtype)


def _fold_range(*, start: Any, size: Any, step: Any = 1) -> Array:
    first, count, by = integers([settled(start), settled(size), settled(step)])
    check_count(count)
    return first + np.arange(count, dtype=np.int64) * by


@operator("range", fold=Fold(_fold_range, typed_by=None))
def range_(*, start: ExprLike, size: ExprLike, step: ExprLike = 1) -> Tensor:
    """The numbers start, start + step, ... as int64."""
    return compute(sized(size), lambda i: start + i * step, "range", dtype=i64)


@operator("sizes")
def sizes(*, sizes: Sizes, shape: Ints) -> Tensor:
    """The integers *sizes*, symbolic ones among them, as an int64 tensor of *shape*."""
    given = sized(*sizes)
    target = sized(*shape)

    def element(*i: Expr) -> Expr:
        position = flatten_index(i, target)
        e = given[-1]
        for n in reversed(range(len(given) - 1)):
            e = select(position < n + 1, given[n], e)
        return e

    return compute(target, element, "sizes", dtype=i64)


@operator("size_of")
def size_of(x: Tensor, *, axes: tuple[int, ...]) -> Tensor:
    """The sizes of *axes* of *x* as an int64 vector."""
    return sizes(sizes=[x.shape[normalize_axis(a, x.rank)] for a in axes], shape=(len(axes),))


@operator("trilu")
def trilu(x: Tensor, *, k: int = 0, upper: bool = True) -> Tensor:
    """The upper (or lower) triangle of the last two dimensions, zero elsewhere; *k* moves the diagonal."""
    if x.rank < 2:
        raise TypeMismatch(f"trilu takes matrices, not {show_shape(x.shape)}")

    def triangle(*i: Expr) -> Expr:
        kept = i[-2] + k <= i[-1] if upper else i[-1] <= i[-2] + k
        return select(kept, x[i], const(0, x.dtype))

    return compute(x.shape, triangle, "trilu", dtype=x.dtype)
