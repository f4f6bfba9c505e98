"""Recurrent layers of symbolic length, which are loops over regions, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from tests.frontends.onnx.nodes import by_runtime, floats, model_of, node

import weft
from weft.driver.build import build

INPUTS, HIDDEN, BATCH = 6, 10, 3
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FLOAT, INT = 1, 6


def layer(
    op: str, directions: int = 1, *, time: int | str = "time", lengths: bool = False, **attributes: Any
) -> ModelProto:
    """Returns a model of one layer, with first states as inputs and all its results as outputs."""
    rows = GATES[op] * HIDDEN
    names = ["x", "w", "r", "b", "lengths" if lengths else "-", "h", *(["c"] if op == "LSTM" else [])]
    results = ["y", "last", *(["memory"] if op == "LSTM" else [])]
    inputs: dict[str, Any] = {"x": (FLOAT, (time, BATCH, INPUTS))}
    inputs |= dict.fromkeys(names[5:], (FLOAT, (directions, BATCH, HIDDEN)))
    inputs |= {"lengths": (INT, (BATCH,))} if lengths else {}
    weights = {
        "w": floats(directions, rows, INPUTS) / 4,
        "r": floats(directions, rows, HIDDEN, seed=1) / 4,
        "b": floats(directions, 2 * rows, seed=2) / 4,
    }
    if op == "LSTM":
        names.append("p")
        weights["p"] = floats(directions, 3 * HIDDEN, seed=3) / 4
    made = node(op, " ".join(names), " ".join(results), hidden_size=HIDDEN, **attributes)
    return model_of([made], inputs, tuple(results), weights)


def feeds(model: ModelProto, steps: int) -> dict[str, Any]:
    """Returns inputs of this many steps: the sequences of a batch have some of them, one of them all."""
    given: dict[str, Any] = {}
    for k, i in enumerate(model.graph.input):
        shape = [d.dim_value or steps for d in i.type.tensor_type.shape.dim]
        given[i.name] = floats(*shape, seed=10 + k)
    if "lengths" in given:
        given["lengths"] = np.maximum(np.array([steps, steps // 2, 1]), 1).astype(np.int32)
    return given


CASES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "rnn": ("RNN", 1, {"direction": "reverse", "lengths": True, "activations": ["Relu"]}),
    "gru": ("GRU", 2, {"direction": "bidirectional", "clip": 0.5}),
    "gru, reset after": ("GRU", 1, {"linear_before_reset": 1, "lengths": True}),
    "lstm": ("LSTM", 2, {"direction": "bidirectional", "lengths": True}),
    "lstm, coupled": ("LSTM", 1, {"input_forget": 1}),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES)
def test_one_model_takes_sequences_of_any_length(case: str) -> None:
    op, directions, attributes = CASES[case]
    model = layer(op, directions, **attributes)
    compiled = weft.compile(model, threads=1)
    for steps in (1, 2, 17, 1000):
        given = feeds(model, steps)
        for made, wanted in zip(compiled(**given), by_runtime(model, given), strict=True):
            np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("time", [0, weft.Dim(0, 2000)], ids=["none", "some"])
def test_a_sequence_without_steps_leaves_the_first_states(time: int | weft.Dim) -> None:
    model = layer("LSTM")
    given = feeds(model, 0)
    y, last, memory = weft.compile(model, threads=1, shapes={"time": time})(**given)
    assert y.shape == (0, 1, BATCH, HIDDEN)
    np.testing.assert_array_equal(last, given["h"])
    np.testing.assert_array_equal(memory, given["c"])


def test_a_thousand_steps_need_no_more_kernels_than_any_number() -> None:
    open_, long = (build(layer("LSTM", time=t)) for t in ("time", 1000))
    assert len(long.kernels) <= len(open_.kernels)
