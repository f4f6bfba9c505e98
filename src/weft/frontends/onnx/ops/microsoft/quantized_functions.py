"""Operators of quantised tensors that a model quantised by ONNX Runtime has between its products (QOperator format)."""

from __future__ import annotations

from collections.abc import Callable

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.contrib import WINDOW, contrib
from weft.frontends.onnx.ops.convolution import window_of
from weft.graph import UNFIT
from weft.graph.builder import total
from weft.graph.composites.channel_order import channels_first, channels_last
from weft.graph.composites.quantized import quantized_arithmetic as composites
from weft.graph.composites.quantized.quantization import dequantize, is_one_for_all
from weft.graph.composites.quantized.quantized_arithmetic import Encoding, Quantized
from weft.graph.composites.sequences import concat
from weft.support.dtypes import f32


def one_number(c: Call, i: int) -> Operand | None:
    """Returns input *i*, a scale or zero point for a whole tensor, as a scalar; None where absent; `ModelError` for several."""
    v = c.optional(i)
    if v is None:
        return None
    if not is_one_for_all(v):
        c.fail(f"its input {i} should be one number for the whole tensor: {v!r}", UNFIT)
    return c.reshape(v, [])


def _scale(c: Call, i: int) -> Operand:
    """Returns input *i*, the scale of a whole tensor."""
    c.input(i)
    found = one_number(c, i)
    assert found is not None  # input() said so
    return found


def quantized_at(c: Call, i: int) -> Quantized:
    """Returns the tensor that inputs *i* to *i* + 2 are: integers, scale, zero point."""
    return Quantized(c.input(i), _scale(c, i + 1), one_number(c, i + 2))


def encoding_at(c: Call, i: int, like: Operand) -> Encoding:
    """Returns how the result is quantised: inputs *i* and *i* + 1, scale and zero point; of the type of *like*."""
    return Encoding(_scale(c, i), one_number(c, i + 1), like.dtype)


@contrib("QLinearAdd", inputs=(7, 8))
def qlinear_add(c: Call) -> Results:
    """The sum of quantised tensors, quantised."""
    x, y = quantized_at(c, 0), quantized_at(c, 3)
    return composites.add_quantized(c, x, y, encoding_at(c, 6, x.q))


@contrib("QLinearMul", inputs=(7, 8))
def qlinear_mul(c: Call) -> Results:
    """The product of quantised tensors, element by element, quantised."""
    x, y = quantized_at(c, 0), quantized_at(c, 3)
    return composites.multiply_quantized(c, x, y, encoding_at(c, 6, x.q))


@contrib("QLinearConcat", inputs=(5, None), attributes={"axis": int}, needed=["axis"])
def qlinear_concat(c: Call) -> Results:
    """Quantised tensors one after another, each brought to the result's scale and zero point."""
    if (len(c.inputs) - 2) % 3:
        c.fail(f"it has {len(c.inputs)} inputs; after two, each tensor has three: integers, scale, zero point", UNFIT)
    parts = [quantized_at(c, i) for i in range(2, len(c.inputs), 3)]
    to = encoding_at(c, 0, parts[0].q)
    moved = [composites.encode_again(c, x, to) for x in parts]
    return concat(c, moved, c.axis(0, moved[0].rank))


@contrib("QLinearSigmoid", inputs=(4, 5))
def qlinear_sigmoid(c: Call) -> Results:
    """The logistic function of a quantised tensor, quantised."""
    return _mapped(c, lambda v: c.add("sigmoid", v))


@contrib("QLinearLeakyRelu", inputs=(4, 5), attributes={"alpha": float})
def qlinear_leaky_relu(c: Call) -> Results:
    """The leaky ReLU of a quantised tensor, quantised."""
    return _mapped(c, lambda v: c.add("leaky_relu", v, alpha=c.number("alpha", 0.01)))


def _mapped(c: Call, function: Callable[[Operand], Operand]) -> Operand:
    x = quantized_at(c, 0)
    return composites.map_quantized(c, x, function, encoding_at(c, 3, x.q))


@contrib("QLinearSoftmax", inputs=(5, 5), attributes={"axis": int, "opset": int}, needed=["opset"])
def qlinear_softmax(c: Call) -> Results:
    """The softmax of a quantised tensor, quantised; before operator set 13 (its attribute), over all dimensions from an axis."""
    x = quantized_at(c, 0)
    to, rank = encoding_at(c, 3, x.q), x.q.rank
    if c.integer("opset", 13) >= 13:
        return composites.softmax_quantized(c, x, c.axis(-1, rank), to)
    axis = c.axis(1, rank)
    flat = c.reshape(x.q, [*x.q.shape[:axis], total(x.q.shape[axis:])])
    return c.reshape(composites.softmax_quantized(c, x._replace(q=flat), axis, to), x.q.shape)


@contrib(
    "QLinearAveragePool",
    inputs=(4, 5),
    attributes={**WINDOW, **dict.fromkeys(("ceil_mode", "channels_last", "count_include_pad"), int)},
    needed=["kernel_shape"],
)
def qlinear_average_pool(c: Call) -> Results:
    """The mean of each window of a quantised tensor, quantised."""

    def pooled(x: Quantized, to: Encoding) -> Operand:
        w = window_of(c, c.ints("kernel_shape") or [], x.q.shape[2:])
        means = c.add(
            "avg_pool2d",
            dequantize(c, x.q, x.scale, x.zero, f32),
            **w.attributes,
            ceil_mode=c.flag("ceil_mode", False),
            count_include_pad=c.flag("count_include_pad", False),
        )
        return composites.encode_rounding_last(c, means, to)

    return _of_images(c, pooled)


@contrib("QLinearGlobalAveragePool", inputs=(5, 5), attributes={"channels_last": int})
def qlinear_global_average_pool(c: Call) -> Results:
    """The mean over all places of a quantised tensor, quantised."""
    return _of_images(c, lambda x, to: composites.global_average_quantized(c, x, to))


def _of_images(c: Call, pool: Callable[[Quantized, Encoding], Operand]) -> Operand:
    """Returns a *pool* of images whose channels come first, or (attribute `channels_last`) last."""
    x = quantized_at(c, 0)
    to = encoding_at(c, 3, x.q)
    if not c.flag("channels_last", False):
        return pool(x, to)
    return channels_last(c, pool(x._replace(q=channels_first(c, x.q)), to))


@contrib("QLinearWhere", inputs=(9, 9))
def qlinear_where(c: Call) -> Results:
    """Chooses between two quantised tensors by a condition, each brought to the result's scale and zero point."""
    x, y = quantized_at(c, 1), quantized_at(c, 4)
    to = encoding_at(c, 7, x.q)
    return c.add("where", c.input(0), *[composites.map_quantized(c, v, lambda e: e, to) for v in (x, y)])
