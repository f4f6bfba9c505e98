"""Operators as the graph sees them: inference, attributes, the messages where inputs do not fit, symbolic sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from weft.graph import type_text
from weft.ir import INDEX, ExprLike, Var, as_expr
from weft.ops import OPERATORS, TensorType, operator
from weft.support.dtypes import DType, bf16, bool_, f16, f32, i32, i64
from weft.support.errors import TypeMismatch
from weft.te import Tensor, placeholder

N, T = Var("n", INDEX), Var("t", INDEX)
Shape = Sequence[ExprLike]


def tensor(shape: Shape, dtype: DType = f32) -> TensorType:
    return TensorType(tuple([as_expr(s, INDEX) for s in shape]), dtype)


def inferred(op: str, *inputs: TensorType | None, **attributes: Any) -> str:
    return " ".join(type_text(t) for t in OPERATORS[op].infer(inputs, attributes))


def message(op: str, *inputs: TensorType | None, **attributes: Any) -> str:
    with pytest.raises(TypeMismatch) as caught:
        OPERATORS[op].infer(inputs, attributes)
    return str(caught.value)


def test_symbolic_sizes() -> None:
    x = tensor((N, T, 12))
    assert inferred("add", x, tensor((12,))) == "f32[n, t, 12]"
    assert inferred("reshape", x, shape=(N * T, 12)) == "f32[(n * t), 12]"
    assert inferred("reshape", x, shape=(N, T, 3, 4)) == "f32[n, t, 3, 4]"
    assert inferred("concat", x, tensor((N, 2, 12)), axis=1) == "f32[n, (t + 2), 12]"
    assert inferred("slice", x, starts=(1,), ends=(2**40,), axes=(1,)) == "f32[n, (t - 1), 12]"
    assert inferred("slice", x, starts=(0,), ends=(T,), axes=(1,)) == "f32[n, t, 12]"
    assert inferred("slice", x, starts=(-1,), ends=(2**40,), axes=(1,)) == "f32[n, 1, 12]"
    assert inferred("slice", x, starts=(-1,), ends=(-(2**40),), axes=(1,), steps=(-1,)) == "f32[n, t, 12]"
    assert inferred("matmul", x, tensor((12, 5))) == "f32[n, t, 5]"
    assert inferred("reduce_mean", x, axes=(1,), keepdims=False) == "f32[n, 12]"
    assert inferred("split", x, axis=2, sizes=(4, 8)) == "f32[n, t, 4] f32[n, t, 8]"
    assert inferred("conv2d", tensor((N, 3, T, 8)), tensor((4, 3, 3, 3)), pads=(1, 1, 1, 1)) == "f32[n, 4, t, 8]"
    assert inferred("tile", x, repeats=(2, 1, 1)) == "f32[(n * 2), t, 12]"


def test_sums_of_16_bit_floats_keep_their_type() -> None:
    for dtype in (f16, bf16):
        a, b = tensor((2, 3), dtype), tensor((3, 4), dtype)
        assert inferred("matmul", a, b) == f"{dtype}[2, 4]"
        assert inferred("reduce_sum", a, axes=(1,)) == f"{dtype}[2, 1]"
        (made,) = OPERATORS["matmul"]([placeholder(t.shape, t.dtype) for t in (a, b)], {})
        assert made.op.inputs[0].dtype is f32


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "wanted"),
    [
        ("add", [tensor((2,)), tensor((2,), i64)], {}, "add takes two tensors of one type, not f32 and i64"),
        ("add", [tensor((2, 3)), tensor((4,))], {}, "the shapes (2, 3) and (4) do not broadcast together"),
        ("add", [tensor((N,)), tensor((T,))], {}, "the shapes (n) and (t) do not broadcast together"),
        ("where", [tensor((2,), bool_), tensor((2,)), tensor((2,), i32)], {},
         "where takes two tensors of one type, not f32 and i32"),
        ("clip", [tensor((2,)), tensor((), i32), None], {}, "clip takes bounds of the tensor's own type"),
        ("matmul", [tensor((2, 3)), tensor((4, 5))], {}, "matmul: the inner sizes of (2, 3) and (4, 5) differ"),
        ("matmul", [tensor(()), tensor((4, 5))], {}, "matmul takes no scalars"),
        ("gemm", [tensor((2, 3)), tensor((4, 5))], {"trans_b": True}, "gemm: the inner sizes of (2, 3) and (4, 5) differ"),
        ("reshape", [tensor((2, 3))], {"shape": (4,)}, "(2, 3) can't be reshaped to (4): the sizes differ"),
        ("transpose", [tensor((2, 3))], {"perm": (0, 0)}, "transpose: (0, 0) is not an order of 2 dimensions"),
        ("softmax", [tensor((2, 3))], {"axis": 2}, "axis 2 is out of range for a tensor of 2 dimensions"),
        ("conv2d", [tensor((1, 3, 5, 5)), tensor((4, 2, 3, 3))], {},
         "conv2d: the input has (3) channels, but the weight takes (2) a group (1)"),
        ("einsum", [tensor((2, 3)), tensor((4, 5))], {"equation": "ij,jk->ik"}, "einsum: j is (3) and (4)"),
        ("grid_sample", [tensor((1, 1, 2, 2)), tensor((1, 2, 2, 2))], {"mode": "odd"},
         "grid_sample: there is no mode odd with padding zeros"),
        ("grid_sample", [tensor((1, 1, 2, 0)), tensor((1, 2, 2, 2))], {"padding": "border"},
         "images of shape (1, 1, 2, 0) have no elements to sample"),
        ("relu", [tensor((2,))], {"alpha": 1.0}, "relu has no attribute alpha"),
        ("clip", [tensor((2,)), tensor((2,)), None], {}, "clip takes bounds that are scalars"),
        ("logical_not", [tensor((2,))], {}, "logical_not takes bools, not f32"),
        ("sqrt", [tensor((2,), i64)], {}, "sqrt does not take i64"),
        ("batch_norm", [tensor((1, 3, 4)), tensor((3,)), tensor((2,)), tensor((3,)), tensor((3,))], {},
         "batch_norm: the bias has the shape (2), not (3)"),
        ("layer_norm", [tensor((2, 4)), tensor((3,))], {},
         "layer_norm: the scale, of shape (3), does not broadcast to (2, 4)"),
        ("gemm", [tensor((2, 3)), tensor((3, 4)), tensor((3,))], {},
         "gemm: the tensor to add, of shape (3), does not broadcast to (2, 4)"),
        ("gemm", [tensor((2, 3)), tensor((3,))], {}, "gemm takes matrices, not (2, 3) and (3)"),
        ("conv2d", [tensor((1, 3, 5, 5)), tensor((4, 3, 3, 3)), tensor((3,))], {},
         "the bias of a convolution has the shape (3), not (4)"),
        ("conv2d", [tensor((1, 3, 5)), tensor((4, 3, 3))], {},
         "conv2d: a kernel of 1 dimensions, strides (1, 1), pads (0, 0, 0, 0) and dilations (1, 1) over 1 dimensions"),
        ("conv2d", [tensor((1, 3, 5, 5)), tensor((4, 3, 3, 3))], {"strides": (0, 1)},
         "conv2d: strides (0, 1) and dilations (1, 1) must be at least 1"),
        ("conv2d", [tensor((1, 3, 2, 5)), tensor((4, 3, 3, 3))], {},
         "the window is larger than the dimension of (2) that it moves along"),
        ("max_pool2d", [tensor((1, 3, 2, 5))], {"kernel": (3, 3), "strides": (1, 1), "pads": (0, 0, 0, 0)},
         "the window is larger than the dimension of (2) that it moves along"),
        ("conv_transpose2d", [tensor((1, 3, 1, 1)), tensor((3, 4, 2, 2))], {"pads": (1, 1, 1, 1)},
         "a transposed convolution to (0, 0): the pads take away all there is"),
        ("concat", [tensor((2, 3)), tensor((3, 3))], {"axis": 1}, "concat: a tensor has the shape (3), not (2)"),
        ("concat", [tensor((2,)), tensor((2,), i64)], {"axis": 0}, "concat takes tensors of one type, not f32 and i64"),
        ("split", [tensor((5,))], {"axis": 0, "sizes": (2, 2)}, "split: (2, 2) do not make up dimension 0 of (5)"),
        ("gather_elements", [tensor((2, 3)), tensor((3, 3), i64)], {"axis": 1},
         "gather_elements: indices (3, 3) reach beyond (2, 3) along another axis than 1"),
        ("gather_nd", [tensor((2, 3)), tensor((3, 1), i64)], {"batch_dims": 1},
         "gather_nd: the batch has the shape (3), not (2)"),
        ("scatter_elements", [tensor((4,)), tensor((2,), i64), tensor((3,))], {},
         "scatter_elements: the tensor of updates has the shape (3), not (2)"),
        ("scatter_nd", [tensor((4, 2)), tensor((3, 1), i64), tensor((3,))], {},
         "scatter_nd: the tensor of updates has the shape (3), not (3, 2)"),
        ("write_at", [tensor((2, 5)), tensor((3, 1)), tensor((2,), i64)], {"axis": 1},
         "write_at: the update has the shape (3, 1), not (2, 1)"),
        ("reverse_sequence", [tensor((5, 2)), tensor((3,), i64)], {},
         "reverse_sequence: the vector of lengths has the shape (3), not (2)"),
        ("resample", [tensor((5,)), tensor((2, 2), i64), tensor((2, 3))], {"axis": 0},
         "resample: the table of weights has the shape (2, 3), not (2, 2)"),
        ("one_hot", [tensor((2,), i64), tensor((3,))], {"depth": 4}, "one_hot: the pair of values has the shape (3), not (2)"),
        ("pad", [tensor((2, 3))], {"pads": (1, 1)}, "pad: 2 pads for a tensor of 2 dimensions"),
        ("tile", [tensor((2, 3))], {"repeats": (1,)}, "tile: 1 repeats for a tensor of 2 dimensions"),
        ("trilu", [tensor((3,))], {}, "trilu takes matrices, not (3)"),
    ],
)  # fmt: skip
def test_messages(op: str, inputs: list[TensorType | None], attributes: dict[str, Any], wanted: str) -> None:
    assert message(op, *inputs, **attributes) == wanted


def test_reduction_that_does_not_exist() -> None:
    x, i = tensor((4,)), tensor((2,), i64)
    with pytest.raises(TypeMismatch) as caught:
        OPERATORS["scatter_elements"].infer([x, i, tensor((2,))], {"reduction": "xor"})
    assert str(caught.value) == ("scatter_elements: there is no reduction xor\n  hint: use none, add, mul, max, min")


def test_an_operator_is_defined_once() -> None:
    def relu(x: Tensor) -> Tensor:
        return x

    with pytest.raises(ValueError, match="the operator relu is defined twice"):
        operator("relu")(relu)
