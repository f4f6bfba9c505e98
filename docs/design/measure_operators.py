"""Measures operators that are algorithms or control flow: decisions 0043 and 0046 of `measure.py`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from timing import best

import weft
from weft.driver.build import build
from weft.driver.options import CompileOptions
from weft.frontends.onnx.ops import control
from weft.graph import Graph
from weft.support.dtypes import f32


def algorithms() -> None:
    """0043: operators that are algorithms, beside NumPy and ONNX Runtime, in turns."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
    operators, cases = importlib.import_module("operators"), importlib.import_module("operator_cases")
    rng = np.random.default_rng(0)
    keys = rng.standard_normal(10**6).astype(np.float32)
    g = Graph()
    g.output(g.add("argsort", [g.input("x", keys.shape, f32)]), "y")
    sort = weft.Model(build(g, "cpu", CompileOptions(), None, None).package, threads=1)
    turns = [[best(lambda: sort.run([keys]), 1), best(lambda: np.argsort(keys), 1)] for _ in range(15)]
    ours, numpys = (float(np.median(t)) * 1e3 for t in zip(*turns, strict=True))
    print(f"argsort of 1,000,000: {ours:.1f} ms, NumPy's {numpys:.1f} ms")
    for x, k in ((keys[:2000], 10), (keys[: 8 * 50257].reshape(8, -1), 50), (keys[:20000], 10000)):
        inputs = {"a": x, "b": np.array([k], np.int64)}
        made = operators.measure(cases.Case("TopK", "", inputs, frozenset("b"), outputs=2), 0.3)
        print(f"TopK, {k} of {x.shape}: {made['weft_us']:.1f} us, ONNX Runtime's {made['onnxruntime_us']:.1f}")
    for n in (10**5, 10**7):
        x = rng.standard_normal(n).astype(np.float32)
        made = operators.measure(cases.Case("CumSum", "", {"a": x, "b": np.array(0, np.int64)}, frozenset("b")), 0.3)
        copied = np.empty_like(x)
        copy = best(lambda x=x, y=copied: np.copyto(y, x), 9) * 1e6  # type: ignore[misc]
        print(
            f"CumSum of {n:,}: {made['weft_us']:.0f} us, ONNX Runtime's {made['onnxruntime_us']:.0f}, a copy {copy:.0f}"
        )
    for name in ("ScatterND", "ScatterElements", "MaxUnpool"):
        for case in cases.cases([name], ["large"]):
            made = operators.measure(case, 0.3)
            print(f"{made['case']}: {made['weft_us']:.0f} us, ONNX Runtime's {made['onnxruntime_us']:.0f}")


def regions() -> None:
    """0046: a loop of 200 iterations, as a region and written out: compiling it, and a call."""
    info, node = helper.make_tensor_value_info, helper.make_node
    steps = [node("Identity", ["go"], ["on"]), node("Add", ["s", "x"], ["u"]), node("Tanh", ["u"], ["t"])]
    given = [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("s", TensorProto.FLOAT, [64])]
    made = [info("on", TensorProto.BOOL, []), info("t", TensorProto.FLOAT, [64])]
    loop = node("Loop", ["trips", "yes", "x"], ["y"], body=helper.make_graph(steps, "step", given, made))
    constants = [numpy_helper.from_array(a, n) for n, a in (("trips", np.asarray(200)), ("yes", np.asarray(True)))]
    ends = [[info(n, TensorProto.FLOAT, [64])] for n in "xy"]
    opset = helper.make_opsetid("", 21)
    proto = helper.make_model(helper.make_graph([loop], "loop", *ends, constants), opset_imports=[opset], ir_version=10)
    x = [np.ones(64, np.float32)]
    weft.compile(proto, cache=False)  # loads what is loaded only once
    for name, most in (("region", 16), ("written out", 1000)):
        with patch.object(control, "MOST_UNROLLED_STEPS", most):
            seconds = best(lambda: weft.compile(proto, cache=False), 3)
            model = weft.compile(proto, cache=False, threads=1)
        call = best(lambda m=model: [m.run(x) for _ in range(100)], 20) / 100  # type: ignore[misc]
        print(f"{name}: compiled in {seconds * 1e3:.0f} ms, a call {call * 1e6:.1f} us")
