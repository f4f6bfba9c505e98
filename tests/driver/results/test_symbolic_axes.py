"""Axes of any length that vectors run along: right at each length around those of vectors, tiles and rows of accumulators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import weft

Array = np.ndarray[Any, np.dtype[Any]]
LENGTHS = (*range(1, 42), 47, 48, 49, 63, 64, 65, 77, 95, 96, 97, 128, 129)
rng = np.random.default_rng(0)


def compiled(op: str, shapes: Sequence[Sequence[int | str]], **attributes: Any) -> weft.Model:
    """A model of one operator, of inputs of *shapes*, in which names are sizes that a call tells."""
    names = [f"x{k}" for k in range(len(shapes))]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip(names, shapes, strict=True)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "net", inputs, outputs)
    return weft.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def floats(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("rows", [7, "m"])
def test_columns_of_a_product(rows: int | str) -> None:
    model = compiled("MatMul", [(rows, 9), (9, "n")])
    for n in LENGTHS:
        for m in (7,) if rows == 7 else (1, n % 13 + 1, n):
            x, y = floats(m, 9), floats(9, n)
            np.testing.assert_allclose(model(x, y), x @ y, rtol=1e-4, atol=1e-5, err_msg=f"{m} x {n}")


def test_softmax_of_rows() -> None:
    model = compiled("Softmax", [(3, "n")], axis=-1)
    for n in LENGTHS:
        x = floats(3, n)
        e = np.exp(x - x.max(-1, keepdims=True))
        np.testing.assert_allclose(model(x), e / e.sum(-1, keepdims=True), rtol=1e-5, err_msg=f"{n}")


@pytest.mark.parametrize(("op", "wanted"), [("ReduceMean", np.mean), ("ReduceMax", np.max)])
def test_reductions_of_rows(op: str, wanted: Any) -> None:
    model = compiled(op, [(3, "n")], axes=[1])
    for n in LENGTHS:
        x = floats(3, n)
        np.testing.assert_allclose(model(x), wanted(x, axis=1, keepdims=True), rtol=1e-4, atol=1e-6, err_msg=f"{n}")


def test_elements_beyond_an_output_stay() -> None:
    """A last vector writes the elements that there are, and no others."""
    model = compiled("MatMul", [(2, 3), (3, "n")])
    for n in LENGTHS:
        room = np.full(2 * n + 64, 7, np.float32)
        x, y = floats(2, 3), floats(3, n)
        made = model.run([x, y], out=[room[: 2 * n].reshape(2, n)])
        np.testing.assert_allclose(made[0], x @ y, rtol=1e-4, atol=1e-5)
        assert (room[2 * n :] == 7).all()


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (4, 2)])
def test_pictures_of_any_sides_are_by_winograds_method(kernel: int, stride: int) -> None:
    """Patches of tiles overhang pictures of any sides, which may be smaller than a tile."""
    w = (floats(32, 32, kernel, kernel) / (3 * 32**0.5)).astype(np.float32)
    shapes = [("x", TensorProto.FLOAT, ("n", 32, "h", "w")), ("y", TensorProto.FLOAT, None)]
    x, y = (helper.make_tensor_value_info(*s) for s in shapes)
    window: dict[str, Any] = {"strides": [stride] * 2, "pads": [1] * 4}
    node, weight = helper.make_node("Conv", ["x", "w"], ["y"], **window), numpy_helper.from_array(w, "w")
    graph = helper.make_graph([node], "net", [x], [y], [weight])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    kernels = weft.build(proto).kernels.values()
    assert any("conv2d_winograd" in k.name for k in kernels)
    model = weft.compile(proto)
    reference: Any = ReferenceEvaluator(proto)
    for sides in ((2, 2), (3, 17), (24, 9), (41, 33)):
        for images in (1, 3):
            given = floats(images, 32, *sides)
            [wanted] = reference.run(None, {"x": given})
            np.testing.assert_allclose(model(given), wanted, rtol=1e-4, atol=2e-5, err_msg=f"{images} x {sides}")
