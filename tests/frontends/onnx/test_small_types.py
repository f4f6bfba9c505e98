"""Tensors of 8-bit floats and of smaller types: as files hold them, moved by operators, and at a model's border."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import weft
from weft.frontends.onnx.file.tensors import ELEMENT_TYPES, to_array
from weft.runtime.session_values import type_name
from weft.support.dtypes import STORAGE
from weft.support.errors import ModelError

Array = np.ndarray[Any, Any]
CODES = [code for code, dtype in ELEMENT_TYPES.items() if dtype.is_storage]


def elements(code: int, *shape: int) -> Array:
    dtype = ELEMENT_TYPES[code]
    bits = np.random.default_rng(code).integers(0, 1 << dtype.used_bits, shape)
    return bits.astype(np.uint8).view(dtype.numpy)


def same(a: Array, b: Array) -> None:
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))


def model(
    nodes: list[Any], inputs: list[Any], output: Any, weights: list[TensorProto] | None = None
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, [output], weights or [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])


def test_all_storage_types_are_among_onnx_s() -> None:
    assert {ELEMENT_TYPES[c].name for c in CODES} == set(STORAGE)


@pytest.mark.parametrize("code", CODES)
def test_files_hold_several_elements_in_a_byte(code: int, tmp_path: Path) -> None:
    x = elements(code, 3, 5)
    raw = numpy_helper.from_array(x, "w")
    assert len(raw.raw_data) == -(-15 * ELEMENT_TYPES[code].used_bits // 8)
    same(to_array(raw), x)
    numbers = TensorProto(name="w", data_type=code, dims=[3, 5], int32_data=list(raw.raw_data))
    same(to_array(numbers), x)
    (tmp_path / "weights").write_bytes(b"odd" + raw.raw_data)
    apart = TensorProto(name="w", data_type=code, dims=[3, 5], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "weights"), ("offset", "3"), ("length", str(len(raw.raw_data)))):
        apart.external_data.add(key=key, value=value)
    same(to_array(apart, folder=tmp_path), x)
    raw.raw_data += b"1"
    with pytest.raises(ModelError, match="bytes, but it has"):
        to_array(raw)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("code", CODES)
def test_elements_are_moved_as_they_are(code: int) -> None:
    x, w = elements(code, 4, 6), elements(code, 2, 6)
    nodes = [
        helper.make_node("Concat", ["x", "w"], ["joined"], axis=0),
        helper.make_node("Transpose", ["joined"], ["turned"], perm=[1, 0]),
        helper.make_node("Slice", ["turned", "starts", "ends"], ["part"]),
        helper.make_node("Reshape", ["part", "shape"], ["y"]),
    ]
    weights = [numpy_helper.from_array(w, "w")]
    weights += [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in [("starts", [1]), ("ends", [5])]]
    weights.append(numpy_helper.from_array(np.array([2, 12], np.int64), "shape"))
    made = weft.compile(
        model(
            nodes,
            [helper.make_tensor_value_info("x", code, [4, 6])],
            helper.make_tensor_value_info("y", code, [2, 12]),
            weights,
        )
    )
    same(np.asarray(made(x)), np.concatenate([x, w]).T[1:5].reshape(2, 12))
    strided = np.concatenate([x, x], 1)[:, :6]
    same(np.asarray(made(strided)), np.concatenate([x, w]).T[1:5].reshape(2, 12))
    (out,) = made.run([x], [np.zeros((2, 12), x.dtype)])
    same(out, np.concatenate([x, w]).T[1:5].reshape(2, 12))


def test_border_takes_no_bytes_for_floats() -> None:
    node = helper.make_node("Identity", ["x"], ["y"])
    f8 = TensorProto.FLOAT8E4M3FN
    made = weft.compile(
        model([node], [helper.make_tensor_value_info("x", f8, [3])], helper.make_tensor_value_info("y", f8, [3]))
    )
    with pytest.raises(weft.InputError, match="has dtype uint8, and the model takes"):
        made(np.zeros(3, np.uint8))
    with pytest.raises(weft.InputError, match="has dtype float8_e5m2, and the model takes"):
        made(np.zeros(3, ml_dtypes.float8_e5m2))
    assert type_name(made.inputs[0].dtype) == "tensor(float8e4m3fn)"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("code", [TensorProto.INT4, TensorProto.UINT2, TensorProto.FLOAT8E5M2, TensorProto.FLOAT4E2M1])
def test_weights_are_dequantised_by_blocks(code: int, tmp_path: Path) -> None:
    w = elements(code, 16, 9)
    if code == TensorProto.FLOAT8E5M2:
        w = np.arange(144, dtype=np.uint8).reshape(16, 9).__mod__(0x7C).view(w.dtype)  # no NaN and no infinity
    rng = np.random.default_rng(0)
    x, scale = rng.standard_normal((3, 16)).astype(np.float32), rng.random((4, 9)).astype(np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "scale"], ["wide"], axis=0, block_size=4),
        helper.make_node("MatMul", ["x", "wide"], ["y"]),
    ]
    f = TensorProto.FLOAT
    made = weft.compile(
        model(
            nodes,
            [helper.make_tensor_value_info("x", f, [3, 16])],
            helper.make_tensor_value_info("y", f, [3, 9]),
            [numpy_helper.from_array(w, "w"), numpy_helper.from_array(scale, "scale")],
        )
    )
    wide = w.astype(np.float32) * np.repeat(scale, 4, 0)
    np.testing.assert_allclose(np.asarray(made(x)), x @ wide, rtol=1e-5, atol=1e-5 * float(np.abs(wide).max()))
    made.save(tmp_path / "saved.weft")
    np.testing.assert_array_equal(np.asarray(weft.load(tmp_path / "saved.weft")(x)), np.asarray(made(x)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("code", [TensorProto.UINT4, TensorProto.INT2, TensorProto.FLOAT4E2M1])
@pytest.mark.parametrize("shape", [(1 << 20,), (4, 3, 1 << 16), (3, 1 << 18)])
def test_large_weights_are_held_several_elements_a_byte(code: int, shape: tuple[int, ...]) -> None:
    w, f = elements(code, *shape), TensorProto.FLOAT
    node = helper.make_node("DequantizeLinear", ["w", "scale"], ["y"])
    weights = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.array(0.5, np.float32), "scale")]
    made = weft.compile(model([node], [], helper.make_tensor_value_info("y", f, shape), weights))
    np.testing.assert_array_equal(np.asarray(made()), w.astype(np.float32) * 0.5)
    held = memoryview(made.package.constants).nbytes  # type: ignore[arg-type] # one block
    packed = shape[0] % (8 // ELEMENT_TYPES[code].used_bits) == 0
    assert held // 64 * 64 == (w.nbytes * ELEMENT_TYPES[code].used_bits // 8 if packed else w.nbytes)


def test_a_rounding_that_onnx_lacks() -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E8M0, round_mode="even")
    x, y = (helper.make_tensor_value_info(n, c, [1]) for n, c in (("x", 1), ("y", TensorProto.FLOAT8E8M0)))
    with pytest.raises(ModelError) as error:
        weft.compile(model([node], [x], y))
    assert str(error.value) == "Cast y: its attribute 'round_mode' is 'even'\n  hint: use one of up, down, nearest"
