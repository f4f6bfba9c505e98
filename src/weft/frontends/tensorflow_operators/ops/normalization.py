"""Normalisation of batches, by given statistics or the batch's own."""

from __future__ import annotations

from typing import Final

from weft.frontends.tensorflow_operators.call import Call, Results
from weft.frontends.tensorflow_operators.images import is_channels_last
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.composites.normalization import mean_and_variance
from weft.support.dtypes import f32

_STATISTICS: Final = ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3")


@translates("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", outputs=_STATISTICS)
def fused_batch_norm(c: Call) -> Results:
    """Normalises each channel; further results are the statistics, and outputs for gradients."""
    x, last = c.tensor(0), is_channels_last(c)
    scale, shift = c.tensor(1, 1), c.tensor(2, 1)
    first = c.first(x, last=last)
    if c.flag("is_training", True):
        axes = [0, *range(2, first.rank)]
        mean, variance = (c.reshape(v, scale.shape) for v in mean_and_variance(c, c.cast(first, f32), axes))
    else:
        mean, variance = c.tensor(3, 1), c.tensor(4, 1)
    y = c.add("batch_norm", first, scale, shift, mean, variance, epsilon=c.number("epsilon", 1e-4))
    return c.last(y, last=last), mean, variance, mean, variance, mean


@translates("BatchNormWithGlobalNormalization")
def batch_norm_of_global(c: Call) -> Results:
    """Normalises each channel by mean and variance, then shifts, and scales if it is to."""
    mean, variance, shift, scale = (c.tensor(i, 1) for i in (1, 2, 3, 4))
    if not c.flag("scale_after_normalization"):
        scale = c.add("full", shape=scale.shape, value=1, dtype=scale.dtype)
    epsilon = c.number("variance_epsilon")
    return c.last(c.add("batch_norm", c.first(c.tensor(0)), scale, shift, mean, variance, epsilon=epsilon))
