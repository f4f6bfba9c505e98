"""Channels normalised by given statistics, or by their own."""

from __future__ import annotations

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.normalization import mean_and_variance


@translates("batch_norm_inference")
def batch_norm_inference(c: Call) -> Operand:
    """Each channel by a mean and a variance that are operands."""
    return _normalised(c, c.operand(3, rank=1), c.operand(4, rank=1))


@translates("batch_norm_training")
def batch_norm_training(c: Call) -> tuple[Operand, ...]:
    """Each channel by its own mean and variance, which are results too."""
    x, axis = c.operand(0), _axis(c)
    found = mean_and_variance(c, x, [d for d in range(x.rank) if d != axis])
    mean, variance = (c.reshape(v, [x.shape[axis]]) for v in found)
    return _normalised(c, mean, variance), mean, variance


def _axis(c: Call) -> int:
    return c.axis_of(c.integer("feature_index"), c.operand(0).rank)


def _normalised(c: Call, mean: Operand, variance: Operand) -> Operand:
    x, axis, epsilon = c.operand(0), _axis(c), c.value("epsilon")
    if not isinstance(epsilon, int | float):
        c.fail(f"its attribute epsilon is {epsilon!r}, not a number", AGAIN)
    shape = [s if d == axis else 1 for d, s in enumerate(x.shape)]
    scale, offset, middle, spread = (c.reshape(v, shape) for v in (c.operand(1), c.operand(2), mean, variance))
    wide = c.add("sqrt", c.add("add", spread, c.scalar(float(epsilon), x.dtype)))
    return c.add("add", c.add("mul", c.add("div", c.add("sub", x, middle), wide), scale), offset)
