"""Constants and tensors made from nothing but sizes."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.file.tensors import dense_array, element_type
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT, Array
from weft.graph.builder import CompileTimeConstant, static_sizes
from weft.graph.composites.run_time import late_shapes
from weft.ir import as_expr, maximum
from weft.ops import LARGEST_FOLD, is_certain, simplify_size
from weft.support.dtypes import DType, f64, from_numpy, i64

_PLAIN: Final = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}


@translates("Constant")
def constant(c: Call) -> Results:
    """A constant: a tensor, a sparse tensor, numbers."""
    for name, value in c.attributes.items():
        if name == "value":
            return CompileTimeConstant(value, c.node.output[0])
        if name == "sparse_value":
            return CompileTimeConstant(dense_array(c.node.attribute[0].sparse_tensor), c.node.output[0])
        if name in _PLAIN:
            return CompileTimeConstant(np.asarray(value, _PLAIN[name]), c.node.output[0])
    return c.fail(f"a constant of kind {', '.join(c.attributes) or 'nothing'} is not supported")


@translates("ConstantOfShape")
def constant_of_shape(c: Call) -> Results:
    """A tensor of one value."""
    value = c.attributes.get("value", np.zeros(1, np.float32))
    shape = tuple(c.late_sizes(c.input(0), "size", "a size of the shape"))
    return c.add("full", shape=shape, value=value.item(), dtype=from_numpy(value.dtype))


@translates("Range")
def range_(c: Call) -> Results:
    """The numbers from a start to before a limit by a step."""
    first = c.input(0)
    if not all(c.is_known(i) for i in range(3)):
        return late_shapes.range_late(c, *[c.input(i) for i in range(3)])
    start, limit, step = (c.known(i, what).reshape(()) for i, what in enumerate(("the start", "the limit", "the step")))
    if not any(a.dtype == object for a in (start, limit, step)):
        count = _count(start, limit, step, floats=first.dtype.is_float)
        if count > LARGEST_FOLD:
            return _computed_range(c, start, count, step, first.dtype)
        return CompileTimeConstant((start + np.arange(count) * step).astype(start.dtype), c.node.output[0])
    low, high, by = (_whole(c, a.item()) for a in (start, limit, step))
    if not isinstance(by, int):
        c.fail("the step of a range depends on the symbolic sizes of the inputs")
    span = high - low if by > 0 else low - high
    size = simplify_size(as_expr(span + (abs(by) - 1)) // abs(by))
    if not is_certain(size >= 0):
        size = simplify_size(maximum(size, 0))
    return c.cast(c.add("range", start=low, size=size, step=by), first.dtype)


def _computed_range(c: Call, start: Array, count: int, step: Array, dtype: DType) -> Operand:
    """Returns a long range as the model computes it, floats by double arithmetic."""
    if dtype.is_int:
        return c.cast(c.add("range", start=int(start), size=count, step=int(step)), dtype)
    places = c.cast(c.add("range", start=0, size=count, step=1), f64)
    steps = c.add("mul", places, c.scalar(float(step), f64))
    return c.cast(c.add("add", steps, c.scalar(float(start), f64)), dtype)


def _whole(c: Call, value: Any) -> Any:
    """Returns an end of a range of symbolic size: an index expression, or an integer that may be written as a float."""
    if isinstance(value, float) and not value.is_integer():
        c.fail(f"a range with {value} and a symbolic size is not supported")
    return int(value) if isinstance(value, float) else value


def _count(start: Any, limit: Any, step: Any, *, floats: bool) -> int:
    """Returns how many numbers a range has, of floats by double arithmetic."""
    if floats:
        return max(math.ceil((float(limit) - float(start)) / float(step)), 0)
    return max(-((int(start) - int(limit)) // int(step)), 0)


@translates("EyeLike", limits="symbolic sizes")
def eye_like(c: Call) -> Results:
    """Ones on a diagonal, of the shape of a matrix."""
    x = c.input(0)
    sizes = static_sizes(x.shape)
    if x.rank != 2:
        c.fail(f"its input is {x!r}, not a matrix", UNFIT)
    if sizes is None:
        c.fail("an identity matrix of symbolic size is not supported", 'give it a number: shapes={"x": (4, 4)}')
    dtype = element_type(c.integer("dtype", 0), c.source) if "dtype" in c.attributes else x.dtype
    rows, columns = (c.add("range", start=0, size=n, step=1) for n in sizes)
    shifted = c.add("add", c.reshape(rows, (sizes[0], 1)), c.scalar(c.integer("k", 0), i64))
    return c.cast(c.add("equal", shifted, columns), dtype)


@translates("OneHot")
def one_hot(c: Call) -> Results:
    """A new dimension with one value at the index given, another elsewhere."""
    indices: Operand = c.cast(c.input(0), i64)
    depth = c.late_number(c.input(1), "depth", "the depth")
    return c.add("one_hot", indices, c.input(2), depth=depth, axis=c.axis(-1, indices.rank + 1))
