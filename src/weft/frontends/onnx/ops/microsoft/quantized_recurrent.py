"""Recurrent layers of quantised weights in ONNX Runtime's own operators."""

from __future__ import annotations

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.contrib import contrib
from weft.frontends.onnx.ops.quantization import NO_SMALL_TYPES
from weft.frontends.onnx.ops.recurrent import Factors, lstm_layer
from weft.graph.builder import Builder
from weft.graph.composites.quantized.quantization import integer_matmul
from weft.graph.composites.quantized.quantized_arithmetic import dynamically_quantized
from weft.graph.composites.recurrent import Function
from weft.graph.composites.sequences import element
from weft.support.dtypes import f32, u8

_INPUTS, _RECURRENCE = 1, 2
_STEPS = (8, 9, 10, 11)
"""The scales and zero points of the weights of inputs, and of states."""


@contrib(
    "DynamicQuantizeLSTM",
    inputs=(12, 12),
    attributes={
        "activation_alpha": list,
        "activation_beta": list,
        "activations": list,
        "clip": float,
        "direction": str,
        "hidden_size": int,
        "input_forget": int,
    },
    limits=NO_SMALL_TYPES,
)
def dynamic_quantize_lstm(c: Call) -> Results:
    """Long short-term memory with weights [directions, features, 4 * hidden] of bytes.

    The inputs of all steps, and the output of each for the whole batch, are quantised by the range that they have. (ONNX Runtime
    does so with one thread; where several share a batch, each quantises its own rows.)
    """
    for i, what in ((_INPUTS, "the weights of its inputs"), (_RECURRENCE, "the weights of its states")):
        c.ranked(i, 3, what)
    return lstm_layer(c, _factors)


def _factors(c: Call, n: int) -> Factors:
    inputs, recurrence, *steps = (element(c, c.input(i), 0, n) for i in (_INPUTS, _RECURRENCE, *_STEPS))
    return Factors(inputs, recurrence, (_product(inputs, *steps[:2]), _product(recurrence, *steps[2:])))


def _product(matrix: Operand, scale: Operand, zero: Operand) -> Function:
    """Returns the product of rows of floats and *matrix*, whose scale and zero point are one number, or one a column."""

    def product(b: Builder, x: Operand) -> Operand:
        rows = dynamically_quantized(b, x, u8)
        sums = integer_matmul(b, rows.q, matrix, rows.zero, zero)
        return b.add("mul", b.cast(sums, f32), b.add("mul", rows.scale, scale))

    return product
