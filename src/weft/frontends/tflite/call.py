"""One operator being imported: its tensors, of which those of integers may stand for numbers, and its options.

A translation takes numbers and returns numbers: what is quantised is dequantised before and quantised behind it, and passes over
the graph compute such products and sums in integers, as they do for ONNX's models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from weft.frontends.tensorflow_operators.call import Call, Held, Library, Results
from weft.frontends.tensorflow_operators.registry import translation_of
from weft.frontends.tflite.lite_model import Encoding, LiteOperator, LiteTensor
from weft.frontends.tflite.variable_states import Variables
from weft.graph import Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator
from weft.graph.composites.quantized import quantization
from weft.support.dtypes import DType, f32, from_numpy, i32, i64


class LiteCall(Call):
    """A call of an operator; *given* describes its inputs, *made* its outputs, *variables* the model's."""

    def __init__(
        self,
        evaluator: PartialEvaluator,
        source: str,
        operator: LiteOperator,
        inputs: Sequence[Held],
        given: Sequence[LiteTensor | None],
        made: Sequence[LiteTensor],
        images: dict[Value, Operand],
        library: Library,
        variables: Variables,
    ) -> None:
        super().__init__(evaluator, source, operator.kind, inputs, operator.options, images, library)
        self.given, self.made, self.variables = given, made, variables

    def has(self, i: int) -> bool:
        """Tells whether input *i* is there."""
        return i < len(self.inputs) and self.inputs[i] is not None

    def tensor(self, i: int = 0, rank: int | None = None) -> Operand:
        """Returns input *i* as numbers: dequantised if it is quantised."""
        x = super().tensor(i, rank)
        described = self.given[i]
        if described is None or described.encoding is None or not x.dtype.is_int:
            return x
        return self._numbers(x, described.encoding, described.encoding.axis)

    def weight(self, i: int, perm: Sequence[int]) -> Operand:
        """Returns input *i* as numbers with its dimensions in another order, in which its integers are kept."""
        x = self.permuted(super().tensor(i, len(perm)), perm)
        described = self.given[i]
        if described is None or described.encoding is None or not x.dtype.is_int:
            return x
        return self._numbers(x, described.encoding, perm.index(described.encoding.axis % len(perm)))

    def _numbers(self, x: Operand, encoding: Encoding, axis: int) -> Operand:
        shape = [-1 if d == axis else 1 for d in range(x.rank)] if encoding.scale.size > 1 else []
        scale, zero = (CompileTimeConstant(v.reshape(shape)) for v in (encoding.scale, encoding.zero))
        offset = None if not encoding.zero.any() else self.cast(zero, x.dtype)
        return self.pointwise(lambda v: quantization.dequantize(self, v, scale, offset, f32), x)

    def encoded(self, x: Held, k: int) -> Held:
        """Returns result *k* as the integers that its tensor says, if it is quantised."""
        described = self.made[k]
        dtype, encoding = described.dtype, described.encoding
        if not isinstance(x, Value | CompileTimeConstant) or dtype is None or encoding is None:
            return x
        if not dtype.is_int or not x.dtype.is_float:
            return x
        if encoding.scale.size != 1:
            self.fail(f"its result {described.name} has {encoding.scale.size} scales", "quantise results by one scale")
        scale = self.scalar(float(encoding.scale.reshape(-1)[0]), f32)
        zero = self.cast(self.scalar(int(encoding.zero.reshape(-1)[0]), x.dtype), dtype)
        return self.pointwise(lambda v: quantization.quantize(self, v, scale, zero, dtype), x)

    def rounded(self, b: Builder, x: Operand, i: int) -> Operand:
        """Returns *x* rounded by *b* to numbers that input *i*, a state of integers, can hold; *x* itself for one of floats."""
        described = self.given[i] if i < len(self.given) else None
        if described is None or described.encoding is None or described.dtype is None or not described.dtype.is_int:
            return x
        scale, zero = (float(v.reshape(-1)[0]) for v in (described.encoding.scale, described.encoding.zero))
        step, offset = b.scalar(scale, f32), b.cast(b.scalar(zero, f32), described.dtype)
        held = quantization.quantize(b, x, step, offset, described.dtype)
        return quantization.dequantize(b, held, step, offset, f32)

    def numbers_of(self, option: str) -> CompileTimeConstant:
        """Returns an option that is a vector of floats."""
        return CompileTimeConstant(np.asarray(self.attributes[option], np.float32))

    def optional(self, i: int) -> Operand | None:
        """Returns input *i*; None where it is absent."""
        return self.tensor(i) if self.has(i) else None

    def bias(self, i: int, x: int = 0, weight: int = 1) -> Operand | None:
        """Returns input *i*, which is added to products of inputs *x* and *weight*; None where it is absent.

        Integers count in steps of the products' scale, whatever their tensor says: the kernels add them as they are.
        """
        if not self.has(i):
            return None
        given, by = (None if t is None else t.encoding for t in (self.given[x], self.given[weight]))
        held = super().tensor(i)
        if given is None or by is None or held.dtype not in (i32, i64):
            return self.tensor(i)
        scale = given.scale.reshape(-1)[:1] * by.scale
        return self._numbers(held, Encoding(scale, np.zeros(scale.size, np.int64), 0), 0)

    def as_float(self, x: Operand) -> Operand:
        """Returns *x* as float32; a weight, however large, is converted at once."""
        if isinstance(x, CompileTimeConstant) and not x.symbolic and x.dtype.is_float:
            return CompileTimeConstant(x.array.astype(np.float32), x.name)
        return self.cast(x, f32)

    def of_tensorflow(self, op: str, inputs: Sequence[Held] | None = None, **attributes: Any) -> Results:
        """Returns the results of TensorFlow's operator *op*, with this one's inputs and options unless others are given."""
        if inputs is None:
            inputs = [
                self.tensor(i) if isinstance(v, Value | CompileTimeConstant) else v for i, v in enumerate(self.inputs)
            ]
            inputs = [v for v in inputs if v is not None]
        settings = {**self.attributes, **attributes}
        c = Call(self.evaluator, self.source, op, inputs, settings, self.images, self._library)
        return translation_of(c)(c)

    def activated(self, y: Operand, option: str = "fused", b: Builder | None = None) -> Operand:
        """Returns *y* through the function that an *option* names, added by *b*, that of a loop's step, if one is given."""
        number = self.integer(option, 0)
        if not 0 <= number < len(ACTIVATIONS):
            self.fail(f"there is no activation function {number}", "convert the model again")
        function = ACTIVATIONS[number]
        if function is None:
            return y
        return self.pointwise(partial(function, self), y) if b is None else function(b, y)


def _clip(low: int, high: int) -> Callable[[Builder, Operand], Operand]:
    return lambda b, x: b.add("clip", x, b.scalar(low, x.dtype), b.scalar(high, x.dtype))


ACTIVATIONS: Final[tuple[Callable[[Builder, Operand], Operand] | None, ...]] = (
    None,
    lambda b, x: b.add("relu", x),
    _clip(-1, 1),
    _clip(0, 6),
    lambda b, x: b.add("tanh", x),
)
"""Functions behind an operator, by their numbers; the one after them, SIGN_BIT, is 1 for negative numbers and else 0."""


def constant_of(tensor: LiteTensor) -> CompileTimeConstant | None:
    """Returns the elements of a tensor that is constant."""
    if tensor.array is None:
        return None
    dtype: DType = from_numpy(tensor.array.dtype)
    return CompileTimeConstant(tensor.array, tensor.name, dtype)
