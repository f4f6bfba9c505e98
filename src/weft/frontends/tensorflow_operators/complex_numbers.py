"""Complex numbers of TensorFlow's models: pairs of real tensors, and [..., 2] outside of a model."""

from __future__ import annotations

from typing import Final

from weft.frontends.tensorflow_operators.call import Call, ComplexTensor
from weft.frontends.tensorflow_operators.registry import TABLE
from weft.graph import Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand
from weft.graph.composites.sequences import stack
from weft.support.dtypes import DType, f32, f64

PARTS: Final[dict[object, DType]] = {"complex64": f32, "complex128": f64}
"""The types of the parts, by TensorFlow's names of types."""


def joined(b: Builder, x: ComplexTensor) -> Operand:
    """Returns complex numbers as a real tensor [..., 2]."""
    return stack(b, x.parts, x.real.rank)


def tensor_of(c: Call, op: str, *inputs: Operand) -> Operand:
    """Returns the tensor that TensorFlow's operator *op* makes of real *inputs*, with the attributes of *c*."""
    return _one(c, _translated(c, op, inputs))


def by_parts(c: Call) -> tuple[ComplexTensor, ...]:
    """Returns the results of an operator on the real parts, and on the imaginary ones."""
    real, imaginary = (_translated(c, c.op, [_part(x, k) for x in c.inputs]) for k in range(2))
    both = [made if isinstance(made, tuple) else (made,) for made in (real, imaginary)]
    return tuple([ComplexTensor(_one(c, a), _one(c, b)) for a, b in zip(*both, strict=True)])


def _translated(c: Call, op: str, inputs: object) -> object:
    attributes = {k: PARTS.get(v, v) if isinstance(v, str) else v for k, v in c.attributes.items()}
    return TABLE[op](Call(c.evaluator, c.source, op, list(inputs), attributes, c.images))  # type: ignore[call-overload]


def _part(x: object, k: int) -> object:
    return x.parts[k] if isinstance(x, ComplexTensor) else x


def _one(c: Call, x: object) -> Operand:
    if not isinstance(x, Value | CompileTimeConstant):
        c.fail(f"{x!r} is no tensor", "save the model again")
    return x
