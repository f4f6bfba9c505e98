"""Tensors that are made of no others: ranges, and tensors of one value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import CompileTimeConstant, Operand, Results
from weft.ir import Expr
from weft.ops import simplify_size


@translates("arange", "arange.start", "arange.start_step")
def arange(c: Call) -> Results:
    """Numbers from a start to before an end by a step; those of symbolic sizes are whole."""
    start, end, step = c.value("start", 0), c.value("end"), c.value("step", 1)
    if not any(isinstance(v, Expr) for v in (start, end, step)):
        exact = np.float64 if c.dtype.is_float else np.int64
        count = max(0, math.ceil((end - start) / step))
        return CompileTimeConstant((exact(start) + np.arange(count) * exact(step)).astype(c.dtype.numpy))
    if not all(isinstance(v, int | Expr) for v in (start, end, step)) or not isinstance(step, int) or step < 1:
        c.fail(f"a range from {start} to {end} by {step} is not supported", "use whole numbers and a positive step")
    size: Any = (end - start + (step - 1)) // step
    size = simplify_size(size) if isinstance(size, Expr) else max(size, 0)
    return c.cast(c.add("range", start=start, size=size, step=step), c.dtype)


@translates("full")
def full(c: Call) -> Results:
    """A tensor of one value."""
    return _of_one_value(c, c.sizes("size"))


@translates("new_full")
def new_full(c: Call) -> Results:
    """A tensor of one value, of another's type unless one is given."""
    return _of_one_value(c, c.sizes("size"))


@translates("prims.iota.default")
def iota(c: Call) -> Results:
    """A number of integers from a start by a step."""
    length = c.value("length")
    return c.cast(c.add("range", start=c.value("start"), size=length, step=c.value("step")), c.dtype)


@translates("scalar_tensor")
def scalar_tensor(c: Call) -> Results:
    """A number."""
    return c.operand("s", c.dtype)


@translates("full_like")
def full_like(c: Call) -> Results:
    """A tensor of one value, of another's shape."""
    return _of_one_value(c, c.tensor().shape)


@translates("fill.Scalar", "fill.Tensor")
def fill(c: Call) -> Results:
    """A tensor of one value, of the shape and the type of the first."""
    return c.add("expand", c.operand("value", c.dtype), shape=c.tensor().shape)


def _of_one_value(c: Call, shape: Sequence[Any]) -> Operand:
    if c.optional("fill_value") is not None:  # a number that the model computes, of its sizes
        return c.add("expand", c.operand("fill_value", c.dtype), shape=tuple(shape))
    return c.add("full", shape=tuple(shape), value=c.value("fill_value"), dtype=c.dtype)


def _filled(value: int) -> Translation:
    """A tensor of zeros or of ones, of a shape given or of another's."""

    def translate(c: Call) -> Results:
        name = next((n for n in ("size", "shape") if n in c.arguments), None)
        shape = c.tensor().shape if name is None else c.sizes(name)
        return c.add("full", shape=tuple(shape), value=value, dtype=c.dtype)

    return translate


def _triangle(upper: bool) -> Translation:
    """A triangle of matrices, zero elsewhere."""
    return lambda c: c.add("trilu", c.tensor(), k=c.integer("diagonal", 0), upper=upper)


translates("zeros", "zeros_like", "empty.memory_format", "empty_permuted", "empty_like", "prims.empty_strided.default")(
    _filled(0)
)
translates("new_zeros", "new_empty", "zero")(_filled(0))
translates("new_ones")(_filled(1))
translates("ones", "ones_like")(_filled(1))
translates("tril")(_triangle(upper=False))
translates("triu")(_triangle(upper=True))
