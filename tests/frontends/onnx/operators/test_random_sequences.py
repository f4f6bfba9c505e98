"""Random programs on a sequence of which only a run tells the structure, inside of branches and loops, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument
from tests.frontends.onnx.nodes import floats, model_of, node
from tests.frontends.onnx.operators.held_feeds import run_held
from tests.frontends.onnx.operators.test_late_sequences import NUMBER, assert_like, sequence_type, tensors

from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import WeftError

OUTPUTS = ("y", "count", "whole")
PLAIN: dict[str, list[tuple[str, str]]] = {
    "at a place": [("SequenceInsert", "@ x p > $")],
    "at the end": [("SequenceInsert", "@ x > $")],
    "longer": [("SequenceAt", "@ p > t"), ("Concat", "t x > u"), ("SequenceInsert", "@ u > $")],
    "another": [("SequenceInsert", "@ x > t"), ("SequenceErase", "t p > $")],
    "cut anew": [("ConcatFromSequence", "@ > t"), ("SplitToSequence", "t two > $")],
    "a new one": [("ConcatFromSequence", "@ > t"), ("SequenceConstruct", "t x > $")],
}
"""Steps from the sequence `@` to another, `$`."""
AXIS = ("Concat", "ConcatFromSequence", "SplitToSequence")


class Program:
    """A program that is drawn by a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.names = 0

    def fresh(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def steps(self, name: str, nodes: list[NodeProto], depth: int = 0) -> str:
        """Adds steps from the sequence *name*; returns the name of the last one."""
        kinds = [*PLAIN, *(["branch", "loop"] if depth < 2 else [])]
        for kind in self.rng.choice(kinds, self.rng.integers(1, 4)).tolist():
            made = self.fresh()
            if kind == "branch":
                regions = {f"{word}_branch": self.region(name, depth + 1, []) for word in ("then", "else")}
                nodes.append(helper.make_node("If", ["c"], [made], made, **regions))
            elif kind == "loop":
                state, go = self.fresh(), self.fresh()
                types = [helper.make_tensor_value_info(self.fresh(), *NUMBER), *_bools(go)]
                body = self.region(state, depth + 1, [*types, helper.make_value_info(state, sequence_type(None))], go)
                nodes.append(node("Loop", f"times yes {name}", made, body=body))
            else:
                own = {"@": name, "$": made, "t": self.fresh(), "u": self.fresh()}
                for op, text in PLAIN[kind]:
                    given, result = (" ".join([own.get(w, w) for w in part.split()]) for part in text.split(">"))
                    nodes.append(node(op, given, result, **({"axis": 0} if op in AXIS else {})))
            name = made
        return name

    def region(self, name: str, depth: int, inputs: list[Any], go: str = "") -> GraphProto:
        nodes: list[NodeProto] = []
        last, made, on = self.steps(name, nodes, depth), self.fresh(), self.fresh()
        nodes.append(node("Identity", last, made))
        outputs = [helper.make_value_info(made, sequence_type(None))]
        if go:
            nodes.append(node("Identity", go, on))
            outputs = [*_bools(on), *outputs]
        return helper.make_graph(nodes, "region", inputs, outputs)

    def model(self) -> ModelProto:
        nodes: list[NodeProto] = []
        last = self.steps("s", nodes)
        ends = (("Identity", "y"), ("SequenceLength", "count"), ("ConcatFromSequence", "whole"))
        nodes += [node(op, last, name, **({"axis": 0} if op in AXIS else {})) for op, name in ends]
        inputs: dict[str, Any] = {"x": (TensorProto.FLOAT, [1, 2]), "p": NUMBER, "c": (TensorProto.BOOL, [])}
        inputs["times"] = NUMBER
        made = model_of(nodes, inputs, OUTPUTS, {"two": np.array(2), "yes": np.array(True)})
        made.graph.input.append(helper.make_value_info("s", sequence_type(("n", 2))))
        return made

    def feed(self) -> dict[str, Any]:
        draw = self.rng.integers
        held = tensors(*[(int(draw(1, 4)), 2) for _ in range(draw(1, 4))])
        p, c, times = (np.array(draw(0, most)) for most in (2, 2, 3))
        return {"s": held, "x": floats(1, 2, seed=9), "p": p, "c": c.astype(bool), "times": times}


def _bools(name: str) -> list[Any]:
    return [helper.make_tensor_value_info(name, TensorProto.BOOL, [])]


@pytest.mark.parametrize("seed", [*range(3), *[pytest.param(n, marks=pytest.mark.slow) for n in range(3, 100)]])
def test_random_programs(seed: int) -> None:
    """Calls that ONNX Runtime refuses, for a position that there is not, are refused."""
    program = Program(seed)
    model = program.model()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    theirs = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    graph = from_onnx(model)
    for _ in range(4):
        feed = program.feed()
        try:
            wanted = theirs.run(None, feed)
        except (Fail, InvalidArgument):
            with pytest.raises(WeftError, match="its position is none"):
                run_held(graph, feed, OUTPUTS)
            continue
        for found, one in zip(run_held(graph, feed, OUTPUTS), wanted, strict=True):
            assert_like(found, one)
