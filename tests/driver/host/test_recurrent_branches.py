"""A detector of voices: an `If` on the rate of sampling, each branch an LSTM over frames, whose state is kept."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
from onnx.helper import make_node as node
from tests.driver.host.ways import F32, I64, Array, Info, Values, Ways, graph, model
from tests.frontends.onnx.nodes import by_runtime, floats

import weft

HIDDEN, FILTERS = 12, 8


def branch(window: int, seed: int) -> onnx.GraphProto:
    """Returns frames of *window* samples, an LSTM over them, and the probability of each frame."""
    nodes = [
        node("Unsqueeze", ["x", "one"], ["row"]),
        node("Conv", ["row", "filters"], ["frames"], strides=[window]),
        node("Relu", ["frames"], ["f"]),
        node("Transpose", ["f"], ["t"], perm=[2, 0, 1]),
        node("Split", ["state"], ["h", "c"], axis=0, num_outputs=2),
        node("LSTM", ["t", "w", "r", "b", "", "h", "c"], ["y", "h1", "c1"], hidden_size=HIDDEN),
        node("Concat", ["h1", "c1"], [f"s{seed}"], axis=0),
        node("Squeeze", ["y", "one"], ["z"]),
        node("MatMul", ["z", "out"], ["logit"]),
        node("Sigmoid", ["logit"], [f"p{seed}"]),
    ]
    weights = {
        "one": np.array([1]),
        "filters": floats(FILTERS, 1, window, seed=seed) / window,
        "w": floats(1, 4 * HIDDEN, FILTERS, seed=seed + 1),
        "r": floats(1, 4 * HIDDEN, HIDDEN, seed=seed + 2) / 4,
        "b": floats(1, 8 * HIDDEN, seed=seed + 3) / 4,
        "out": floats(HIDDEN, 1, seed=seed + 4),
    }
    return graph(nodes, [], [(f"p{seed}", F32, [None, "batch", 1]), (f"s{seed}", F32, [2, "batch", HIDDEN])], weights)


@cache
def detector() -> onnx.ModelProto:
    """Returns the model: frames of 16 samples at 16 kHz, else of 8."""
    nodes = [
        node("Equal", ["rate", "wide"], ["is_wide"]),
        node("If", ["is_wide"], ["p", "next"], then_branch=branch(16, 1), else_branch=branch(8, 2)),
    ]
    inputs: list[Info] = [("x", F32, ["batch", "samples"]), ("state", F32, [2, "batch", HIDDEN]), ("rate", I64, [])]
    outputs: list[Info] = [("p", F32, ["frames", "batch", 1]), ("next", F32, [2, "batch", HIDDEN])]
    return model(nodes, inputs, outputs, {"wide": np.array(16000)})


def feed(samples: int, rate: int, state: Array) -> dict[str, Array]:
    return {"x": floats(2, samples, seed=samples), "state": state, "rate": np.array(rate)}


def test_both_branches_for_any_number_of_frames() -> None:
    feeds: list[Values] = [feed(n, rate, floats(2, 2, HIDDEN)) for n in (16, 37, 400) for rate in (16000, 8000)]
    ways = Ways(detector(), rtol=1e-5, atol=1e-7)  # states are sums of terms up to 0.2, some of which cancel
    ways.check(*feeds, wanted=[by_runtime(detector(), f) for f in feeds])


def test_the_state_is_kept_from_call_to_call() -> None:
    compiled = weft.compile(detector(), state={"state": "next"}, threads=1)
    kept, given = compiled.new_state(batch=2), np.zeros((2, 2, HIDDEN), np.float32)
    for samples, rate in ((64, 16000), (24, 8000), (160, 16000)):
        values = feed(samples, rate, given)
        wanted, given = by_runtime(detector(), values)
        (made,) = compiled.run([values["x"], values["rate"]], state=kept)
        np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(kept["state"], given, rtol=1e-4, atol=1e-6)
