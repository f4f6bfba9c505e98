"""Graphs in files: the graph that is read is the graph that was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests import models
from tests.graph.checks import random_array
from tests.graph.oracle import Oracle, run_graph

from weft.frontends.onnx.importer import from_onnx
from weft.graph import Graph, Node, guard_indices, optimize, print_graph, verify_graph
from weft.graph.core import saved_graph
from weft.graph.core.saved_graph import load_graph, save_graph
from weft.ir import Const
from weft.ops import OPERATORS
from weft.support.dtypes import bf16, f32, i64
from weft.support.errors import ParseError
from weft.targets import cpu


def again(graph: Graph, folder: Path) -> Graph:
    save_graph(graph, folder / "saved.npz", {"pass": "none"})
    made, facts = load_graph(folder / "saved.npz")
    assert facts == {"pass": "none"}
    verify_graph(made)
    assert print_graph(made) == print_graph(graph)
    return made


@pytest.mark.parametrize("name", models.BUILDERS)
def test_models_and_the_graphs_made_of_them(name: str, tmp_path: Path) -> None:
    source = from_onnx(models.BUILDERS[name]())
    read = again(source, tmp_path)
    shapes = [[int(s.value) if isinstance(s, Const) else 3 for s in v.shape] for v in source.inputs]
    inputs = [
        random_array(s, k, v.dtype.numpy.type) for k, (s, v) in enumerate(zip(shapes, source.inputs, strict=True))
    ]
    for a, b in zip(run_graph(source, inputs), run_graph(read, inputs), strict=True):
        np.testing.assert_array_equal(a, b)
    again(optimize(source, cpu("avx512"), Oracle()), tmp_path)


def test_symbolic_sizes_and_requirements_whatever_their_names(tmp_path: Path) -> None:
    g = Graph("any name: at all")
    n = g.dim("the batch, doubled")
    g.require(n * 2 < 100, "{0} is too many", n)
    g.output(g.add("neg", [g.input("x y", (n * 2, 4), f32)]), "out")
    made = again(g, tmp_path)
    assert [str(r.condition) for r in made.requirements] == [str(r.condition) for r in g.requirements]
    assert made.requirements[0].values == (made.dims["the batch, doubled"],)


def test_constants_beyond_the_limit_keep_their_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_graph, "SAVED_CONSTANTS", 64)
    g = Graph()
    x = g.input("x", (16,), bf16)
    small = g.constant(np.arange(16).astype(bf16.numpy), "small")
    large = g.parameter(np.ones((16, 16), bf16.numpy), "large")
    g.output(g.add("matmul", [g.add("add", [x, small]), large]), "y")
    made = again(g, tmp_path)
    kept, described = made.constants()
    np.testing.assert_array_equal(kept.array, small.array)
    assert type(described) is type(large)
    assert described.array.astype(np.float32).std() > 0


def test_another_file_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(ParseError, match=r"other.npz holds no graph"):
        load_graph(tmp_path / "other.npz")


def test_guards(tmp_path: Path) -> None:
    g = Graph()
    n = g.dim("n")
    x, index = g.input("x", (n, 4), f32), g.input("index", (3,), i64)
    g.output(g.add("gather", [x, index], axis=0), "y")
    guarded = guard_indices(g)
    made = again(guarded, tmp_path)
    assert [(g.what, g.source, g.watched) for g in made.guards] == [
        (g.what, g.source, g.watched) for g in guarded.guards
    ]
    assert len(made.guards) == 1


def test_nested_graphs_share_symbolic_sizes(tmp_path: Path) -> None:
    outer, inner = Graph("outer"), Graph("inner")
    n = inner.dims["n"] = outer.dim("n")
    inner.output(inner.input("z", (n,), f32), "z")
    x = outer.input("x", (n,), f32)
    attributes = (("beyond", float("inf")), ("body", inner), ("flag", True), ("kind", f32), ("shape", (n * 2, 1)))
    call = outer.append(Node(OPERATORS["neg"], (x,), attributes, [x.type], ["y"], "Neg /neg"))
    outer.output(call.output)
    save_graph(outer, tmp_path / "saved.npz", {})
    made, _ = load_graph(tmp_path / "saved.npz")
    keywords = made.nodes[0].keywords
    assert keywords["beyond"] == float("inf")
    assert keywords["body"].inputs[0].shape == (made.dims["n"],)
    assert keywords["flag"] is True
    assert keywords["kind"] is f32
    assert keywords["shape"][0] is made.dims["n"] * 2
