"""Reductions over axes, softmax and normalisations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from weft.ir import (
    INDEX,
    ONE,
    Cast,
    Const,
    Div,
    Expr,
    TruncDiv,
    apply,
    as_expr,
    cast,
    const,
    eq,
    maximum,
    minimum,
    select,
)
from weft.ops.elementwise import map_tensors
from weft.ops.folding import Fold, reduction
from weft.ops.nan_order import order_key
from weft.ops.registry import OPERATORS, Operator, operator
from weft.ops.shapes import at_broadcast, check_broadcasts, check_shape, normalize_axes, normalize_axis, product, sized
from weft.support.dtypes import DType, i32
from weft.support.errors import TypeMismatch
from weft.te import (
    ReduceAxis,
    Reducer,
    Tensor,
    argmax,
    argmin,
    compute,
    compute_many,
    highest,
    lowest,
    max_,
    max_number,
    min_,
    prod,
    reduce_axis,
    sum_,
)

Ints = Sequence[int]


def reduce_over(
    x: Tensor,
    axes: Ints | None,
    reducer: Reducer,
    name: str,
    of: Callable[[Expr], Expr] = lambda e: e,
    *,
    keepdims: bool = True,
    dtype: DType | None = None,
) -> Tensor:
    """Reduces `of(element)` over *axes* (all of them for None); reduced dimensions are kept with extent 1, or dropped.

    *dtype* is the result type of *of*, by default that of *x*.
    """
    over = normalize_axes(axes, x.rank)
    if not over:
        return map_tensors(name, of, x)
    ks, shape, index = _reduction(x, over, keepdims=keepdims)
    return compute(shape, lambda *i: reducer(of(x[index(i)]), ks), name, dtype=x.dtype if dtype is None else dtype)


Index = Callable[[Sequence[Expr]], tuple[Expr, ...]]


def _reduction(x: Tensor, over: Sequence[int], *, keepdims: bool) -> tuple[list[ReduceAxis], Sequence[Expr], Index]:
    """Returns the axes of a reduction over the dimensions *over*, its shape, and the index of *x* that an element of it reads."""
    ks, axis_of = _axes_over(x, over)
    kept = [d for d in range(x.rank) if keepdims or d not in over]

    def index(i: Sequence[Expr]) -> tuple[Expr, ...]:
        given = dict(zip(kept, i, strict=True))
        return tuple([axis_of[d] if d in over else given[d] for d in range(x.rank)])

    return ks, sized(*[1 if d in over else x.shape[d] for d in kept]), index


def _axes_over(x: Tensor, over: Sequence[int]) -> tuple[list[ReduceAxis], dict[int, Expr]]:
    """Returns the axes of a reduction over the dimensions *over*, and each dimension's index.

    The last dimensions lie one after another, so that a single axis runs through them: their sizes need not fill vectors each.
    """
    first = x.rank
    while first - 1 in over and isinstance(x.shape[first - 1], Const):
        first -= 1
    tail = range(first, x.rank) if x.rank - first > 1 else range(0)
    alone = {d: reduce_axis(x.shape[d], f"k{d}") for d in over if d not in tail}
    at: dict[int, Expr] = dict(alone)
    if not tail:
        return list(alone.values()), at
    k = reduce_axis(product(x.shape[d] for d in tail), f"k{first}")
    inner: Expr = ONE
    for d in reversed(tail):
        at[d] = k // inner if d == first else k // inner % x.shape[d]
        inner = inner * x.shape[d]
    return [*alone.values(), k], at


def _define(
    name: str,
    reducer: Reducer,
    of: Callable[[Expr], Expr] = lambda e: e,
    after: Callable[[Expr], Expr] | None = None,
    fold: Fold | None = None,
) -> None:
    """Registers the operator that reduces *of* each element, and applies *after* to the result; *fold* evaluates it."""

    def build(x: Tensor, *, axes: tuple[int, ...] | None = None, keepdims: bool = True) -> Tensor:
        y = reduce_over(x, axes, reducer, name, of, keepdims=keepdims)
        return y if after is None else map_tensors(f"{name}_out", after, y)

    OPERATORS[name] = Operator(name, build, fold=fold, along="axes")


@operator("sum_integers")
def sum_integers(x: Tensor, *, axes: tuple[int, ...], keepdims: bool = True) -> Tensor:
    """The sum over *axes* of integers of few bits, in 32."""
    return reduce_over(x, axes, sum_, "sum_integers", lambda e: cast(e, i32), keepdims=keepdims, dtype=i32)


_define("reduce_sum", sum_, fold=reduction(np.sum, lambda a, b: a + b))
_define("reduce_prod", prod, fold=reduction(np.prod, lambda a, b: a * b))
_define("reduce_max", max_, fold=reduction(np.max, lambda a, b: maximum(as_expr(a, INDEX), as_expr(b, INDEX))))
_define("reduce_min", min_, fold=reduction(np.min, lambda a, b: minimum(as_expr(a, INDEX), as_expr(b, INDEX))))
_define("reduce_sum_square", sum_, lambda e: e * e)
_define("reduce_l1", sum_, lambda e: apply("abs", e))
_define("reduce_l2", sum_, lambda e: e * e, lambda e: apply("sqrt", e))
_define("reduce_log_sum", sum_, after=lambda e: apply("log", e))


_EXTREMES = Reducer(
    "extremes",
    lambda a, b: (minimum(a[0], b[0]), maximum(a[1], b[1])),
    lambda t: (highest(t[0]), lowest(t[1])),
)


@operator("extremes")
def extremes(x: Tensor, y: Tensor, *, axes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """The least elements of *x* and the greatest of *y*, of one shape, over *axes*, which are dropped: in one pass over both."""
    check_shape("extremes: the second tensor", y.shape, x.shape)
    ks, shape, index = _reduction(x, normalize_axes(axes, x.rank), keepdims=False)
    return compute_many(shape, lambda *i: _EXTREMES((x[index(i)], y[index(i)]), ks), "extremes")


@operator("reduce_mean", along="axes")
def reduce_mean(x: Tensor, *, axes: tuple[int, ...] | None = None, keepdims: bool = True) -> Tensor:
    """The mean over *axes*."""
    total = reduce_over(x, axes, sum_, "mean_sum", keepdims=keepdims)
    count = product(x.shape[d] for d in normalize_axes(axes, x.rank))
    divide = TruncDiv if x.dtype.is_int else Div
    return map_tensors("reduce_mean", lambda e: divide(e, cast(count, x.dtype)), total)


@operator("reduce_log_sum_exp", along="axes")
def reduce_log_sum_exp(x: Tensor, *, axes: tuple[int, ...] | None = None, keepdims: bool = True) -> Tensor:
    """The logarithm of the sum of exponentials, with the largest element taken out first so that nothing overflows."""

    def taken_out(largest: Expr) -> Expr:
        """An infinity less itself would be no number, so nothing is taken out then."""
        return select(apply("is_inf", largest), const(0, largest.dtype), largest)

    top = reduce_over(x, axes, max_, "lse_max")
    moved = map_tensors("lse_exp", lambda e, m: apply("exp", e - taken_out(m)), x, top)
    total = reduce_over(moved, axes, sum_, "lse_sum")
    y = map_tensors("reduce_log_sum_exp", lambda s, m: apply("log", s) + taken_out(m), total, top)
    return y if keepdims else reduce_over(y, axes, max_, "lse_drop", keepdims=False)


def _define_arg(name: str, reducer: Reducer, *, nan_first: bool) -> None:
    """Registers the operator that gives the index of the best element along an axis: of the first NaN, if there is one."""

    def build(x: Tensor, *, axis: int = 0, keepdims: bool = True, last: bool = False) -> Tensor:
        d = normalize_axis(axis, x.rank)
        k = reduce_axis(x.shape[d], "k")
        kept = [e for n, e in enumerate(x.shape) if keepdims or n != d]
        shape = sized(*[1 if keepdims and n == d else s for n, s in enumerate(kept)])

        def best(*i: Expr) -> object:
            at = list(i)
            if keepdims:
                at[d] = k
            else:
                at.insert(d, k)
            # the reducer prefers the smaller of equal candidates' indices, so "the last" counts them from the end
            return reducer((x.shape[d] - 1 - k if last else k, order_key(x[tuple(at)], nan_first=nan_first)), [k])

        index, _ = compute_many(shape, best, name)
        return index if not last else map_tensors(f"{name}_last", lambda e: x.shape[d] - 1 - e, index)

    OPERATORS[name] = Operator(name, build)


_define_arg("argmax", argmax, nan_first=False)
_define_arg("argmin", argmin, nan_first=True)


@operator("softmax", along="axis")
def softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """`exp(x) / sum(exp(x))` along *axis*, with the largest element taken out first.

    With a NaN among them, all of the results are NaN as their sum is, whatever the largest.
    """
    d = (normalize_axis(axis, x.rank),)
    top = reduce_over(x, d, max_number, "softmax_max")
    moved = map_tensors("softmax_exp", lambda e, m: apply("exp_flushed", e - m), x, top)
    total = reduce_over(moved, d, sum_, "softmax_sum")
    scale = map_tensors("softmax_scale", lambda s: 1 / s, total)  # of at least 1, since the largest element adds that
    return map_tensors("softmax", lambda e, s: e * s, moved, scale)


@operator("log_softmax", along="axis")
def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """The logarithm of `softmax`."""
    d = (normalize_axis(axis, x.rank),)
    top = reduce_over(x, d, max_number, "softmax_max")
    moved = map_tensors("softmax_shift", lambda e, m: e - m, x, top)
    exps = map_tensors("softmax_exp", lambda e: apply("exp_flushed", e), moved)
    total = reduce_over(exps, d, sum_, "softmax_sum")
    logs = map_tensors("softmax_log", lambda s: apply("log", s), total)
    return map_tensors("log_softmax", lambda e, s: e - s, moved, logs)


@operator("hardmax")
def hardmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """One at the first largest element along *axis*, zero elsewhere."""
    d = normalize_axis(axis, x.rank)
    (best,) = OPERATORS["argmax"]([x], {"axis": d})
    return compute(
        x.shape, lambda *i: cast(eq(at_broadcast(best, i, x.shape), i[d]), x.dtype), "hardmax", dtype=x.dtype
    )


@operator("layer_norm")
def layer_norm(
    x: Tensor, scale: Tensor | None = None, bias: Tensor | None = None, *, axis: int = -1, epsilon: float = 1e-5
) -> Tensor:
    """Normalises over the dimensions from *axis* on (Ba, Kiros and Hinton, 2016); scale and bias broadcast to *x*."""
    d = tuple(range(normalize_axis(axis, x.rank), x.rank))
    for what, v in {"scale": scale, "bias": bias}.items():
        if v is not None:
            check_broadcasts(f"layer_norm: the {what}", v.shape, x.shape)
    count = product(x.shape[k] for k in d)
    mean = map_tensors("norm_mean", lambda e: e / Cast(count, x.dtype), reduce_over(x, d, sum_, "norm_sum"))
    centred = map_tensors("norm_centred", lambda e, m: e - m, x, mean)
    squares = reduce_over(centred, d, sum_, "norm_squares", lambda e: e * e)
    scaled = map_tensors("norm_scale", lambda v: 1 / apply("sqrt", v / Cast(count, x.dtype) + epsilon), squares)

    def finished(*i: Expr) -> Expr:
        e = centred[i] * at_broadcast(scaled, i, x.shape)
        e = e if scale is None else e * at_broadcast(scale, i, x.shape)
        return e if bias is None else e + at_broadcast(bias, i, x.shape)

    return compute(x.shape, finished, "layer_norm", dtype=x.dtype)


@operator("rms_norm")
def rms_norm(x: Tensor, *, axis: int = -1, epsilon: float = 1e-5) -> Tensor:
    """Divides by the root of the mean square over the dimensions from *axis* on (Zhang and Sennrich, 2019)."""
    d = tuple(range(normalize_axis(axis, x.rank), x.rank))
    count = product(x.shape[k] for k in d)
    squares = reduce_over(x, d, sum_, "norm_squares", lambda e: e * e)
    scale = map_tensors("norm_scale", lambda v: 1 / apply("sqrt", v / Cast(count, x.dtype) + epsilon), squares)
    return map_tensors("rms_norm", lambda e, v: e * v, x, scale)


@operator("lrn")
def lrn(x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
    """Divides by `(bias + alpha / size * s) ** beta`, s being the squares' sum over *size* channels around each.

    Krizhevsky, Sutskever and Hinton (2012), section 3.3; an even *size* has one more channel after than before.
    """
    if size < 1 or x.rank < 2:
        raise TypeMismatch(f"lrn: sums over {size} channels of a tensor of {x.rank} dimensions")
    channels = x.shape[1]
    most = max(0, int(channels.value) - 1) if isinstance(channels, Const) else size  # further apart no two channels are
    before, after = min((size - 1) // 2, most), min(size // 2, most)
    k = reduce_axis(before + 1 + after, "k")

    def squares(*i: Expr) -> object:
        c = i[1] + k - before
        e = x[(i[0], c, *i[2:])]
        return sum_(e * e, [k], where=(c >= 0) & (c < x.shape[1]))

    total = compute(x.shape, squares, "lrn_squares", dtype=x.dtype)
    return map_tensors("lrn", lambda e, s: e / apply("pow", s * (alpha / size) + bias, beta), x, total)
