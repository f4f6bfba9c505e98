"""Normalisations made of several operators; `batch_norm`, `layer_norm`, `rms_norm` and `lrn` are operators themselves."""

from __future__ import annotations

from collections.abc import Sequence

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import total
from weft.ir import ExprLike


def per_channel(b: Builder, v: Operand, rank: int) -> Operand:
    """Returns a vector of one element a channel (dimension 1), broadcast along the *rank* - 2 dimensions after the channels."""
    return b.reshape(v, [*v.shape, *[1] * (rank - 2)])


def mean_and_variance(b: Builder, x: Operand, axes: Sequence[int]) -> tuple[Operand, Operand]:
    """Returns the mean and the (biased) variance of *x* over *axes*, which are kept as ones."""
    mean = b.add("reduce_mean", x, axes=tuple(axes), keepdims=True)
    return mean, b.add("reduce_mean", b.add("square", b.add("sub", x, mean)), axes=tuple(axes), keepdims=True)


def training_batch_norm(
    b: Builder,
    x: Operand,
    scale: Operand,
    bias: Operand,
    mean: Operand,
    variance: Operand,
    epsilon: float,
    momentum: float,
) -> tuple[Operand, Operand, Operand]:
    """Normalises each channel by the batch's own statistics; also returns the updated running *mean* and *variance*.

    *momentum* is the share of the old statistics.
    """
    now, spread = mean_and_variance(b, x, [d for d in range(x.rank) if d != 1])
    now, spread = (b.cast(b.reshape(v, mean.shape), mean.dtype) for v in (now, spread))
    y = b.add("batch_norm", x, scale, bias, now, spread, epsilon=epsilon)
    return y, _blend(b, mean, now, momentum), _blend(b, variance, spread, momentum)


def _blend(b: Builder, old: Operand, new: Operand, momentum: float) -> Operand:
    kept = b.add("mul", old, b.scalar(momentum, old.dtype))
    return b.add("add", kept, b.add("mul", new, b.scalar(1 - momentum, new.dtype)))


def inverse_deviation(b: Builder, variance: Operand, epsilon: float) -> Operand:
    """Returns `1 / sqrt(variance + epsilon)`."""
    deviation = b.add("sqrt", b.add("add", variance, b.scalar(epsilon, variance.dtype)))
    return b.add("reciprocal", deviation)


def instance_norm(b: Builder, x: Operand, scale: Operand, bias: Operand, epsilon: float) -> Operand:
    """Normalises each channel of each sample over its spatial positions (Ulyanov, Vedaldi and Lempitsky, 2016)."""
    return b.add("layer_norm", x, per_channel(b, scale, x.rank), per_channel(b, bias, x.rank), axis=2, epsilon=epsilon)


def group_norm(
    b: Builder,
    x: Operand,
    groups: int,
    scale: Operand | None,
    bias: Operand | None,
    epsilon: float,
    *,
    of_groups: bool = False,
) -> Operand:
    """Normalises groups of channels of each sample (Wu and He, 2018); *scale* and *bias* are one a channel, or one a group."""
    rows: list[ExprLike] = [x.shape[0], groups, total(x.shape[1:]) // groups]
    split = b.reshape(x, rows)
    if of_groups:
        by_group = [None if v is None else b.reshape(v, [groups, 1]) for v in (scale, bias)]
        return b.reshape(b.add("layer_norm", split, *by_group, axis=2, epsilon=epsilon), x.shape)
    y = b.reshape(b.add("layer_norm", split, None, None, axis=2, epsilon=epsilon), x.shape)
    y = y if scale is None else b.add("mul", y, per_channel(b, scale, x.rank))
    return y if bias is None else b.add("add", y, per_channel(b, bias, x.rank))


def standardize(b: Builder, x: Operand, axes: Sequence[int], floor: float) -> Operand:
    """Subtracts the mean over *axes* and divides by the deviation plus *floor*.

    The variance is that of the centred elements: the difference of two means would lose it around a large mean.
    """
    centred = b.add("sub", x, b.add("reduce_mean", x, axes=tuple(axes), keepdims=True))
    variance = b.add("reduce_mean", b.add("square", centred), axes=tuple(axes), keepdims=True)
    return b.add("div", centred, b.add("add", b.add("sqrt", variance), b.scalar(floor, x.dtype)))


def lp_normalize(b: Builder, x: Operand, axis: int, p: int) -> Operand:
    """Divides by the 1-norm or the 2-norm along *axis*; zero where that is zero."""
    norm = b.add("reduce_l1" if p == 1 else "reduce_l2", x, axes=(axis,), keepdims=True)
    zero = b.scalar(0, x.dtype)
    return b.add("where", b.add("equal", norm, zero), zero, b.add("div", x, norm))
