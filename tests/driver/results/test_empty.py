"""Sizes of zero, in a call or in the model: empty outputs of the right shapes, as ONNX Runtime gives them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from tests.frontends.onnx.nodes import float_inputs, model_of, node
from tests.models import BUILDERS, mlp

import weft
from weft.support.errors import InputError

SYMBOLIC = [
    name
    for name, make in BUILDERS.items()
    if any(d.dim_param for d in make().graph.input[0].type.tensor_type.shape.dim)
]


def empty_inputs(model: onnx.ModelProto) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """Returns an input of each kind, with a size of zero wherever the model leaves it open."""
    made = {}
    for i in model.graph.input:
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]  # 0 for one that has a name
        made[i.name] = np.zeros(shape, onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type))
    return made


def names(model: onnx.ModelProto) -> set[str]:
    return {d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}


def check(made: Sequence[np.ndarray[tuple[int, ...], np.dtype[np.generic]]], model: onnx.ModelProto) -> None:
    wanted = ort.InferenceSession(model.SerializeToString()).run(None, empty_inputs(model))
    assert [(y.shape, y.dtype) for y in made] == [(y.shape, y.dtype) for y in wanted]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SYMBOLIC)
def test_an_empty_batch(name: str) -> None:
    model = BUILDERS[name]()
    session = weft.InferenceSession(model)
    check(session.run(None, empty_inputs(model)), model)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SYMBOLIC)
@pytest.mark.parametrize("opt_level", [0, 3])
def test_a_model_for_an_empty_batch(name: str, opt_level: int) -> None:
    model = BUILDERS[name]()
    compiled = weft.compile(model, shapes=dict.fromkeys(names(model), 0), opt_level=opt_level, verify=True)
    check(compiled.run(list(empty_inputs(model).values())), model)


def test_batches_of_all_sizes_in_turn() -> None:
    model = weft.compile(mlp())
    x = np.random.default_rng(0).standard_normal((5, 24), np.float32)
    wanted = np.asarray(model(x))
    for n in (0, 5, 0, 0, 3):
        np.testing.assert_array_equal(model(x[:n]), wanted[:n])


def test_bound_memory() -> None:
    session = weft.InferenceSession(mlp())
    binding, y = session.io_binding(), np.empty((0, 10), np.float32)
    binding.bind_cpu_input("x", np.empty((0, 24), np.float32))
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].shape == (0, 10)
    out = np.empty((0, 10), np.float32)
    assert weft.compile(mlp()).run([np.empty((0, 24), np.float32)], out=[out])[0] is out


def reduced(op: str) -> onnx.ModelProto:
    return model_of([node(op, "x", "y", axes=[0], keepdims=0)], float_inputs(x=("n", 4)), ["y"], opset=13)


def test_an_output_that_has_elements_all_the_same() -> None:
    model = weft.compile(reduced("ReduceMax"))
    with pytest.raises(InputError) as told:
        model(np.empty((0, 4), np.float32))
    assert str(told.value) == (
        "where n is 0, the output y can't be computed: only a model compiled for that size, by shapes, can\n"
        "  hint: the model takes (x: f32[n, 4])"
    )
    assert np.asarray(model(np.ones((3, 4), np.float32))).tolist() == [1, 1, 1, 1]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("op", "wanted"), [("ReduceMax", -np.inf), ("ReduceSumSquare", 0), ("ReduceProd", 1)])
def test_reductions_of_nothing(op: str, wanted: float) -> None:
    model = weft.compile(reduced(op), shapes={"n": 0})
    assert np.asarray(model(np.empty((0, 4), np.float32))).tolist() == [wanted] * 4


def test_a_product_over_nothing() -> None:
    model = model_of([node("MatMul", "a b", "y")], float_inputs(a=(3, "k"), b=("k", 2)), ["y"])
    made = weft.compile(model, shapes={"k": 0})(np.empty((3, 0), np.float32), np.empty((0, 2), np.float32))
    np.testing.assert_array_equal(made, np.zeros((3, 2), np.float32))


def test_sizes_that_nothing_is_computed_with() -> None:
    """An input that is not read may have any size."""
    nodes = [node("Relu", "x", "y")]
    model = weft.compile(model_of(nodes, float_inputs(x=("n", 4), unread=("m",)), ["y"]))
    made = model(np.ones((2, 4), np.float32), np.empty((0,), np.float32))
    assert np.asarray(made).shape == (2, 4)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("size", "wanted"), [(-1, (0, 8)), (8, (0, 8))])
def test_reshaped(size: int, wanted: tuple[int, ...]) -> None:
    shape = np.array([0 if size == -1 else -1, size])
    model = model_of([node("Reshape", "x s")], float_inputs(x=("n", 4, 2)), weights={"s": shape})
    x = np.empty((0, 4, 2), np.float32)
    for shapes in (None, {"n": 0}):
        assert np.asarray(weft.compile(model, shapes=shapes)(x)).shape == wanted
