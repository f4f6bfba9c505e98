"""States that begin with values that the model gives: initializers of inputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.host_programs import interpret_model, linked, new_states
from tests.support.devices import needs_opencl

import weft
from weft.driver.build import build
from weft.driver.host_model import replay_model
from weft.driver.options import check_options
from weft.frontends import to_graph
from weft.graph import declare_states, print_graph
from weft.graph.core.saved_graph import load_graph, save_graph
from weft.runtime import Model
from weft.runtime.artifact import write_artifact
from weft.runtime.package import InitialValue

PAIRS, CAPACITY = {"mean": "next_mean", "past": "present"}, {"past": 8}
MEAN, PAST = np.arange(6, dtype=np.float32).reshape(2, 3), np.full((1, 3), 7, np.float32)
ONES = np.ones((2, 3), np.float32)


def model(rows: int | str = 2) -> onnx.ModelProto:
    """Returns a model that sums the *rows* that it is given, and keeps them in a cache."""
    shapes: dict[str, list[int | str]] = {"x": [rows, 3], "mean": [rows, 3], "past": ["p", 3]}
    graph = helper.make_graph(
        [
            helper.make_node("Add", ["x", "mean"], ["next_mean"]),
            helper.make_node("Concat", ["past", "x"], ["present"], axis=0),
            helper.make_node("ReduceSum", ["present"], ["total"], keepdims=0),
            helper.make_node("Relu", ["next_mean"], ["y"]),
        ],
        "sums",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [helper.make_empty_tensor_value_info(name) for name in ("y", "total", "next_mean", "present")],
        [numpy_helper.from_array(MEAN, "mean"), numpy_helper.from_array(PAST, "past")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check(compiled: weft.Model) -> None:
    """Checks what calls give, and that a state that is reset, or copied and reset, is as a new one."""
    state = compiled.new_state()
    copied = state.copy()
    for begun in (state, copied, compiled.new_state()):
        for calls in (1, 2):
            y, total = compiled.run([ONES], state=begun)
            np.testing.assert_array_equal(y, MEAN + calls)
            assert float(total) == PAST.sum() + calls * ONES.sum()
            assert begun.length("past") == 1 + 2 * calls
        begun.reset()
        np.testing.assert_array_equal(begun["mean"], MEAN)
        np.testing.assert_array_equal(begun["past"], PAST)


def test_a_state_begins_with_the_initializer_of_its_input(tmp_path: Path) -> None:
    compiled = weft.compile(model(), state=PAIRS, capacity=CAPACITY, threads=1)
    check(compiled)
    compiled.save(tmp_path / "sums.weft")
    loaded = weft.load(tmp_path / "sums.weft", threads=1)
    assert loaded.package.states == compiled.package.states
    assert loaded.package.notes == compiled.package.notes
    check(loaded)


@needs_opencl
def test_so_it_does_on_a_device() -> None:
    check(weft.compile(model(), target="opencl", state=PAIRS, capacity=CAPACITY))


def test_values_of_the_caller_come_before_those_of_the_model() -> None:
    compiled = weft.compile(model(), state=PAIRS, capacity=CAPACITY, threads=1)
    state = compiled.new_state({"mean": -MEAN})
    compiled.run([ONES], state=state)
    state.reset()
    np.testing.assert_array_equal(state["mean"], -MEAN)
    np.testing.assert_array_equal(state["past"], PAST)


def test_all_forms_of_a_model_agree() -> None:
    made = build(model(), options=check_options(state=PAIRS, capacity=CAPACITY, verify=True))
    check(Model(replay_model(made), threads=1))
    states, program = new_states(made.package), linked(made)
    for calls in (1, 2):
        y, total = interpret_model(program, made, {"x": ONES}, states)
        np.testing.assert_array_equal(y, MEAN + calls)
        assert float(total) == PAST.sum() + calls * ONES.sum()


def test_an_input_with_an_initializer_is_a_constant_where_it_is_no_state() -> None:
    compiled = weft.compile(model(), state={"past": "present"}, capacity=CAPACITY, threads=1)
    assert [s.name for s in compiled.states] == ["past"]
    np.testing.assert_array_equal(compiled.run([ONES], state=compiled.new_state())[0], MEAN + 1)


def test_graphs_print_and_keep_what_states_begin_with(tmp_path: Path) -> None:
    made = declare_states(to_graph(model(), states=PAIRS), PAIRS, CAPACITY)
    text = print_graph(made)
    assert "  state mean becomes next_mean, begins with mean_initial\n" in text
    save_graph(made, tmp_path / "graph.npz", {})
    again = load_graph(tmp_path / "graph.npz")[0]
    assert print_graph(again) == text
    assert again.states[0].initial is not None
    np.testing.assert_array_equal(again.states[0].initial.array, MEAN)


def test_a_value_that_does_not_fit_is_refused() -> None:
    with pytest.raises(weft.ModelError) as refused:
        weft.compile(model("b"), state=PAIRS, capacity=CAPACITY)
    assert "the state mean: f32[b, 3] begins with the model's value for it, which is f32[2, 3]" in str(refused.value)
    assert "hint: give the sizes of that: shapes={'mean': (2, 3)}" in str(refused.value)
    check(weft.compile(model("b"), state=PAIRS, capacity=CAPACITY, shapes={"mean": (2, 3)}))
    long = model()
    long.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.ones((9, 3), np.float32), "past"))
    with pytest.raises(weft.ModelError, match="begins with 9 rows, and has room for 8\n  hint: give it more capacity"):
        weft.compile(long, state=PAIRS, capacity=CAPACITY)


@pytest.mark.parametrize("damaged", [InitialValue(1 << 40, 1), InitialValue(64, 9), InitialValue(64, 8)])
def test_a_file_with_a_value_outside_of_its_constants_is_refused(damaged: InitialValue, tmp_path: Path) -> None:
    package = weft.compile(model(), state=PAIRS, capacity=CAPACITY).package
    mean, past = package.states
    write_artifact(replace(package, states=(mean, replace(past, initial=damaged))), tmp_path / "sums.weft")
    with pytest.raises(weft.ArtifactError, match="what it says of itself is impossible"):
        weft.load(tmp_path / "sums.weft")
