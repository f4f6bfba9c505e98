"""Normalisations."""

from __future__ import annotations

from weft.frontends.onnx.call import Call, Results
from weft.frontends.onnx.registry import translates
from weft.graph.composites import normalization as composites
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
    return composites.training_batch_norm(c, x, scale, bias, mean, var, epsilon, c.number("momentum", 0.9))


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
    mean, variance = composites.mean_and_variance(c, wide, axes)
    return y, mean, composites.inverse_deviation(c, variance, epsilon)


@translates("RMSNormalization")
def rms_normalization(c: Call) -> Results:
    """Divides by the root of the mean square over the dimensions from an axis on."""
    x = c.input(0)
    y = c.add("rms_norm", x, axis=c.axis(-1, x.rank), epsilon=c.number("epsilon", 1e-5))
    return c.add("mul", y, c.input(1))


@translates("InstanceNormalization")
def instance_normalization(c: Call) -> Results:
    """Normalises each channel of each sample over its places."""
    return composites.instance_norm(c, c.input(0), c.input(1), c.input(2), c.number("epsilon", 1e-5))


@translates("GroupNormalization")
def group_normalization(c: Call) -> Results:
    """Normalises groups of channels of each sample; before operator set 21, scale and bias are one a group."""
    groups, epsilon = c.integer("num_groups", 1), c.number("epsilon", 1e-5)
    return composites.group_norm(c, c.input(0), groups, c.input(1), c.input(2), epsilon, of_groups=c.opset < 21)


@translates("MeanVarianceNormalization")
def mean_variance_normalization(c: Call) -> Results:
    """Subtracts the mean and divides by the deviation."""
    x = c.input(0)
    return composites.standardize(c, x, sorted(c.axis_of(a, x.rank) for a in c.ints("axes") or [0, 2, 3]), 1e-9)


@translates("LpNormalization")
def lp_normalization(c: Call) -> Results:
    """Divides by the 1-norm or the 2-norm along an axis; zero where that is zero."""
    x = c.input(0)
    return composites.lp_normalize(c, x, c.axis(-1, x.rank), c.integer("p", 2))


@translates("LRN")
def local_response_normalization(c: Call) -> Results:
    """Divides by a power of the squares' sum over neighbouring channels."""
    return c.add(
        "lrn",
        c.input(0),
        size=c.integer("size", 1),
        alpha=c.number("alpha", 1e-4),
        beta=c.number("beta", 0.75),
        bias=c.number("bias", 1.0),
    )
