"""Layers that MXNet's backend for oneDNN fused, quantised ones among them: the symbol inside has the fused layers.

The result of a layer that is not quantised is that of its symbol.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.ops.quantized.quantization import Quantized
from weft.frontends.mxnet.ops.quantized.quantized_layers import (
    convolved_bytes,
    multiplied_bytes,
    rounded_bias,
)
from weft.frontends.mxnet.ops.quantized.weights import (
    MOST_BIAS,
    array_of,
    bounded,
    bytes_of,
    in_fewer_steps,
    normalised,
    of_groups,
    steps_of,
)
from weft.frontends.mxnet.quantized_ranges import (
    BYTES,
    Range,
    calibrated,
    in_steps,
    product_reaches,
    range_at,
    range_of_products,
)
from weft.frontends.mxnet.registry import TABLE, result_of, translates
from weft.frontends.mxnet.symbol import VARIABLE, Node
from weft.graph import Array
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.composites.quantized.quantization import requantize
from weft.support.dtypes import DType, f32, i8, i32, u8

_SUM, _NORM = "elemwise_add", "BatchNorm"


@dataclass(frozen=True)
class _Fused:
    """The nodes that one was made of: the *layer* itself, a normalisation, a sum, and activations before and after that."""

    layer: Node
    norm: Node | None
    is_sum: bool
    before: list[Node]
    after: list[Node]


def _fused(c: Call, op: str) -> _Fused:
    nodes = [n for n in c.node.subgraphs[0].nodes if n.op != VARIABLE] if c.node.subgraphs else []
    ops = [n.op for n in nodes]
    if ops.count(op) != 1 or ops[0] != op:
        c.fail(f"its symbol has no {op} before others", "save the network again")
    at = ops.index(_SUM) if _SUM in ops else len(ops)
    norm = nodes[ops.index(_NORM)] if _NORM in ops else None
    before = [n for n in nodes[1:at] if n is not norm]
    return _Fused(nodes[0], norm, at < len(ops), before, nodes[at + 1 :])


def _activated(c: Call, x: Operand, nodes: list[Node]) -> Operand:
    """Returns *x* with functions applied that have no other input."""
    for node in nodes:
        x = result_of(TABLE[node.op](c.on(node, [x])))
    return x


def _never_below_zero(node: Node, *, slopes: bool) -> bool:
    """Tells whether a fused function's results are unsigned bytes; one with a slope below zero with *slopes*."""
    kind = node.attributes.get("act_type")
    if node.op == "LeakyReLU":
        return kind in (None, "leaky") and (slopes or float(node.attributes.get("slope", "0.25")) == 0)
    return node.op in ("clip", "square", "sqrt", "exp", "abs") or kind in ("relu", "sigmoid", "softrelu")


@translates("_sg_mkldnn_conv")
def fused_convolution(c: Call) -> Quantized | tuple[Operand, ...]:
    """A convolution, normalised, added to another tensor, and rectified."""
    if not c.flag("quantized"):
        return tuple(c.subgraph(0, c.all_inputs(), c))
    fused = _fused(c, "Convolution")
    layer = c.on(fused.layer, c.inputs)
    return _QuantizedConvolution(c, layer, fused).results()


class _QuantizedConvolution:
    """A convolution of bytes, whose weights and bias are floats; the scales of the weights are those of each filter if the
    range of the result was calibrated, and one otherwise."""

    def __init__(self, c: Call, layer: Call, fused: _Fused) -> None:
        self.c, self.layer, self.fused, self.found = c, layer, fused, calibrated(c)
        self.x = c.input(0)
        count = 2 if layer.flag("no_bias") else 3
        self.summed = c.input(count + 4 * (fused.norm is not None)) if fused.is_sum else None
        self.ranges_at = count + 4 * (fused.norm is not None) + fused.is_sum
        self.weight = array_of(c, c.input(1), "its weight")
        self.bias = array_of(c, c.input(2), "its bias") if count == 3 else None
        if fused.norm is not None:
            n = c.on(fused.norm, c.inputs)
            norm = [array_of(c, c.input(k), "its normalisation") for k in range(count, count + 4)]
            epsilon, is_scaled = n.number("eps", 1e-3), not n.flag("fix_gamma", True)
            parts = (norm[0], norm[1], norm[2], norm[3])
            self.weight, self.bias = normalised(self.weight, self.bias, parts, epsilon, is_scaled=is_scaled)

    def results(self) -> Quantized:
        """Returns the result, in bytes if its range was calibrated, and its range."""
        c, of_x = self.c, range_at(self.c, self.ranges_at)
        steps = of_x.steps(c, self.x.dtype)
        if self.found is None:
            by_filter = steps_of(self.weight)
        else:
            by_filter = bounded(steps_of(self.weight, tuple(range(1, self.weight.ndim))), self.bias, steps)
        sums, weight_steps = self._sums(steps, by_filter), CompileTimeConstant(by_filter)
        if self.found is None:
            size = c.scalar(np.abs(self.weight).max(initial=0), f32)
            made = range_of_products(c, Range(size, size), of_x, product_reaches(self.x.dtype))
            result_steps, scaled, dtype = c.add("mul", steps, weight_steps), sums, i32
        else:
            made, dtype = self.found, self._type()
            result_steps = made.steps(c, u8 if self._is_unsigned() else i8)
            columns = c.reshape(weight_steps, [by_filter.size, *[1] * (self.weight.ndim - 2)])
            by = c.add("div", c.add("div", result_steps, steps), columns)
            scaled = c.add("mul", sums, by)
        return made.results(c, self._rounded(self._finished(scaled, result_steps), dtype))

    def _rounded(self, x: Operand, dtype: DType) -> Operand:
        """Returns *x* as integers; where the other tensor is in bytes of the other sign, they saturate as its do."""
        if self.summed is None or dtype not in BYTES.values():
            return requantize(self.c, x, None, dtype)
        made = requantize(self.c, x, None, self.summed.dtype)
        return made if made.dtype is dtype else self.c.add("bit_cast", made, dtype=dtype)

    def _sums(self, steps: Operand, by_filter: Array) -> Operand:
        """Returns the convolution in 32 bits, as floats."""
        c, bias = self.c, None
        if self.bias is not None:
            bias_steps = c.add("mul", CompileTimeConstant(by_filter), steps)
            bias = in_steps(c, CompileTimeConstant(self.bias), bias_steps, i32)
        w = bytes_of(self.weight, of_groups(by_filter, self.layer.integer("num_group", 1)))
        return c.cast(convolved_bytes(self.layer, self.x, w, bias), f32)

    def _finished(self, scaled: Operand, result_steps: Operand) -> Operand:
        """Returns numbers in steps of the result with the other tensor added, and functions applied; a clip is the saturation."""
        c, cut = self.c, [n for n in self.fused.before if n.op == "clip"]
        if self.summed is None:
            return _activated(c, scaled, [n for n in self.fused.before if n not in cut])
        if cut or any(n.op == "clip" for n in self.fused.after):
            c.fail("a clip beside a sum is not supported", "quantise the network without this layer")
        scaled = _activated(c, scaled, self.fused.before)
        ratio = c.add("div", result_steps, range_at(c, self.ranges_at + 2).steps(c, self.summed.dtype))
        return _activated(c, c.add("add", scaled, c.add("mul", c.cast(self.summed, f32), ratio)), self.fused.after)

    def _is_unsigned(self) -> bool:
        nodes = self.fused.after if self.fused.is_sum else self.fused.before
        return bool(nodes) and _never_below_zero(nodes[-1], slopes=False)

    def _type(self) -> DType:
        return u8 if self._is_unsigned() else i8


@translates("_sg_mkldnn_fully_connected")
def fused_product(c: Call) -> Quantized | Operand | tuple[Operand, ...]:
    """Rows times the transpose of a matrix, a bias, and a function of the sums."""
    if not c.flag("quantized"):
        return tuple(c.subgraph(0, c.all_inputs(), c))
    fused = _fused(c, "FullyConnected")
    layer = c.on(fused.layer, c.inputs)
    n = 2 if layer.flag("no_bias") else 3
    x, of_x = c.input(0), range_at(c, n)
    steps = of_x.steps(c, x.dtype)
    w, weight_steps, bias = (_each_row if c.flag("channel_wise_quantize") else _all_rows)(c, steps, n)
    sums = c.cast(multiplied_bytes(layer, x, w, bias), f32)
    if calibrated(c) is not None or c.flag("enable_float_output"):
        return _scaled(c, sums, (steps, weight_steps), fused.before)
    made = range_of_products(c, of_x, range_at(c, n + 2), product_reaches(x.dtype))
    return made.results(c, requantize(c, _activated(c, sums, fused.before), None, i32))


def _scaled(c: Call, sums: Operand, steps: tuple[Operand, Operand], functions: list[Node]) -> Quantized | Operand:
    """Returns sums of products of numbers in so many *steps* each as floats, or as bytes in a range that was calibrated.

    Functions are those of the numbers that the sums stand for.
    """
    found = calibrated(c)
    dtype = u8 if functions and _never_below_zero(functions[-1], slopes=True) else i8
    result_steps = c.scalar(1, f32) if found is None else found.steps(c, dtype)
    first = c.scalar(1, f32) if functions else result_steps
    by = c.add("div", c.add("div", first, steps[0]), steps[1])
    y = _activated(c, c.add("mul", sums, by), functions)
    if found is None:
        return y
    return found.results(c, requantize(c, c.add("mul", y, result_steps) if functions else y, None, dtype))


def _each_row(c: Call, steps: Operand, n: int) -> tuple[Operand, Operand, Operand | None]:
    """Returns a matrix of floats as bytes, each row in steps of its own, these, and a bias in 32 bits."""
    w = array_of(c, c.input(1, rank=2), "its weight")
    bias = array_of(c, c.input(2), "its bias") if n == 3 else None
    found = bounded(steps_of(w, (1,)), bias, steps)
    by_row = CompileTimeConstant(found)
    return bytes_of(w, found), by_row, None if n == 2 else in_steps(c, c.input(2), c.add("mul", by_row, steps), i32)


def _all_rows(c: Call, steps: Operand, n: int) -> tuple[Operand, Operand, Operand | None]:
    """Returns a matrix of bytes, its steps, and a bias in 32 bits, in steps that keep it below a bound."""
    w, found = c.input(1, rank=2), range_at(c, n + 2).steps(c, i8)
    if n == 2:
        return w, found, None
    size = range_at(c, n + 4).size(c)
    bias_steps = range_at(c, n + 4).steps(c, i8)
    most = c.add("div", c.add("div", c.scalar(MOST_BIAS, f32), size), bias_steps)
    by = c.add("div", c.add("mul", steps, found), bias_steps)
    if isinstance(by, CompileTimeConstant) and isinstance(most, CompileTimeConstant) and by.array > most.array:
        less = c.add("div", c.add("div", c.add("mul", most, bias_steps), steps), found)
        w = in_fewer_steps(array_of(c, w, "its weight"), array_of(c, less, "its scale"))
        found, by = c.add("mul", found, less), most
    return w, found, rounded_bias(c, c.input(2), by)
