"""Normalisations."""

from __future__ import annotations

from weft.frontends.coreml.call import Call
from weft.frontends.coreml.registry import translates
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
