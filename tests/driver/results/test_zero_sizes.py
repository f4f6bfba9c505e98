"""Dimensions that begin at zero: a decoder whose cache starts empty, sums of nothing, and results as ONNX Runtime gives them."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto
from tests.frontends.onnx.nodes import float_inputs, floats, int64s, model_of, node

import weft

Arrays = dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]


def check(compiled: weft.Model, model: ModelProto, given: Arrays) -> None:
    wanted = ort.InferenceSession(model.SerializeToString()).run(None, given)
    for made, w in zip(compiled.run(list(given.values())), wanted, strict=True):
        assert made.shape == w.shape
        np.testing.assert_allclose(made, w, rtol=1e-5, atol=1e-6)


def decoder() -> ModelProto:
    """One step of attention with a cache of `past` rows, which is returned with one more."""
    nodes = [
        node("Concat", "cache new", "keys", axis=2),
        node("Transpose", "keys", "kt", perm=[0, 1, 3, 2]),
        node("MatMul", "new kt", "scores"),
        node("Softmax", "scores", "share", axis=-1),
        node("MatMul", "share keys", "y"),
    ]
    inputs = float_inputs(cache=("batch", 2, "past", 8), new=("batch", 2, 1, 8))
    return model_of(nodes, inputs, outputs=("y", "keys"))


@pytest.mark.parametrize("past", ["0..64", "0..64:4"])
def test_a_decoder_whose_cache_starts_empty(past: str) -> None:
    model = decoder()
    compiled = weft.compile(model, shapes={"batch": weft.Dim(1, 8), "past": past}, verify=True)
    for rows in (0, 4, 12):
        check(compiled, model, {"cache": floats(2, 2, rows, 8), "new": floats(2, 2, 1, 8)})


def test_sums_of_nothing_and_results_that_are_empty() -> None:
    nodes = [
        node("ReduceSum", "x axes", "sum", keepdims=0),
        node("ReduceProd", "x", "product", axes=[1], keepdims=0),
        node("Relu", "x", "rows"),
    ]
    model = model_of(nodes, float_inputs(x=("n", "m")), outputs=("sum", "product", "rows"), weights={"axes": int64s(1)})
    compiled = weft.compile(model, shapes={"n": weft.Dim(0), "m": weft.Dim(0)}, verify=True)
    for shape in [(3, 5), (3, 0), (0, 5), (0, 0)]:
        check(compiled, model, {"x": floats(*shape)})


def test_late_outputs_of_nothing() -> None:
    nodes = [node("Relu", "x", "r"), node("NonZero", "r", "y"), node("Cast", "y", "z", to=TensorProto.FLOAT)]
    model = model_of(nodes, float_inputs(x=("n", 4)), outputs=("y", "z"))
    compiled = weft.compile(model, shapes={"n": "0..9"})
    for rows in (0, 1, 9):
        check(compiled, model, {"x": floats(rows, 4)})


def test_the_greatest_of_nothing_is_the_least_number() -> None:
    model = model_of([node("ReduceMax", "x", axes=[0], keepdims=0)], float_inputs(x=("n", 4)))
    compiled = weft.compile(model, shapes={"n": "0..9"}, verify=True)
    check(compiled, model, {"x": floats(3, 4)})
    made = compiled(np.zeros((0, 4), np.float32))
    np.testing.assert_array_equal(np.asarray(made), np.full(4, -np.inf, np.float32))
