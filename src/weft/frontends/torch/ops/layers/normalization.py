"""Normalisations and softmax."""

from __future__ import annotations

import ml_dtypes

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results
from weft.graph.composites.normalization import group_norm as by_groups
from weft.graph.composites.normalization import inverse_deviation, mean_and_variance


@translates("batch_norm")
def batch_norm(c: Call) -> Results:
    """Normalises each channel by running statistics."""
    if c.value("training"):
        c.fail("training mode is not supported", "export the module for inference: module.eval()")
    return _normalized(c)


@translates("_native_batch_norm_legit_no_training")
def native_batch_norm(c: Call) -> Results:
    """The same, as programs made functional have it, with the statistics of a batch, of which there are none."""
    nothing = c.add("full", shape=(0,), value=0, dtype=c.dtype)
    return _normalized(c), nothing, nothing


def _normalized(c: Call) -> Operand:
    x, mean, var = c.tensor("input"), c.tensor("running_mean"), c.tensor("running_var")
    scale, bias = (_or_constant(c, name, v, mean) for name, v in (("weight", 1), ("bias", 0)))
    return c.add("batch_norm", x, scale, bias, mean, var, epsilon=c.value("eps"))


def _or_constant(c: Call, name: str, value: int, like: Operand) -> Operand:
    """Returns an argument, or one number for each channel."""
    found = c.optional(name)
    return c.add("expand", c.scalar(value, like.dtype), shape=like.shape) if found is None else found


@translates("layer_norm")
def layer_norm(c: Call) -> Results:
    """Normalises over the last dimensions."""
    x = c.tensor("input")
    axis = x.rank - len(c.arguments["normalized_shape"])
    return c.add("layer_norm", x, c.optional("weight"), c.optional("bias"), axis=axis, epsilon=c.value("eps"))


@translates("native_layer_norm")
def native_layer_norm(c: Call) -> Results:
    """The same, as decomposed programs have it, with the mean and the reciprocal standard deviation."""
    made = layer_norm(c)
    assert not isinstance(made, tuple)
    x = c.tensor("input")
    axes = range(x.rank - len(c.arguments["normalized_shape"]), x.rank)
    mean, spread = mean_and_variance(c, x, list(axes))
    return made, mean, inverse_deviation(c, spread, float(c.value("eps")))


@translates("group_norm")
def group_norm(c: Call) -> Results:
    """Normalises groups of channels."""
    x = c.tensor("input")
    return by_groups(c, x, c.integer("num_groups"), c.optional("weight"), c.optional("bias"), c.value("eps"))


@translates("rms_norm")
def rms_norm(c: Call) -> Results:
    """Divides by the root of the mean square over the last dimensions."""
    x, weight, epsilon = c.tensor("input"), c.optional("weight"), c.value("eps")
    epsilon = float(ml_dtypes.finfo(c.dtype.numpy).eps) if epsilon is None else epsilon
    y = c.add("rms_norm", x, axis=x.rank - len(c.arguments["normalized_shape"]), epsilon=epsilon)
    return y if weight is None else c.add("mul", y, weight)


@translates("softmax.int", "_softmax")
def softmax(c: Call) -> Results:
    """Exponentials, divided by their sum along a dimension."""
    return _along(c, "softmax")


@translates("log_softmax.int", "_log_softmax")
def log_softmax(c: Call) -> Results:
    """The logarithm of softmax."""
    return _along(c, "log_softmax")


def _along(c: Call, op: str) -> Operand:
    x = c.cast(c.tensor(), c.dtype)
    if x.rank == 0:
        return c.reshape(c.add(op, c.reshape(x, [1]), axis=0), [])
    return c.add(op, x, axis=c.axis("dim", x.rank))


@translates("_weight_norm")
def weight_norm(c: Call) -> Results:
    """A weight of a direction and of lengths: those of its slices along a dimension, or of the whole where that is -1."""
    v, d = c.tensor("v"), c.integer("dim", 0)
    axes = tuple([n for n in range(v.rank) if d == -1 or n != c.axis_of(d, v.rank)])
    squares = c.add("square", v)
    length = c.add("sqrt", c.add("reduce_sum", squares, axes=axes, keepdims=True) if axes else squares)
    return c.add("mul", v, c.add("div", c.tensor("g"), length))
