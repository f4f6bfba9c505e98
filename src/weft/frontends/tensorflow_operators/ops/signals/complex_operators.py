"""Operators on complex numbers: their parts, arithmetic, and moves of either part alike."""

from __future__ import annotations

from weft.frontends.tensorflow_operators.call import Call, ComplexTensor, Results
from weft.frontends.tensorflow_operators.complex_numbers import by_parts, tensor_of
from weft.frontends.tensorflow_operators.registry import TABLE, translates, translates_complex
from weft.graph.builder import Operand
from weft.graph.composites.numerics import complex_numbers


@translates("Complex")
def complex_(c: Call) -> Results:
    """The complex numbers with given parts."""
    real, imaginary = c.tensor(0), c.tensor(1)
    zero = c.scalar(0, real.dtype)
    if real.shape != imaginary.shape:
        wide = c.add("add", c.add("mul", real, zero), c.add("mul", imaginary, zero))
        real, imaginary = c.add("add", real, wide), c.add("add", imaginary, wide)
    return ComplexTensor(real, imaginary)


@translates("Real")
def real(c: Call) -> Operand:
    """The real parts."""
    return c.complex().real


@translates("Imag")
def imag(c: Call) -> Operand:
    """The imaginary parts."""
    return c.complex().imaginary


@translates("ComplexAbs")
def complex_abs(c: Call) -> Operand:
    """The lengths."""
    return complex_numbers.length(c, c.complex().parts)


@translates("Angle")
def angle(c: Call) -> Operand:
    """The angles."""
    x = c.complex()
    return tensor_of(c, "Atan2", x.imaginary, x.real)


@translates("Conj")
def conj(c: Call) -> Results:
    """The numbers with the other sign of their imaginary parts."""
    x = c.complex()
    return ComplexTensor(x.real, c.add("neg", x.imaginary))


translates_complex(
    "AddN",
    "AddV2",
    "Add",
    "BiasAdd",
    "BroadcastTo",
    "Concat",
    "ConcatV2",
    "Cumsum",
    "DepthToSpace",
    "ExpandDims",
    "GatherNd",
    "GatherV2",
    "Mean",
    "MirrorPad",
    "Neg",
    "Pack",
    "Pad",
    "PadV2",
    "Reshape",
    "ReverseV2",
    "Roll",
    "ScatterNd",
    "Select",
    "SelectV2",
    "Slice",
    "SpaceToDepth",
    "Split",
    "SplitV",
    "Squeeze",
    "StridedSlice",
    "Sub",
    "Sum",
    "Tile",
    "Transpose",
    "Unpack",
    "ZerosLike",
)(by_parts)


@translates_complex("ConjugateTranspose")
def conjugate_transpose(c: Call) -> Results:
    """The dimensions in another order, and the other sign of imaginary parts."""
    (x,) = by_parts(c)
    return ComplexTensor(x.real, c.add("neg", x.imaginary))


@translates_complex("Mul", "MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum")
def product(c: Call) -> Results:
    """The product of numbers or of matrices, of which those that are turned by `adj` have their imaginary parts negated."""
    if c.op == "Einsum" and len(c.inputs) == 1:
        return by_parts(c)
    (a, b), (d, e) = (_adjoint(c, k) for k in range(2))
    real = c.add("sub", tensor_of(c, c.op, a, d), tensor_of(c, c.op, b, e))
    return ComplexTensor(real, c.add("add", tensor_of(c, c.op, a, e), tensor_of(c, c.op, b, d)))


def _adjoint(c: Call, k: int) -> tuple[Operand, Operand]:
    x = c.complex(k)
    return x.real, c.add("neg", x.imaginary) if c.flag(("adj_x", "adj_y")[k]) else x.imaginary


@translates_complex("Square")
def square(c: Call) -> Results:
    """The numbers times themselves."""
    x = c.complex().parts
    return ComplexTensor(*complex_numbers.product(c, x, x))


@translates_complex("RealDiv", "Div", "Reciprocal", "Inv")
def quotient(c: Call) -> Results:
    """The quotient of numbers."""
    below = complex_numbers.reciprocal(c, c.complex(len(c.inputs) - 1).parts)
    if len(c.inputs) == 1:
        return ComplexTensor(*below)
    return ComplexTensor(*complex_numbers.product(c, c.complex(0).parts, below))


@translates_complex("Exp")
def exp(c: Call) -> Results:
    """The exponential."""
    return ComplexTensor(*complex_numbers.exponential(c, c.complex().parts))


@translates_complex("Equal", "NotEqual")
def equal(c: Call) -> Operand:
    """Whether both parts are equal."""
    same = complex_numbers.equal(c, c.complex(0).parts, c.complex(1).parts)
    return same if c.op == "Equal" else c.add("logical_not", same)


@translates_complex("Shape", "ShapeN", "Size", "Rank")
def sizes(c: Call) -> Results:
    """Shapes and sizes of complex numbers: those of their real parts."""
    c.inputs = [x.real if isinstance(x, ComplexTensor) else x for x in c.inputs]
    return TABLE[c.op](c)
