"""Normalisations."""

from __future__ import annotations

from weft.frontends.onnx.call import Call, Operand, Results, total
from weft.frontends.onnx.registry import translates
from weft.ir.expr import ExprLike
from weft.support.dtypes import f32


@translates("BatchNormalization", limits="operator sets below 9 with spatial=0")
def batch_normalization(c: Call) -> Results:
    """Normalises each channel by given statistics or, in training mode, by the batch's own."""
    x, scale, bias, mean, var = (c.input(i) for i in range(5))
    if not c.flag("spatial", True):
        c.fail("spatial=0 is not supported", "export the model again with operator set 9 or newer")
    epsilon = c.number("epsilon", 1e-5)
    if not c.flag("training_mode", False):
        return c.add("batch_norm", x, scale, bias, mean, var, epsilon=epsilon)
    axes = tuple(d for d in range(x.rank) if d != 1)
    now = c.add("reduce_mean", x, axes=axes, keepdims=True)
    spread = c.add("reduce_mean", c.add("square", c.add("sub", x, now)), axes=axes, keepdims=True)
    now, spread = (c.cast(c.reshape(v, mean.shape), mean.dtype) for v in (now, spread))
    y = c.add("batch_norm", x, scale, bias, now, spread, epsilon=epsilon)
    momentum = c.number("momentum", 0.9)
    return y, _blend(c, mean, now, momentum), _blend(c, var, spread, momentum)


def _blend(c: Call, old: Operand, new: Operand, momentum: float) -> Operand:
    """Returns the running statistic after a batch."""
    kept = c.add("mul", old, c.scalar(momentum, old.dtype))
    return c.add("add", kept, c.add("mul", new, c.scalar(1 - momentum, new.dtype)))


@translates("LayerNormalization")
def layer_normalization(c: Call) -> Results:
    """Normalises over the dimensions from an axis on; the mean and the inverse deviation where they are asked for."""
    x = c.input(0)
    axis, epsilon = c.axis(-1, x.rank), c.number("epsilon", 1e-5)
    y = c.add("layer_norm", x, c.input(1), c.optional(2), axis=axis, epsilon=epsilon)
    if not (c.wants(1) or c.wants(2)):
        return y
    axes = tuple(range(axis, x.rank))
    wide = c.cast(x, f32) if c.integer("stash_type", 1) == 1 else x
    mean = c.add("reduce_mean", wide, axes=axes, keepdims=True)
    squares = c.add("reduce_mean", c.add("square", c.add("sub", wide, mean)), axes=axes, keepdims=True)
    deviation = c.add("sqrt", c.add("add", squares, c.scalar(epsilon, squares.dtype)))
    return y, mean, c.add("reciprocal", deviation)


@translates("RMSNormalization")
def rms_normalization(c: Call) -> Results:
    """Divides by the root of the mean square over the dimensions from an axis on."""
    x = c.input(0)
    y = c.add("rms_norm", x, axis=c.axis(-1, x.rank), epsilon=c.number("epsilon", 1e-5))
    return c.add("mul", y, c.input(1))


@translates("InstanceNormalization")
def instance_normalization(c: Call) -> Results:
    """Normalises each channel of each sample over its places."""
    x = c.input(0)
    scale, bias = (_per_channel(c, c.input(i), x.rank) for i in (1, 2))
    return c.add("layer_norm", x, scale, bias, axis=2, epsilon=c.number("epsilon", 1e-5))


def _per_channel(c: Call, v: Operand, rank: int) -> Operand:
    """Returns a vector of one element a channel, broadcast along the dimensions after the channels."""
    return c.reshape(v, [*v.shape, *[1] * (rank - 2)])


@translates("GroupNormalization")
def group_normalization(c: Call) -> Results:
    """Normalises groups of channels of each sample; before operator set 21, scale and bias are one a group."""
    x, groups = c.input(0), c.integer("num_groups", 1)
    rows: list[ExprLike] = [x.shape[0], groups, total(x.shape[1:]) // groups]
    split = c.reshape(x, rows)
    epsilon = c.number("epsilon", 1e-5)
    if c.opset < 21:
        scale, bias = (c.reshape(c.input(i), [groups, 1]) for i in (1, 2))
        return c.reshape(c.add("layer_norm", split, scale, bias, axis=2, epsilon=epsilon), x.shape)
    y = c.reshape(c.add("layer_norm", split, None, None, axis=2, epsilon=epsilon), x.shape)
    scale, bias = (_per_channel(c, c.input(i), x.rank) for i in (1, 2))
    return c.add("add", c.add("mul", y, scale), bias)


@translates("MeanVarianceNormalization")
def mean_variance_normalization(c: Call) -> Results:
    """Subtracts the mean and divides by the deviation; ONNX's own formula loses the variance around a large mean."""
    x = c.input(0)
    axes = tuple(sorted(c.axis_of(a, x.rank) for a in c.ints("axes") or [0, 2, 3]))
    centred = c.add("sub", x, c.add("reduce_mean", x, axes=axes, keepdims=True))
    variance = c.add("reduce_mean", c.add("square", centred), axes=axes, keepdims=True)
    return c.add("div", centred, c.add("add", c.add("sqrt", variance), c.scalar(1e-9, x.dtype)))


@translates("LpNormalization")
def lp_normalization(c: Call) -> Results:
    """Divides by the 1-norm or the 2-norm along an axis; zero where that is zero."""
    x, p = c.input(0), c.integer("p", 2)
    norm = c.add("reduce_l1" if p == 1 else "reduce_l2", x, axes=(c.axis(-1, x.rank),), keepdims=True)
    zero = c.scalar(0, x.dtype)
    return c.add("where", c.add("equal", norm, zero), zero, c.add("div", x, norm))


@translates("LRN")
def local_response_normalization(c: Call) -> Results:
    """Divides by a power of the squares' sum over neighbouring channels."""
    return c.add(
        "lrn", c.input(0), size=c.integer("size", 1), alpha=c.number("alpha", 1e-4), beta=c.number("beta", 0.75),
        bias=c.number("bias", 1.0),
    )  # fmt: skip
