"""Functions of quantised tensors against ONNX Runtime, to the last bit.

A softmax may differ by one step where it lies within a rounding of the middle of two, as the order of its sum differs; none of
these does. Sums are those of a processor that multiplies and adds with one rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest
from tests.frontends.onnx.microsoft.contrib_nodes import check_equal, contrib_model, integers
from tests.frontends.onnx.nodes import Array, imported

import weft
from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import ModelError
from weft.targets import host

TYPES: Final = pytest.mark.parametrize("dtype", [np.uint8, np.int8])


def scales(dtype: type, *names: str, seed: int = 0) -> dict[str, Any]:
    """Returns scales by the names given, each with a zero point of *dtype* by the same name with a z after it."""
    rng = np.random.default_rng(seed)
    zeros = integers(dtype, [len(names)], seed)
    found: dict[str, Any] = {}
    for name, zero in zip(names, zeros, strict=True):
        found[name] = np.float32(rng.uniform(0.01, 0.06))
        found[f"{name}z"] = np.asarray(zero)
    return found


@TYPES
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize(("left", "right"), [((33, 40), (33, 40)), ((5, 1, 7), (3, 1)), ((4, 6), (1,))])
def test_binary(op: str, dtype: type, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    feeds = {"a": integers(dtype, left, 1), "b": integers(dtype, right, 2)}
    check_equal(contrib_model(op, "a s sz b t tz u uz", feeds, scales(dtype, "s", "t", "u")), feeds)


@pytest.mark.sampled(1)
@TYPES
@pytest.mark.parametrize(
    ("steps", "zeros"),
    [((0.0078125, 0.03125, 0.046875), (236, 128, 18)), ((0.0234375, 0.125, 0.046875), (95, 251, 122))],
)
def test_sums_on_the_middle_of_two_steps(steps: Sequence[float], zeros: Sequence[int], dtype: type) -> None:
    """All pairs of numbers, by scales of small ratios: a second rounding moves over a thousand sums off the middle."""
    every: Array = np.arange(256).astype(np.uint8).view(dtype)
    feeds = {"a": np.repeat(every, 256), "b": np.tile(every, 256)}
    weights: dict[str, Any] = {n: np.float32(v) for n, v in zip("stu", steps, strict=True)}
    weights |= {f"{n}z": np.array(v, np.uint8).view(dtype) for n, v in zip("stu", zeros, strict=True)}
    model = contrib_model("QLinearAdd", "a s sz b t tz u uz", feeds, weights)
    [wanted] = check_equal(model, feeds)
    made = np.asarray(weft.compile(model)(feeds["a"], feeds["b"])).astype(int)
    if host().isa.fma:
        np.testing.assert_array_equal(made, wanted)
    else:  # products are rounded before they are added: what is in the middle may go the other way
        np.testing.assert_allclose(made, wanted, rtol=0, atol=1)


def test_the_zero_point_of_the_result_may_be_left_out() -> None:
    feeds = {"a": integers(np.uint8, (4, 9), 1), "b": integers(np.uint8, (4, 9), 2)}
    check_equal(contrib_model("QLinearAdd", "a s sz b t tz u", feeds, scales(np.uint8, "s", "t", "u")), feeds)


@TYPES
@pytest.mark.parametrize(("op", "attributes"), [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.1})])
def test_unary(op: str, attributes: dict[str, Any], dtype: type) -> None:
    feeds: dict[str, Array] = {"a": np.arange(256).astype(np.uint8).view(dtype)}
    check_equal(contrib_model(op, "a s sz t tz", feeds, scales(dtype, "s", "t"), **attributes), feeds)


@TYPES
@pytest.mark.parametrize("attributes", [{"opset": 13}, {"opset": 13, "axis": 1}, {"opset": 11, "axis": 1}])
def test_softmax(attributes: dict[str, Any], dtype: type) -> None:
    feeds = {"a": integers(dtype, (3, 4, 9), 1)}
    weights = scales(dtype, "s") | {"t": np.float32(1 / 256), "tz": np.array(np.iinfo(dtype).min, dtype)}
    check_equal(contrib_model("QLinearSoftmax", "a s sz t tz", feeds, weights, **attributes), feeds)


def test_softmax_saturates() -> None:
    feeds = {"a": np.array([[127, -128, -128]], np.int8)}
    weights = {"s": np.float32(1), "z": np.int8(0), "t": np.float32(1 / 256), "u": np.int8(-128)}
    _, [y] = imported(contrib_model("QLinearSoftmax", "a s z t u", feeds, weights, opset=13), feeds)
    assert y.tolist() == [[127, -128, -128]]  # ONNX Runtime wraps the 128 of the first around, to -128


@TYPES
@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
        {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1], "count_include_pad": 1},
        {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1},
        {"kernel_shape": [2, 3], "channels_last": 1},
    ],
)
def test_average_pool(attributes: dict[str, Any], dtype: type) -> None:
    feeds = {"a": integers(dtype, (2, 3, 9, 10), 1)}
    model = contrib_model("QLinearAveragePool", "a s sz t tz", feeds, scales(dtype, "s", "t"), **attributes)
    check_equal(model, feeds)


@TYPES
@pytest.mark.parametrize("last", [0, 1])
def test_global_average_pool(last: int, dtype: type) -> None:
    feeds = {"a": integers(dtype, (2, 7, 5, 6), 1)}
    weights = scales(dtype, "s", "t") | {"t": np.float32(0.004)}
    check_equal(contrib_model("QLinearGlobalAveragePool", "a s sz t tz", feeds, weights, channels_last=last), feeds)


@TYPES
def test_concat(dtype: type) -> None:
    feeds = {"a": integers(dtype, (3, 4), 1), "b": integers(dtype, (3, 5), 2)}
    weights = scales(dtype, "s", "t", "u")
    check_equal(contrib_model("QLinearConcat", "u uz a s sz b t tz", feeds, weights, axis=1), feeds)
    check_equal(contrib_model("QLinearConcat", "u uz a s sz", {"a": feeds["a"]}, weights, axis=-1), {"a": feeds["a"]})


def test_concat_of_tensors_of_the_result_s_encoding_keeps_their_integers() -> None:
    feeds = {"a": integers(np.uint8, (3, 4), 1), "b": integers(np.uint8, (3, 5), 2)}
    weights = scales(np.uint8, "s", "t")
    model = contrib_model("QLinearConcat", "s sz a s sz b t tz", feeds, weights, axis=1)
    check_equal(model, feeds)
    same = contrib_model("QLinearConcat", "s sz a s sz b s sz", feeds, weights, axis=1)
    check_equal(same, feeds)
    assert [n.op for n in from_onnx(same).nodes] == ["concat"]


@TYPES
def test_where(dtype: type) -> None:
    feeds = {"c": integers(np.uint8, (4, 1)) < 128, "a": integers(dtype, (4, 5), 1), "b": integers(dtype, (5,), 2)}
    check_equal(contrib_model("QLinearWhere", "c a s sz b t tz u uz", feeds, scales(dtype, "s", "t", "u")), feeds)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("QLinearAdd", "a s z a s", {}, "its input 5 is missing"),
        ("QLinearSigmoid", "a s z s z s", {}, "it has 6 inputs, and QLinearSigmoid has 5 at most"),
        ("QLinearSigmoid", "a s z s z", {"alpha": 1.0}, "QLinearSigmoid has no attribute 'alpha'"),
        ("QLinearLeakyRelu", "a s z s z", {"alpha": 1}, "its attribute 'alpha' is 1, not of type float"),
        ("QLinearLeakyRelu", "a v z s z", {}, "its input 1 should be one number for the whole tensor: v: f32[2]"),
        ("QLinearConcat", "s z a s z", {}, "its attribute 'axis' is missing"),
        ("QLinearConcat", "s z a s z a", {"axis": 0}, "it has 6 inputs; after two, each tensor has three"),
    ],
)
def test_refused(op: str, inputs: str, attributes: dict[str, Any], message: str) -> None:
    weights = {"s": np.float32(1), "z": np.uint8(0), "v": np.ones(2, np.float32)}
    model = contrib_model(op, inputs, {"a": integers(np.uint8, (2, 2))}, weights, **attributes)
    with pytest.raises(ModelError) as caught:
        from_onnx(model)
    assert caught.value.message.startswith(message)
    assert caught.value.where == f"{op} /y"
