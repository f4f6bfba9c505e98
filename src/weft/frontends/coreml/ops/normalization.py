"""Normalisations."""

from __future__ import annotations

import numpy as np

from weft.frontends.coreml.call import Call
from weft.frontends.coreml.registry import translates
from weft.graph import Array
from weft.graph.builder import Operand
from weft.graph.composites.normalization import inverse_deviation, mean_and_variance, per_channel


def _or_filled(c: Call, name: str, value: float, like: Operand) -> Operand:
    found = c.optional(name)
    return c.add("full", shape=like.shape, value=value, dtype=like.dtype) if found is None else found


@translates("batch_norm")
def batch_norm(c: Call) -> Operand:
    """Channels normalised by their mean and variance in training."""
    x, mean, variance = c.operand(), c.operand("mean"), c.operand("variance")
    scale, bias = _or_filled(c, "gamma", 1, mean), _or_filled(c, "beta", 0, mean)
    return c.add("batch_norm", x, scale, bias, mean, variance, epsilon=c.number("epsilon", 1e-5))


def normalized(c: Call, x: Operand, axes: tuple[int, ...], epsilon: float) -> Operand:
    """Returns *x* less its mean, divided by its deviation, over *axes*."""
    mean, variance = mean_and_variance(c, x, axes)
    return c.add("mul", c.add("sub", x, mean), inverse_deviation(c, variance, epsilon))


def _scaled(c: Call, x: Operand, scale: Operand | None, bias: Operand | None) -> Operand:
    x = x if scale is None else c.add("mul", x, scale)
    return x if bias is None else c.add("add", x, bias)


@translates("instance_norm")
def instance_norm(c: Call) -> Operand:
    """Each channel of each image normalised by its own mean and variance."""
    x = c.operand()
    given = [None if v is None else per_channel(c, v, x.rank) for v in (c.optional("gamma"), c.optional("beta"))]
    return _scaled(c, normalized(c, x, tuple(range(2, x.rank)), c.number("epsilon", 1e-5)), *given)


@translates("layer_norm")
def layer_norm(c: Call) -> Operand:
    """Normalised over axes."""
    x, epsilon = c.operand(), c.number("epsilon", 1e-5)
    axes, scale, bias = c.axes(x.rank), c.optional("gamma"), c.optional("beta")
    if axes == tuple(range(x.rank - len(axes), x.rank)):
        return c.add("layer_norm", x, scale, bias, axis=axes[0], epsilon=epsilon)
    shape = [x.shape[d] if d in axes else 1 for d in range(x.rank)]
    scale, bias = (None if v is None else c.reshape(v, shape) for v in (scale, bias))
    return _scaled(c, normalized(c, x, axes, epsilon), scale, bias)


@translates("l2_norm")
def l2_norm(c: Call) -> Operand:
    """Divided by the root of the sum of squares over all dimensions but the first ones: the last three."""
    x = c.operand()
    axes = tuple(range(max(x.rank - 3, 0), x.rank))
    squares = c.add("reduce_sum", c.add("square", x), axes=axes, keepdims=True)
    root = c.add("rsqrt", c.add("add", squares, c.scalar(c.number("epsilon", 1e-6), x.dtype)))
    return c.add("mul", x, root)


@translates("local_response_norm")
def local_response_norm(c: Call) -> Operand:
    """Divided by a power of the sum of squares of channels around each."""
    return c.add(
        "lrn",
        c.operand(),
        size=c.integer("size"),
        alpha=c.number("alpha", 1e-4),
        beta=c.number("beta", 0.75),
        bias=c.number("k", 1.0),
    )


def along(values: Array, axis: int, rank: int) -> Array:
    """Returns a vector of numbers for the places along an axis, or one for all, to be broadcast to *rank* dimensions."""
    return values if values.ndim == 0 else values.reshape([-1 if d == axis else 1 for d in range(rank)])


@translates("constexpr_affine_dequantize")
def affine_dequantize(c: Call) -> Operand:
    """Weights held as small integers: (q - zero point) * scale."""
    data, axis = c.constant("quantized_data"), c.integer("axis", 0)
    scale, zero = (along(c.constant(n), axis, data.ndim) for n in ("scale", "zero_point"))
    made = (data.astype(np.float32) - zero.astype(np.float32)) * scale.astype(np.float32)
    return c.cast(c.kept_constant(made.astype(np.float32)), c.dtype())


@translates("constexpr_cast")
def constexpr_cast(c: Call) -> Operand:
    """Weights held as another type."""
    return c.cast(c.operand("source_val"), c.dtype())


@translates("constexpr_lut_to_dense")
def lut_to_dense(c: Call) -> Operand:
    """Weights held as indices of a table of few bits, packed."""
    table, shape = c.constant("lut"), c.ints("shape")
    width, count = int(np.log2(max(table.size, 1))), int(np.prod(shape))
    bits = np.unpackbits(c.constant("indices").reshape(-1).view(np.uint8), bitorder="little", count=count * width)
    places = (bits.reshape(count, width) << np.arange(width)).sum(axis=1)
    return c.kept_constant(table.reshape(-1)[places].reshape(shape))
