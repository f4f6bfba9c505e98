"""Random numbers, and dropout: functions of the attribute `seed`, else of a seed that each call of the model draws.

They are of the distributions that ONNX names, and other numbers than its implementations draw, no two of which agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.file.tensors import element_type
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.graph.builder import CompileTimeConstant
from weft.graph.composites.numerics import random_numbers
from weft.graph.composites.numerics.random_numbers import RandomStream
from weft.ir import ExprLike
from weft.support.dtypes import DType, bool_, f32, f64, i32, i64

_FIRST_TRAINED: Final = 12
"""The operator set from which on dropout has an input that says whether the model is trained."""


def _stream(c: Call) -> RandomStream:
    """Returns the node's random stream: of its attribute `seed` always the same, as often as the node is computed."""
    given = c.attributes.get("seed")
    if given is None or math.isnan(given):
        return c.random.stream()
    seed = int(np.float32(given).view(np.uint32)) if isinstance(given, float) else int(given)
    return RandomStream(c.kept(c.scalar(seed, i64)), 0)


def _dtype(c: Call, default: DType) -> DType:
    """Returns the type of the attribute `dtype`."""
    return element_type(c.integer("dtype", 0), c.source) if "dtype" in c.attributes else default


def _float_type(c: Call, default: DType) -> DType:
    found = _dtype(c, default)
    if not found.is_float or found.is_storage:
        c.fail(f"its random numbers are of {found}", "set its attribute dtype to a type of floats: 1 for float32")
    return found


def _wide(dtype: DType) -> DType:
    """Returns the type in which random numbers for *dtype* are computed."""
    return f64 if dtype is f64 else f32


def _scaled(c: Call, drawn: Operand, factor: float, added: float, dtype: DType) -> Operand:
    """Returns numbers multiplied and moved, rounded once."""
    wide = c.cast(drawn, _wide(dtype))
    spread = wide if factor == 1 else c.add("mul", wide, c.scalar(factor, wide.dtype))
    return c.cast(spread if added == 0 else c.add("add", spread, c.scalar(added, wide.dtype)), dtype)


def _shape(c: Call) -> list[int]:
    found = c.ints("shape")
    if found is None or any(n < 0 for n in found):
        c.fail(f"its attribute 'shape' is {found}", UNFIT)
    return found


def _normal(c: Call, shape: Sequence[ExprLike], dtype: DType) -> Operand:
    drawn = random_numbers.normal(c, _stream(c), shape, _wide(dtype))
    return _scaled(c, drawn, c.number("scale", 1.0), c.number("mean", 0.0), dtype)


def _uniform(c: Call, shape: Sequence[ExprLike], dtype: DType) -> Operand:
    low, high = c.number("low", 0.0), c.number("high", 1.0)
    return _scaled(c, random_numbers.uniform(c, _stream(c), shape, dtype), high - low, low, dtype)


@translates("RandomNormal")
def random_normal(c: Call) -> Results:
    """Numbers of a normal distribution, of a given shape."""
    return _normal(c, _shape(c), _float_type(c, f32))


@translates("RandomNormalLike")
def random_normal_like(c: Call) -> Results:
    """Numbers of a normal distribution, of the shape of a tensor, and of its type if no other is given."""
    return _normal(c, c.input(0).shape, _float_type(c, c.input(0).dtype))


@translates("RandomUniform")
def random_uniform(c: Call) -> Results:
    """Numbers from one to below another, of a given shape."""
    return _uniform(c, _shape(c), _float_type(c, f32))


@translates("RandomUniformLike")
def random_uniform_like(c: Call) -> Results:
    """Numbers from one to below another, of the shape of a tensor, and of its type if no other is given."""
    return _uniform(c, c.input(0).shape, _float_type(c, c.input(0).dtype))


@translates("Bernoulli")
def bernoulli(c: Call) -> Results:
    """For each probability, one as often as it says, else zero."""
    x = c.input(0)
    return c.cast(random_numbers.happens(c, _stream(c), c.cast(x, _wide(x.dtype))), _dtype(c, x.dtype))


@translates("Multinomial")
def multinomial(c: Call) -> Results:
    """Draws of classes from rows of logarithms of their weights; a class may be drawn again."""
    x, dtype = c.ranked(0, 2, "the logarithms of probabilities"), _dtype(c, i32)
    if dtype not in (i32, i64):
        c.fail(f"its classes are of {dtype}", "set its attribute dtype to 6 for int32, or 7 for int64")
    wide = c.cast(x, _wide(x.dtype))
    weights = c.add("exp", c.add("sub", wide, c.add("reduce_max", wide, axes=(1,), keepdims=True)))
    return c.cast(random_numbers.chosen(c, _stream(c), weights, c.integer("sample_size", 1), again=True), dtype)


@translates("Dropout")
def dropout(c: Call) -> Results:
    """The input itself, but in training zeros in random places, and in the others the elements as much larger."""
    x, training = c.input(0), c.optional(2) if c.opset >= _FIRST_TRAINED else None
    mask_type = x.dtype if c.opset < 10 else bool_
    ratio: Operand = c.input(1) if c.has(1) else c.scalar(0.5, f32)
    if training is None or _is(training, False) or _is(ratio, 0.0):
        return x, c.add("full", shape=x.shape, value=1, dtype=mask_type) if c.wants(1) else None
    wide = _wide(x.dtype)
    kept, scale = _kept(c, x, c.cast(c.reshape(ratio, ()), wide), c.reshape(training, ()))
    larger = c.add("mul", c.cast(x, wide), scale)
    return c.cast(c.add("where", kept, larger, c.scalar(0, wide)), x.dtype), kept


def _kept(c: Call, x: Operand, ratio: Operand, training: Operand) -> tuple[Operand, Operand]:
    """Returns which elements of *x* stay, all but a share *ratio* in *training*, and their scale."""
    one, wide = c.scalar(1, ratio.dtype), ratio.dtype
    drawn = random_numbers.uniform(c, _stream(c), x.shape, wide)
    kept, scale = c.add("less_equal", ratio, drawn), c.add("div", one, c.add("sub", one, ratio))
    if _is(training, True):
        return kept, scale
    return c.add("logical_or", kept, c.add("logical_not", training)), c.add("where", training, scale, one)


def _is(x: Operand, value: float) -> bool:
    """Tells whether *x* is known to be one number."""
    return isinstance(x, CompileTimeConstant) and not x.symbolic and x.array.size == 1 and x.array.item() == value
