"""Activations, arithmetic, and normalisations by statistics or by learnt numbers."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from weft.frontends.caffe.call import Call
from weft.frontends.caffe.registry import Tops, layer
from weft.graph.builder import CompileTimeConstant, Operand, static_sizes, total

_FLT_MIN: Final = 1e-30


@layer("ReLU")
def relu(c: Call) -> Tops:
    """Rectifies: negative elements are multiplied by `negative_slope`."""
    slope = c.parameters("relu_param").number("negative_slope", 0.0)
    return c.add("leaky_relu", c.input, alpha=slope) if slope else c.add("relu", c.input)


@layer("ReLU6")
def relu6(c: Call) -> Tops:
    """Clips to 0 and 6."""
    return c.add("clip", c.input, c.number(0.0, c.input), c.number(6.0, c.input))


@layer("Clip")
def clip(c: Call) -> Tops:
    """Clips to `min` and `max`."""
    p, x = c.parameters("clip_param"), c.input
    return c.add("clip", x, *(c.number(p.number(name, 0.0), x) for name in ("min", "max")))


@layer("PReLU")
def prelu(c: Call) -> Tops:
    """Rectifies: negative elements are multiplied by a learnt slope of their channel."""
    x = c.input
    shared = c.parameters("prelu_param").flag("channel_shared", False)
    if shared:
        return c.add("prelu", x, c.blob(0, [1], "slope"))
    slope = c.blob(0, [c.static(x)[0]], "slope")
    return c.add("prelu", x, c.reshape(slope, [*slope.shape, *[1] * (x.rank - 2)]))


@layer("ELU")
def elu(c: Call) -> Tops:
    """Rectifies: negative elements become `alpha * (exp(x) - 1)`."""
    return c.add("elu", c.input, alpha=c.parameters("elu_param").number("alpha", 1.0))


@layer("Sigmoid")
def sigmoid(c: Call) -> Tops:
    """The logistic function."""
    return c.add("sigmoid", c.input)


@layer("Swish")
def swish(c: Call) -> Tops:
    """`x * sigmoid(beta * x)`."""
    x, beta = c.input, c.parameters("swish_param").number("beta", 1.0)
    return c.add("mul", x, c.add("sigmoid", x if beta == 1.0 else c.add("mul", x, c.number(beta, x))))


@layer("Threshold")
def threshold(c: Call) -> Tops:
    """1 for elements larger than `threshold`, else 0."""
    x = c.input
    bound = c.number(c.parameters("threshold_param").number("threshold", 0.0), x)
    return c.cast(c.add("less", bound, x), x.dtype)


@layer("TanH")
def tanh(c: Call) -> Tops:
    """The hyperbolic tangent."""
    return c.add("tanh", c.input)


@layer("AbsVal")
def abs_val(c: Call) -> Tops:
    """The absolute value."""
    return c.add("abs", c.input)


@layer("BNLL")
def bnll(c: Call) -> Tops:
    """`log(1 + exp(x))`."""
    return c.add("softplus", c.input)


@layer("Softmax")
def softmax(c: Call) -> Tops:
    """The softmax along an axis."""
    x = c.input
    return c.add("softmax", x, axis=c.axis(c.parameters("softmax_param").integer("axis", 1), x))


def _affine(c: Call, x: Operand, scale: float, shift: float) -> Operand:
    y = x if scale == 1.0 else c.add("mul", x, c.number(scale, x))
    return y if shift == 0.0 else c.add("add", y, c.number(shift, x))


@layer("Power")
def power(c: Call) -> Tops:
    """`(shift + scale * x) ** power`."""
    p = c.parameters("power_param")
    exponent = p.number("power", 1.0)
    y = _affine(c, c.input, p.number("scale", 1.0), p.number("shift", 0.0))
    return y if exponent == 1.0 else c.add("power", y, c.number(exponent, y))


@layer("Exp")
def exp(c: Call) -> Tops:
    """`base ** (shift + scale * x)`; a base of -1 is Euler's number."""
    p = c.parameters("exp_param")
    factor = _logarithm(c, p.number("base", -1.0))
    return c.add("exp", _affine(c, c.input, p.number("scale", 1.0) * factor, p.number("shift", 0.0) * factor))


@layer("Log")
def log(c: Call) -> Tops:
    """The logarithm of `shift + scale * x`; a base of -1 is Euler's number."""
    p = c.parameters("log_param")
    factor = _logarithm(c, p.number("base", -1.0))
    if factor == 0.0:
        c.fail("there are no logarithms of base 1", "give log_param another base")
    y = c.add("log", _affine(c, c.input, p.number("scale", 1.0), p.number("shift", 0.0)))
    return _affine(c, y, 1 / factor, 0.0)


def _logarithm(c: Call, base: float) -> float:
    if base != -1.0 and base <= 0:
        c.fail(f"base: {base} should be positive, or -1")
    return 1.0 if base == -1.0 else math.log(base)


@layer("Eltwise")
def eltwise(c: Call) -> Tops:
    """The product, the (weighted) sum or the largest of several inputs."""
    p = c.parameters("eltwise_param")
    ops = {"PROD": "mul", "SUM": "add", "MAX": "maximum", "0": "mul", "1": "add", "2": "maximum"}
    op = p.choice("operation", "add", ops)
    weights = p.numbers("coeff") or [1.0] * len(c.inputs)
    if len(weights) != len(c.inputs):
        c.fail(f"it has {len(weights)} coeff and {len(c.inputs)} bottoms", "give one coeff for each bottom")
    y: Operand = c.input
    if op == "add":
        y = _affine(c, y, weights[0], 0.0)
    for x, weight in zip(c.inputs[1:], weights[1:], strict=True):
        y = c.add(op, y, _affine(c, x, weight, 0.0) if op == "add" else x)
    return y


@layer("BN")
def bn(c: Call) -> Tops:
    """Normalisation and scale in one layer of forks: SegNet's has both in two blobs, PSPNet's scale, bias, mean and variance."""
    x, count = c.input, c.static(c.input)[0]
    blobs = [c.blob(k, [count], what) for k, what in enumerate(("scale", "bias", "mean", "variance")[: c.blobs])]
    if len(blobs) == 2:
        scale, bias = (c.reshape(b, [count, *[1] * (x.rank - 2)]) for b in blobs)
        return c.add("add", c.add("mul", x, scale), bias)
    if len(blobs) != 4:
        c.fail(
            f"it has {c.blobs} blobs, and layers BN of forks that are known have two or four", "use BatchNorm and Scale"
        )
    return c.add("batch_norm", x, *blobs, epsilon=max(c.parameters("bn_param").number("eps", 1e-5), 0.0))


@layer("BatchNorm")
def batch_norm(c: Call) -> Tops:
    """Normalisation of channels by the statistics of training; these are sums of the weight in the third blob.

    Where `use_global_stats` is false, the statistics are those of the batch.
    """
    p, x = c.parameters("batch_norm_param"), c.input
    if not p.flag("use_global_stats", True):
        axes = tuple(d for d in range(x.rank) if d != 1)
        y = c.add("sub", x, c.add("reduce_mean", x, axes=axes, keepdims=True))
        variance = c.add("reduce_mean", c.add("mul", y, y), axes=axes, keepdims=True)
        return c.add("div", y, c.add("sqrt", _affine(c, variance, 1.0, max(p.number("eps", 1e-5), 0.0))))
    count = c.static(x)[0]
    weight = float(c.blob(2, [1], "factor").array.reshape(-1)[0])
    factor = 0.0 if weight == 0.0 else 1.0 / weight
    mean, variance = [
        CompileTimeConstant((c.blob(k, [count], what).array * np.float32(factor)), f"{c.layer.text('name', '')}.{what}")
        for k, what in enumerate(("mean", "variance"))
    ]
    one, zero = [CompileTimeConstant(np.full(count, v, np.float32)) for v in (1, 0)]
    return c.add("batch_norm", x, one, zero, mean, variance, epsilon=max(p.number("eps", 1e-5), 0.0))


@layer("Scale")
def scale(c: Call) -> Tops:
    """The product with learnt numbers, or with the second input, from `axis` on; a learnt bias may follow."""
    p = c.parameters("scale_param")
    shape, factor, rest = _spread(c, p.integer("axis", 1), p.integer("num_axes", 1), "scale")
    y = c.add("mul", c.input, factor)
    if not p.flag("bias_term", False):
        return y
    return c.add("add", y, c.reshape(c.blob(rest, shape, "bias"), [*shape, *[1] * (factor.rank - len(shape))]))


@layer("Bias")
def bias(c: Call) -> Tops:
    """The sum with learnt numbers, or with the second input, from `axis` on."""
    p = c.parameters("bias_param")
    return c.add("add", c.input, _spread(c, p.integer("axis", 1), p.integer("num_axes", 1), "bias")[1])


def _spread(c: Call, axis: int, count: int, what: str) -> tuple[list[int], Operand, int]:
    """Returns the shape of a layer's factors, these such that they spread over its input, and how many blobs they took."""
    x = c.input
    first = c.axis(axis, x)
    given = c.inputs[1] if len(c.inputs) > 1 else None
    last = x.rank if count == -1 else first + (count if given is None else given.rank)
    if not first <= last <= x.rank:
        c.fail(f"{last - first} axes from {first} on are more than {x!r} has", f"mend its {what}_param")
    shape = static_sizes(x.shape[first:last])
    if shape is None or (given is not None and static_sizes(given.shape) != shape):
        c.fail(
            f"its second bottom does not fit: {given!r} to {x!r}"
            if given
            else f"it needs sizes that are numbers: {x!r}"
        )
    v: Operand = c.blob(0, shape, what) if given is None else given
    return shape, c.reshape(v, [*shape, *[1] * (x.rank - last)]), 0 if given is not None else 1


@layer("MVN")
def mvn(c: Call) -> Tops:
    """Each channel, or (`across_channels`) each image, less its mean and divided by its deviation."""
    p, x = c.parameters("mvn_param"), c.image()
    axes = (1, 2, 3) if p.flag("across_channels", False) else (2, 3)
    y = c.add("sub", x, c.add("reduce_mean", x, axes=axes, keepdims=True))
    if not p.flag("normalize_variance", True):
        return y
    variance = c.add("reduce_mean", c.add("mul", y, y), axes=axes, keepdims=True)
    return c.add("div", y, _affine(c, c.add("sqrt", variance), 1.0, max(p.number("eps", 1e-9), _FLT_MIN)))


@layer("Normalize")
def normalize(c: Call) -> Tops:
    """Each place's channels (or each image, `across_spatial`) divided by their length, times learnt factors: SSD's."""
    p, x = c.parameters("norm_param"), c.image()
    axes = (1, 2, 3) if p.flag("across_spatial", True) else (1,)
    squares = c.add("reduce_sum", c.add("mul", x, x), axes=axes, keepdims=True)
    y = c.add("div", x, c.add("sqrt", _affine(c, squares, 1.0, p.number("eps", 1e-10))))
    count = 1 if p.flag("channel_shared", True) else c.static(x)[0]
    return c.add("mul", y, c.reshape(c.blob(0, [count], "scale"), [count, 1, 1]))


@layer("Reduction")
def reduction(c: Call) -> Tops:
    """Sums (of absolute values, of squares) or the mean of all that follows `axis`."""
    p, x = c.parameters("reduction_param"), c.input
    axis, kind = c.axis(p.integer("axis", 0), x), p.text("operation", "SUM")
    if kind not in ("SUM", "ASUM", "SUMSQ", "MEAN"):
        c.fail(f"operation: {kind} should be SUM, ASUM, SUMSQ or MEAN")
    flat = c.reshape(x, [*x.shape[:axis], total(x.shape[axis:])])
    if kind != "SUM" and kind != "MEAN":
        flat = c.add("abs", flat) if kind == "ASUM" else c.add("mul", flat, flat)
    y = c.add("reduce_mean" if kind == "MEAN" else "reduce_sum", flat, axes=(axis,), keepdims=False)
    return _affine(c, y, p.number("coeff", 1.0), 0.0)
