"""What a call costs from Python on models so small that little else is left, with ONNX Runtime beside.

    ../.venv/bin/python call_overhead.py [--seconds S] [--json FILE]

One thread each. The ways of calling take turns in rounds; a figure is the median of the rounds, in microseconds of processor
time, and the last column is ONNX Runtime's `run` over it. Fails if a call of Weft's takes 15 microseconds or more.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import weft

LIMIT = 15.0
"""Microseconds that a call of Weft's may take at most."""

CALLS = 500
"""Calls a round."""


def sum_of_two() -> onnx.ModelProto:
    """Return a + b for vectors of four floats."""
    a, b, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "aby")
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "sum", [a, b], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def small_perceptron() -> onnx.ModelProto:
    """Return two layers of 16 and 8 units for any number of rows of 8 floats."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(shape).astype(np.float32) for shape in ((8, 16), (16,), (16, 8), (8,))]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 8]) for name in "xy")
    nodes = [
        helper.make_node("Gemm", ["x", "w0", "w1"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "w3"], ["y"]),
    ]
    constants = [numpy_helper.from_array(w, f"w{k}") for k, w in enumerate(weights)]
    graph = helper.make_graph(nodes, "perceptron", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def ways(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> dict[str, Callable[[], Any]]:
    """Return the ways of calling a model, ready to be called."""
    compiled = weft.compile(model, threads=1)
    options, theirs = weft.SessionOptions(), ort.SessionOptions()
    for each in (options, theirs):
        each.intra_op_num_threads = each.inter_op_num_threads = 1
    ours = weft.InferenceSession(model.SerializeToString(), options)
    session = ort.InferenceSession(model.SerializeToString(), theirs, providers=["CPUExecutionProvider"])
    arrays = list(feed.values())
    for a, b in zip(ours.run(None, feed), session.run(None, feed), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    bound = {engine: bind(engine, feed) for engine in (ours, session)}
    return {
        "weft model(x)": lambda: compiled(*arrays),
        "weft model(name=x)": lambda: compiled(**feed),
        "weft session.run": lambda: ours.run(None, feed),
        "weft run_with_iobinding": lambda: ours.run_with_iobinding(bound[ours]),
        "ort  session.run": lambda: session.run(None, feed),
        "ort  run_with_iobinding": lambda: session.run_with_iobinding(bound[session]),
    }


def bind(session: Any, feed: dict[str, np.ndarray]) -> Any:
    """Return a binding of all inputs, and of all outputs to new memory."""
    binding = session.io_binding()
    for name, array in feed.items():
        binding.bind_cpu_input(name, array)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    return binding


def microseconds(call: Callable[[], Any]) -> float:
    """Return the processor time of one call, averaged over a round."""
    begin = time.thread_time_ns()
    for _ in range(CALLS):
        call()
    return (time.thread_time_ns() - begin) / CALLS / 1000


def measure(calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Return the median of the rounds for each way of calling."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(taken["weft model(x)"]) < 3:
        for name, call in calls.items():
            taken[name].append(microseconds(call))
    return {name: statistics.median(rounds) for name, rounds in taken.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="how long to measure each model")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    asked = parser.parse_args()
    rng = np.random.default_rng(1)
    vectors = {name: rng.standard_normal(4).astype(np.float32) for name in "ab"}
    cases = {
        "sum of two vectors": (sum_of_two(), vectors),
        "perceptron, 1 row": (small_perceptron(), {"x": rng.standard_normal((1, 8)).astype(np.float32)}),
    }
    figures: dict[str, dict[str, float]] = {}
    for title, (model, feed) in cases.items():
        figures[title] = found = measure(ways(model, feed), asked.seconds)
        print(title)
        for name, taken in found.items():
            print(f"  {name:<26} {taken:6.2f} us  {found['ort  session.run'] / taken:5.2f}")
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")
    slow = [name for found in figures.values() for name, taken in found.items() if "weft" in name and taken >= LIMIT]
    for name in slow:
        print(f"{name} takes {LIMIT:.0f} us or more", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
