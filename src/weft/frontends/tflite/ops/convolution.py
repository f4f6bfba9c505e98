"""Convolutions, pools and layers of neurons, whose weights have their outputs first, and may be integers."""

from __future__ import annotations

from typing import Any

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, Results
from weft.frontends.tensorflow_operators.images import convolved, kernel_of, pooled, spatial, transposed
from weft.frontends.tflite.call import LiteCall
from weft.frontends.tflite.registry import translates
from weft.graph.builder import Operand, static_sizes, total
from weft.ops import sized


def _windows(c: LiteCall, **attributes: Any) -> Call:
    """Returns the call with its strides and dilations as TensorFlow has them."""
    options = c.attributes
    strides = [1, *[options[k] for k in ("stride_d", "stride_h", "stride_w") if k in options], 1]
    dilations = [1, *[options.get(f"dilation_{k}", 1) for k in "dhw" if f"stride_{k}" in options], 1]
    settings = {"padding": c.text("padding"), "strides": strides, "dilations": dilations, **attributes}
    return Call(c.evaluator, c.source, c.op, [], settings, c.images)


@translates("CONV_2D")
def conv(c: LiteCall) -> Operand:
    """A convolution; its weight is [out, H, W, in / groups]."""
    return convolved(_windows(c), c.tensor(0, 4), c.weight(1, [0, 3, 1, 2]), c.bias(2))


@translates("DEPTHWISE_CONV_2D")
def depthwise(c: LiteCall) -> Operand:
    """A convolution of each channel by itself; its weight is [1, H, W, in * multiplier]."""
    return convolved(_windows(c), c.tensor(0, 4), c.weight(1, [3, 0, 1, 2]), c.bias(2))


@translates("CONV_3D")
def conv_3d(c: LiteCall) -> Operand:
    """A convolution; its weight is [D, H, W, in, out]."""
    return convolved(_windows(c), c.tensor(0, 5), c.weight(1, [4, 3, 0, 1, 2]), c.bias(2))


@translates("TRANSPOSE_CONV", "CONV_3D_TRANSPOSE")
def transpose_conv(c: LiteCall) -> Operand:
    """A transposed convolution to a given shape; its weight is [out, H, W, in], or [D, H, W, out, in]."""
    n = 2 if c.op == "TRANSPOSE_CONV" else 3
    weight = c.weight(1, [3, 0, 1, 2] if n == 2 else [4, 3, 0, 1, 2])
    sizes = c.sizes(0, "the shape of the result")
    if len(sizes) != n + 2:
        c.fail(f"the shape of its result is {sizes}", SAVE_AGAIN)
    return transposed(_windows(c), c.tensor(2, n + 2), weight, c.bias(3, x=2), sizes[1:-1])


@translates("CUSTOM Convolution2DTransposeBias")
def transpose_conv_of_mediapipe(c: LiteCall) -> Operand:
    """MediaPipe's transposed convolution, as large as its windows reach; its weight is [out, H, W, in]."""
    weight, w, x = c.weight(1, [3, 0, 1, 2]), _windows(c), c.tensor(0, 4)
    kernel, strides, same = kernel_of(w, weight), spatial(w, "strides", 2), w.text("padding") == "SAME"
    sizes = [
        s * (n - 1) + k - (max(k - s, 0) if same else 0) for n, k, s in zip(x.shape[1:3], kernel, strides, strict=True)
    ]
    return transposed(w, x, weight, c.bias(2), static_sizes(sized(*sizes)) or sizes)


@translates("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
def pool(c: LiteCall) -> Operand:
    """The mean, the largest element, or the root of the mean square, of each window."""
    w = _windows(c, ksize=[1, c.integer("filter_h"), c.integer("filter_w"), 1])
    x = c.tensor(0, 4)
    if c.op == "L2_POOL_2D":
        squares = pooled(w, "avg_pool2d", c.pointwise(lambda v: c.add("square", v), x), 2)
        return c.pointwise(lambda v: c.add("sqrt", v), squares)
    return pooled(w, "max_pool2d" if c.op == "MAX_POOL_2D" else "avg_pool2d", x, 2)


@translates("FULLY_CONNECTED")
def fully_connected(c: LiteCall) -> Results:
    """Rows times a weight [out, in], plus a bias."""
    if c.integer("weights_format"):
        c.fail("weights in a shuffled order are not supported", "convert the model again")
    x, weight, bias = c.tensor(0), c.weight(1, [1, 0]), c.bias(2)
    if not c.flag("keep_num_dims") and x.rank != 2:
        x = c.reshape(x, [total(x.shape) // weight.shape[0], weight.shape[0]])
    y = c.add("matmul", x, weight)
    return y if bias is None else c.add("add", y, bias)
