"""`weft compile --verify`: bugs planted in a pass, a kernel and the host program are found and named, and a part still fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from onnx import ModelProto
from tests.cli.commands import Cli
from tests.frontends.onnx.nodes import float_inputs, floats, model_of, node

from weft.driver.build import build
from weft.driver.checking.agreement import difference
from weft.driver.checking.check_model import check_model, check_saved
from weft.driver.checking.locate_fault import first_wrong
from weft.driver.checking.reference import run_graph
from weft.driver.options import CompileOptions
from weft.graph import Graph, Node, load_graph
from weft.graph.passes import pipeline
from weft.loop import Program, parse_program, print_program
from weft.lower import PIPELINES
from weft.ops import OPERATORS
from weft.support.errors import VerifyError
from weft.targets import host

OPTIONS = CompileOptions()


def network() -> ModelProto:
    """Returns layers of which only one has a `Tanh`."""
    nodes = [
        node("MatMul", "x w", "a"),
        node("Relu", "a", "b"),
        node("MatMul", "b v", "c"),
        node("Tanh", "c", "d"),
        node("MatMul", "d w", "e"),
        node("Softmax", "e", "y"),
    ]
    weights = {"w": floats(8, 8), "v": floats(8, 8, seed=1)}
    return model_of(nodes, float_inputs(x=(3, 8)), weights=weights)


def without_tanh(graph: Graph) -> Graph:
    """A wrong pass: tanh becomes the sigmoid function."""
    swapped = [
        Node(OPERATORS["sigmoid"], n.inputs, (), [v.type for v in n.outputs], [v.name for v in n.outputs], n.source)
        if n.op == "tanh"
        else n
        for n in graph.nodes
    ]
    return rewired(graph, swapped)


def rewired(graph: Graph, nodes: Sequence[Node]) -> Graph:
    """Returns *graph* with other nodes in the places of its own."""
    made, new = graph.empty_copy(), dict[Any, Any]()
    for old, n in zip(graph.nodes, nodes, strict=True):
        kept = made.append(n.with_inputs(tuple([None if v is None else new.get(v, v) for v in n.inputs])))
        new.update(zip(old.outputs, kept.outputs, strict=True))
    for v, name in zip(graph.outputs, graph.output_names, strict=True):
        made.output(new.get(v, v), name)
    return made


def plant_in_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = list(pipeline.GRAPH_PASSES)
    at = next(k for k, p in enumerate(passes) if p.name == "simplify_calls")
    honest = passes[at].run
    passes[at] = replace(passes[at], run=lambda g, c: without_tanh(honest(g, c)))
    monkeypatch.setattr(pipeline, "GRAPH_PASSES", tuple(passes))


def failing(model: ModelProto) -> VerifyError:
    target = host()
    with pytest.raises(VerifyError) as caught:
        check_model(build(model, target, OPTIONS).package, model, target, OPTIONS)
    return caught.value


def test_a_bug_in_a_graph_pass_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_in_graph(monkeypatch)
    error = failing(network())
    assert error.where == "output y"
    assert error.message.startswith("the compiled model is wrong by the reference interpreter: 2")
    assert error.message.endswith("; at fault is the graph pass simplify_calls")
    found = re.search(r"is in (\S+):", error.hint or "")
    assert found is not None
    graph, _ = load_graph(Path(found[1]))
    assert [n.op for n in graph.nodes] == ["tanh"]
    with pytest.raises(VerifyError, match="at fault is the graph pass simplify_calls"):
        check_saved(Path(found[1]))
    monkeypatch.undo()
    assert check_saved(Path(found[1]))


def test_a_bug_in_a_lowering_pass_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = list(PIPELINES["cpu"])
    at = next(k for k, p in enumerate(passes) if p.name == "simplify_program")
    honest = passes[at].run

    def broken(program: Program, context: Any) -> Program:
        return parse_program(re.sub(r"\btanh\(", "exp(", print_program(honest(program, context))))

    passes[at] = replace(passes[at], run=broken)
    monkeypatch.setitem(PIPELINES, "cpu", tuple(passes))
    error = failing(network())
    assert re.search(
        r"at fault is the lowering pass simplify_program of kernel \w*tanh\w*, made for .*Tanh /d", error.message
    )
    found = re.search(r"is in (\S+):", error.hint or "")
    assert found is not None
    graph, _ = load_graph(Path(found[1]))
    assert "tanh" in [n.op for n in graph.nodes]
    assert len(graph.nodes) <= 2


def test_a_right_model_passes_on_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "network.onnx"
    path.write_bytes(network().SerializeToString())
    done = Cli(capsys, monkeypatch)("compile", path, "-o", tmp_path / "network.weft", "--verify")
    assert done.code == 0
    assert "the model agrees with the reference interpreter" in done.out


def test_large_loops_are_compiled_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.driver.checking.reference.MOST_INTERPRETED", 100)
    x = floats(3, 8)
    graph = build(network(), host(), OPTIONS).source
    (made,) = run_graph(graph, {"x": x})
    monkeypatch.undo()
    (wanted,) = run_graph(graph, {"x": x})
    assert difference(made, wanted) is None


@pytest.mark.parametrize("bad", range(1, 6))
def test_bisection_finds_the_first_that_is_wrong(bad: int) -> None:
    forms = [(str(k), k) for k in (0, 1, 1, 2, 3, 4, 5)]
    assert first_wrong(forms, lambda k: k >= bad) == str(bad)
    assert first_wrong(forms, lambda k: k > 5) is None


FIRST: Final = "elements differ; the first,"


@pytest.mark.parametrize(
    ("kind", "made", "wanted", "told"),
    [
        ("f4", [1, 2], [1, 2.0001], None),
        ("f4", [1, np.nan], [1, np.nan], None),
        ("f4", [1, np.inf], [1, -np.inf], f"1 of 2 {FIRST} [1], is inf and should be -inf"),
        ("f4", [[1, 3]], [[1, 2]], f"1 of 2 {FIRST} [0, 1], is 3.0 and should be 2.0"),
        ("u1", [3, 4], [4, 4], None),
        ("u1", [3, 4], [5, 4], f"1 of 2 {FIRST} [0], is 3 and should be 5"),
        ("i8", [3], [4], f"1 of 1 {FIRST} [0], is 3 and should be 4"),
    ],
)
def test_arrays_agree_but_for_rounding(kind: str, made: Any, wanted: Any, told: str | None) -> None:
    assert difference(np.array(made, kind), np.array(wanted, kind)) == told


def test_arrays_of_other_types_differ() -> None:
    assert difference(np.zeros(1, np.int64), np.zeros(1, np.int32)) == "it is int64[1], not int32[1]"
