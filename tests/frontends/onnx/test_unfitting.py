"""What is said of nodes whose inputs and attributes do not fit together: the minimal model for each way of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from tests.frontends.onnx.nodes import float_inputs, floats, int64s, model_of, node

from weft.frontends.onnx.importer import from_onnx
from weft.graph import UNFIT
from weft.support.errors import ModelError


def body(inputs: str, *nodes: NodeProto) -> object:
    """Makes a nested graph of float32 vectors that gives "r", and first the condition "go" if there is one."""
    names = [*(["go"] if any("go" in n.output for n in nodes) else []), "r"]
    infos = [helper.make_empty_tensor_value_info(n) for n in inputs.split()]
    return helper.make_graph(list(nodes), "g", infos, [helper.make_empty_tensor_value_info(n) for n in names])


def scan(count: int, inputs: str = "s e", **attributes: Any) -> ModelProto:
    """Makes a model that adds up the rows of `x`; what is scanned are its last *count* inputs."""
    made = body(inputs, node("Add", " ".join(inputs.split()[:2]), "r"))
    return model_of(
        [node("Scan", "b x", body=made, num_scan_inputs=count, **attributes)], float_inputs(b=(3,), x=(2, 3))
    )


NEGATED = node("Neg", "x", "r")
X = float_inputs(x=(2, 4, 3, 3))
CASES: dict[str, tuple[ModelProto, str]] = {
    "regions without a vector of images": (
        model_of([node("RoiAlign", "x r i")], float_inputs(x=(1, 1, 9, 9), r=(3, 4)), weights={"i": np.array(0)}),
        "RoiAlign /y: the numbers of images should have 1 dimensions: i: i64[] = (0,)",
    ),
    "two numbers of iterations": (
        model_of(
            [node("Loop", "m - x", body=body("i c s", node("Identity", "c", "go"), NEGATED))], float_inputs(x=(3,)),
            weights={"m": int64s(1, 2)},
        ),
        "Loop /y: the number of iterations should be one number, not 2",
    ),
    "more sizes than a tensor has": (
        model_of([node("Reshape", "x s")], {**float_inputs(x=(4,)), "s": (TensorProto.INT64, (1 << 40,))}),
        f"Reshape /y: a tensor would have {1 << 40} dimensions; 64 is the most",
    ),
    "concat": (
        model_of([node("Concat", "x y0", axis=0)], float_inputs(x=(2, 2), y0=(2,))),
        "Concat /y: concat takes tensors of as many dimensions each, not 2 and 1",
    ),
    "strides of a transposed convolution": (
        model_of([node("ConvTranspose", "x w", strides=[2])], X, weights={"w": floats(4, 2, 3, 3)}),
        "ConvTranspose /y: its attribute 'strides' is [2], and 2 are needed",
    ),
    "rank of a transposed convolution": (
        model_of(
            [node("ConvTranspose", "x w", auto_pad="SAME_UPPER")], float_inputs(x=(1, 4, 3)),
            weights={"w": floats(4, 2, 3, 3)},
        ),
        "ConvTranspose /y: a kernel of 2 dimensions does not fit 1, or the output_shape None",
    ),
    "depth to space": (
        model_of([node("DepthToSpace", "x", blocksize=2)], float_inputs(x=(4, 2, 2))),
        "DepthToSpace /y: its input should have 4 dimensions: x: f32[4, 2, 2]",
    ),
    "an empty image": (
        model_of([node("Resize", "x - - s")], float_inputs(x=(1, 1, 0, 2)), weights={"s": int64s(1, 1, 7, 8)}),
        "Resize /y: dimension 2 of x: f32[1, 1, 0, 2] can't be resampled: it is empty",
    ),
    "the negative of a truth value": (
        model_of([node("Neg", "c")], {}, weights={"c": np.array(True)}),
        "Neg /y: `-` does not take bool, only number types",
    ),
    "blocks of no size": (
        model_of([node("SpaceToDepth", "x", blocksize=0)], X),
        "SpaceToDepth /y: its blocks have the size 0",
    ),
    "einsum": (
        model_of([node("Einsum", "x x", equation="abcd,abcd->ae")], X),
        "Einsum /y: the equation 'abcd,abcd->ae' gives a result with 'e', which is twice in it or in no term",
    ),
    "identity": (
        model_of([node("EyeLike", "x")], float_inputs(x=(3,))),
        "EyeLike /y: its input is x: f32[3], not a matrix",
    ),
    "lstm": (
        model_of(
            [node("LSTM", "x w r", "- y", hidden_size=2)], float_inputs(x=(4, 3)),
            weights={"w": floats(1, 8, 3), "r": floats(1, 8, 2)},
        ),
        "LSTM /: its input should have 3 dimensions: x: f32[4, 3]",
    ),
    "gather": (
        model_of([node("GatherND", "x i")], float_inputs(x=(3,)), weights={"i": int64s(1, 2).reshape(1, 2)}),
        "GatherND /y: gather_nd: tuples of 2 indices in 1 dimensions, 0 of them the batch's, for a tensor of 1",
    ),
    "scatter": (
        model_of([node("ScatterND", "x i u")], float_inputs(x=(3,)), weights={"i": int64s(1, 2).reshape(1, 2), "u": floats(1)}),
        "ScatterND /y: scatter_nd: tuples of 2 indices for a tensor of 1 dimensions",
    ),
    "scatter elements": (
        model_of([node("ScatterElements", "x i u")], float_inputs(x=(3, 3)), weights={"i": int64s(1), "u": floats(1)}),
        "ScatterElements /y: scatter_elements: indices of 1 dimensions for a tensor of 2",
    ),
    "a cache": (
        model_of([node("TensorScatter", "x u")], float_inputs(x=(1, 2, 3), u=(1, 2)), opset=24),
        "TensorScatter /y: write_at: an update of 2 dimensions for a tensor of 3",
    ),
    "branches": (
        model_of(
            [node("If", "c", then_branch=body("", NEGATED), else_branch=body("", node("Neg", "x", "go"), NEGATED))],
            {"c": (TensorProto.BOOL, ()), "x": (TensorProto.FLOAT, (2,))},
        ),
        "If /y: its branches have 1 and 2 outputs",
    ),
    "channels": (model_of([node("LRN", "x", size=0)], X), "LRN /y: lrn: sums over 0 channels of a tensor of 4 dimensions"),
    "norm": (model_of([node("LpPool", "x", kernel_shape=[2, 2], p=0)], X), "LpPool /y: there is no norm of order 0"),
    "global norm": (model_of([node("GlobalLpPool", "x", p=0)], X), "GlobalLpPool /y: there is no norm of order 0"),
    "indices of a pool": (
        model_of([node("MaxUnpool", "x i", kernel_shape=[2, 2])], X, weights={"i": int64s(1, 2)}),
        "MaxUnpool /y: its indices should be of the shape of its input, not i: i64[2] = (1, 2) for x: f32[2, 4, 3, 3]",
    ),
    "a negative size": (
        model_of([node("ConstantOfShape", "s")], {}, weights={"s": int64s(2, -2)}),
        "ConstantOfShape /y: a tensor would have a dimension of size -2",
    ),
    "a value to pad with": (
        model_of([node("Pad", "x p v")], float_inputs(x=(3,)), weights={"p": int64s(1, 1), "v": floats(2)}),
        "Pad /y: the padding value should be one number, not 2",
    ),
    "sizes": (
        model_of([node("Resize", "x - - s")], X, weights={"s": int64s(6, 6)}),
        "Resize /y: it has 2 sizes, and its dimensions take 4",
    ),
    "scales": (
        model_of([node("Resize", "x - s")], X, weights={"s": np.ones(5, np.float32)}),
        "Resize /y: it has 5 scales, and its dimensions take 4",
    ),
    "a slice": (
        model_of([node("Slice", "x s e")], X, weights={"s": int64s(0, 0), "e": int64s(1)}),
        "Slice /y: slice: 2 axes, 2 starts, 1 ends and the steps (1, 1) do not fit together",
    ),
    "a slice of a constant": (
        model_of([node("Slice", "c s e")], {}, weights={"c": int64s(1, 2), "s": int64s(0), "e": int64s(1, 1)}),
        "Slice /y: slice: 1 axes, 1 starts, 2 ends and the steps (1,) do not fit together",
    ),
    "a step of nothing": (
        model_of([node("Slice", "x s e a t")], X, weights={"s": int64s(0), "e": int64s(1), "a": int64s(0), "t": int64s(0)}),
        "Slice /y: slice: 1 axes, 1 starts, 1 ends and the steps (0,) do not fit together",
    ),
    "pieces": (
        model_of([node("Split", "x", "y z", num_outputs=3)], X, opset=18),
        "Split /y: it has 2 outputs, and its num_outputs is 3",
    ),
    "constants": (
        model_of([node("Add", "a b")], {}, weights={"a": floats(3), "b": floats(2)}),
        "Add /y: the shapes (3) and (2) do not broadcast together",
    ),
    "sequences": (scan(3), "Scan /y: it has 2 inputs, and says that 3 are sequences"),
    "inputs of a body": (scan(1, "s e f"), "Scan /y: its body takes 3 inputs, and is given 2"),
    "axes of sequences": (
        scan(1, scan_input_axes=[0, 0]), "Scan /y: its attribute 'scan_input_axes' is [0, 0], and 1 are needed",
    ),
    "inputs of a loop": (
        model_of(
            [node("Loop", "n - x", body=body("i c", node("Identity", "c", "go"), node("Neg", "x", "r")))],
            float_inputs(x=(2,)), weights={"n": np.array(2)},
        ),
        "Loop /y: its body takes 2 inputs, and is given 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_does_not_fit_is_said(case: str) -> None:
    model, wanted = CASES[case]
    with pytest.raises(ModelError) as caught:
        from_onnx(model)
    where, message = wanted.split(": ", 1)
    assert caught.value.where == where
    assert caught.value.message.split("; given")[0] == message
    assert "bug in Weft" not in str(caught.value)


def test_the_hint_says_what_to_do() -> None:
    with pytest.raises(ModelError) as caught:
        from_onnx(CASES["depth to space"][0])
    assert caught.value.hint == UNFIT
