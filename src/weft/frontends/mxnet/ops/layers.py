"""Layers of neural networks: convolutions, pools, products, normalisations, activations."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import result_of, translates
from weft.graph.builder import Operand, static_sizes, total
from weft.graph.composites.normalization import inverse_deviation, mean_and_variance, per_channel
from weft.graph.composites.pooling import lp_pool, spatial_axes
from weft.graph.composites.windows import Window, filtered_columns
from weft.support.dtypes import i32, i64

_MOST_TIMES: Final = 1 << 10
"""How often a pixel is repeated at most where it is interpolated."""


def _window(c: Call) -> Window:
    kernel = c.ints("kernel")
    ones = [1] * len(kernel)
    pads = c.ints("pad", None if c.value("pad") else [0] * len(kernel))
    return Window(kernel, c.ints("stride", None if c.value("stride") else ones), _dilations(c, ones), pads * 2)


def _dilations(c: Call, ones: list[int]) -> list[int]:
    return c.ints("dilate", None if c.value("dilate") else ones)


def _channels_first(c: Call) -> None:
    if c.text("layout", "None") not in ("None", "NCHW", "NCW", "NCDHW"):
        c.fail(f"the layout {c.text('layout')} is not supported", "build the network with channels first")


def _bias(c: Call) -> Operand | None:
    return None if c.flag("no_bias") else c.input(2)


@translates("Convolution", "Convolution_v1")
def convolution(c: Call) -> Operand:
    """A convolution."""
    _channels_first(c)
    w = _window(c)
    attributes = {"strides": w.strides, "pads": w.pads, "dilations": w.dilations, "group": c.integer("num_group", 1)}
    return c.add("conv2d", c.input(0), c.input(1), _bias(c), **attributes)


@translates("_contrib_DeformableConvolution", "_contrib_ModulatedDeformableConvolution")
def deformable_convolution(c: Call) -> Operand:
    """A convolution whose windows' elements are moved by offsets (Dai et al., 2017), and scaled where it is modulated."""
    _channels_first(c)
    is_scaled = c.node.op == "_contrib_ModulatedDeformableConvolution"
    mask, weight = (c.input(2) if is_scaled else None), c.input(2 + is_scaled, rank=4)
    bias = None if c.flag("no_bias") else c.input(3 + is_scaled)
    moved, groups, padding = (
        c.integer("num_deformable_group", 1),
        c.integer("num_group", 1),
        "zeros" if is_scaled else "inside",
    )
    if moved < 1 or groups < 1:
        c.fail(f"it has {groups} groups, and {moved} of offsets", "save the network again")
    x = c.input(0, rank=4)
    columns = c.add("deform_columns", x, c.input(1), mask, groups=moved, padding=padding, **_window(c).attributes)
    return filtered_columns(c, columns, weight, bias, groups)


@translates("Deconvolution")
def deconvolution(c: Call) -> Operand:
    """A transposed convolution, by default without a bias."""
    _channels_first(c)
    w = _window(c)
    if c.value("target_shape"):
        c.fail("target_shape is not supported", "give pad and adj")
    bias = None if c.flag("no_bias", True) else c.input(2)
    extra = c.ints("adj", None if c.value("adj") else [0] * len(w.kernel))
    attributes = {"strides": w.strides, "pads": w.pads, "dilations": w.dilations, "output_padding": extra}
    return c.add("conv_transpose2d", c.input(0), c.input(1), bias, **attributes, group=c.integer("num_group", 1))


@translates("Pooling", "Pooling_v1")
def pooling(c: Call) -> Operand:
    """The largest element, or the mean or the sum, of windows, or of whole images."""
    _channels_first(c)
    x, kind = c.input(), c.text("pool_type", "max")
    if kind not in ("max", "avg", "sum", "lp"):
        c.fail(f"its pool_type {kind!r} is not supported", "use max, avg, sum or lp")
    if c.flag("global_pool") and kind != "lp":
        names = {"max": "reduce_max", "avg": "reduce_mean", "sum": "reduce_sum"}
        return c.add(names[kind], x, axes=spatial_axes(x), keepdims=True)
    how = _window(c)
    if c.node.op == "Pooling_v1" and kind == "max":  # whose borders are zeros, as others' are not
        x, how = _with_zeros(c, x, how.pads), replace(how, pads=[0] * len(how.pads))
    attributes = {**how.attributes, "ceil_mode": c.text("pooling_convention", "valid") == "full"}
    if kind == "lp":
        return lp_pool(c, x, c.integer("p_value", 2), how, ceil_mode=bool(attributes["ceil_mode"]))
    if kind == "avg":
        return c.add("avg_pool2d", x, **attributes, count_include_pad=c.value("count_include_pad") is not False)
    return c.add("max_pool2d" if kind == "max" else "sum_pool2d", x, **attributes)


def _with_zeros(c: Call, x: Operand, pads: list[int]) -> Operand:
    n = len(pads) // 2
    return c.add("pad", x, pads=(0, 0, *pads[:n], 0, 0, *pads[n:]), mode="constant", value=0.0)


@translates("FullyConnected")
def fully_connected(c: Call) -> Operand:
    """Rows times the transpose of a matrix, and a bias; other dimensions than the first are one, unless flatten is off."""
    made = c.add("matmul", as_rows(c, c.input()), c.transpose(c.input(1, rank=2), [1, 0]))
    bias = _bias(c)
    return made if bias is None else c.add("add", made, bias)


def as_rows(c: Call, x: Operand) -> Operand:
    """Returns *x* with the dimensions behind the first as one, unless `flatten` is off."""
    return c.reshape(x, [x.shape[0], total(x.shape[1:])]) if c.flag("flatten", True) and x.rank != 2 else x


@translates("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm")
def batch_norm(c: Call) -> Operand:
    """Channels normalised by their mean and variance in training; the scale is 1 unless it is not fixed."""
    x, scale, bias, mean, variance = (c.input(i) for i in range(5))
    if c.flag("fix_gamma", True):
        scale = c.add("full", shape=scale.shape, value=1, dtype=scale.dtype)
    axis = c.axis_of(c.integer("axis", 1), x.rank)
    order = [0, axis, *[d for d in range(1, x.rank) if d != axis]] if axis else [*range(x.rank)]
    made = c.add("batch_norm", c.transpose(x, order), scale, bias, mean, variance, epsilon=c.number("eps", 1e-3))
    return c.transpose(made, [order.index(d) for d in range(x.rank)])


@translates("_contrib_BatchNormWithReLU")
def norm_and_relu(c: Call) -> Operand:
    """Channels normalised, and those below zero zero."""
    return c.add("relu", result_of(batch_norm(c)))


@translates("InstanceNorm")
def instance_norm(c: Call) -> Operand:
    """Each channel of each image normalised by its own mean and variance."""
    x = c.input()
    mean, variance = mean_and_variance(c, x, spatial_axes(x))
    made = c.add("mul", c.add("sub", x, mean), inverse_deviation(c, variance, c.number("eps", 1e-3)))
    scale, bias = (per_channel(c, c.input(i), x.rank) for i in (1, 2))
    return c.add("add", c.add("mul", made, scale), bias)


@translates("LayerNorm")
def layer_norm(c: Call) -> Operand:
    """Normalised along one dimension, the last by default."""
    x = c.input()
    axis, last = c.axis_of(c.integer("axis", -1), x.rank), x.rank - 1
    order = [*range(axis), *range(axis + 1, x.rank), axis]
    made = c.add("layer_norm", c.transpose(x, order), c.input(1), c.input(2), axis=last, epsilon=c.number("eps", 1e-5))
    return c.transpose(made, [*range(axis), last, *range(axis, last)])


@translates("L2Normalization")
def l2_normalization(c: Call) -> Operand:
    """Divided by the root of the sum of squares over all but the first dimension, the channels, or the pixels."""
    x, mode = c.input(), c.text("mode", "instance")
    axes = {"instance": tuple(range(1, x.rank)), "channel": (1,), "spatial": spatial_axes(x)}[mode]
    squares = c.add("reduce_sum", c.add("square", x), axes=axes, keepdims=True)
    return c.add("mul", x, c.add("rsqrt", c.add("add", squares, c.scalar(c.number("eps", 1e-10), x.dtype))))


@translates("LRN")
def lrn(c: Call) -> Operand:
    """Divided by a power of the sum of squares of channels around each."""
    numbers = {"alpha": c.number("alpha", 1e-4), "beta": c.number("beta", 0.75), "bias": c.number("knorm", 2.0)}
    return c.add("lrn", c.input(), size=c.integer("nsize"), **numbers)


@translates("Activation")
def activation(c: Call) -> Operand:
    """A function of one number."""
    names = {"relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "softrelu": "softplus", "softsign": "softsign"}
    kind = c.text("act_type")
    if kind not in names:
        c.fail(f"its act_type {kind!r} is not supported", f"use one of {', '.join(names)}")
    return c.add(names[kind], c.input())


@translates("LeakyReLU")
def leaky_relu(c: Call) -> Operand:
    """Functions that are the number itself above zero, or nearly."""
    x, kind, slope = c.input(), c.text("act_type", "leaky"), c.number("slope", 0.25)
    if kind == "prelu":
        w = c.input(1)
        sizes = static_sizes(w.shape)
        return c.add("prelu", x, w if sizes == [1] else per_channel(c, w, x.rank))
    if kind == "selu":
        return c.add("selu", x, alpha=1.6732632423543772, gamma=1.0507009873554805)
    if kind == "gelu":
        return c.add("gelu", x, approximate=False)
    if kind not in ("leaky", "elu"):
        c.fail(f"its act_type {kind!r} is not supported", "use leaky, elu, prelu, selu or gelu")
    return c.add("leaky_relu" if kind == "leaky" else "elu", x, alpha=slope)


@translates("softmax", "log_softmax")
def softmax(c: Call) -> Operand:
    """Exponentials divided by their sum along an axis, or the logarithm of that; zero behind lengths that are given."""
    x = c.input()
    temperature = c.value("temperature")
    if temperature:
        x = c.add("div", x, c.scalar(float(temperature), x.dtype))
    axis = c.axis_of(c.integer("axis", -1), x.rank)
    if not c.flag("use_length"):
        return c.add(c.node.op, x, axis=axis)
    lengths = c.reshape(c.cast(c.input(1), i64), [*x.shape[:axis], 1, *x.shape[axis + 1 :]])
    steps = c.cast(c.add("range", start=0, size=x.shape[axis], step=1), i64)
    counts = c.add("less", c.reshape(steps, [x.shape[axis], *[1] * (x.rank - 1 - axis)]), lengths)
    made = c.add(c.node.op, c.add("where", counts, x, c.scalar(float("-inf"), x.dtype)), axis=axis)
    return c.add("where", counts, made, c.scalar(0, x.dtype))


@translates("SoftmaxActivation")
def softmax_activation(c: Call) -> Operand:
    """Exponentials divided by their sum over the channels, or over the last dimension."""
    return c.add("softmax", c.input(), axis=1 if c.text("mode") == "channel" else c.input().rank - 1)


@translates("SoftmaxOutput", "Softmax")
def softmax_output(c: Call) -> Operand:
    """Exponentials divided by their sum over the channels, over the last dimension, or over all but the first."""
    x = c.input()
    if c.flag("preserve_shape") and not c.flag("multi_output"):
        return c.add("softmax", x, axis=x.rank - 1)
    if c.flag("multi_output") or x.rank == 2:
        return c.add("softmax", x, axis=1)
    rows = c.reshape(x, [x.shape[0], total(x.shape[1:])])
    return c.reshape(c.add("softmax", rows, axis=1), x.shape)


@translates("LinearRegressionOutput", "MAERegressionOutput", "Dropout", "BlockGrad", "make_loss")
@translates("identity", "_copy", "_np_copy", "_npi_copy")
def unchanged(c: Call) -> Operand:
    """Returns the input: the operator's effect is for training."""
    return c.input()


@translates("Embedding")
def embedding(c: Call) -> Operand:
    """The rows of a matrix that indices name."""
    from_floats = c.cast(c.input(0), i32)
    return c.add("gather", c.input(1), from_floats, axis=0)


@translates("UpSampling")
def upsampling(c: Call) -> Operand:
    """Each pixel several times, or a transposed convolution of each channel whose weight interpolates."""
    x, times, kind = c.input(0), c.integer("scale"), c.text("sample_type")
    if kind == "bilinear" and len(c.inputs) == 2 and 1 <= times <= _MOST_TIMES:
        side = 2 * times - times % 2
        attributes = {"strides": [times] * 2, "pads": [times // 2] * 4, "dilations": [1, 1], "output_padding": [0, 0]}
        weight = c.input(1)
        if static_sizes(weight.shape[2:]) != [side, side]:
            c.fail(f"its weight should be {side} pixels wide: {weight!r}", "save the network again")
        return c.add("conv_transpose2d", x, weight, None, **attributes, group=c.integer("num_filter"))
    if kind != "nearest" or len(c.inputs) != 1:
        c.fail(
            f"its sample_type {kind!r} of {len(c.inputs)} inputs is not supported",
            "use nearest or bilinear of one image",
        )
    for d in spatial_axes(x):
        x = c.add("repeat", x, axis=d, times=times)
    return x
