"""Dimensions with ranges: `shapes={"seq": weft.Dim(8, 512, 8)}`, from the option to the check of a call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto
from tests.frontends.onnx.nodes import float_inputs, model_of, node

import weft
from weft.cli.console import parse_shapes
from weft.driver.options import check_shapes
from weft.frontends.onnx.importer import from_onnx
from weft.graph import Graph, print_graph, size_text
from weft.graph.core.saved_graph import load_graph, save_graph
from weft.ir import minimum
from weft.ops import simplify_size
from weft.support.dim import Dim, parse_dim
from weft.support.dtypes import f32
from weft.support.errors import InputError


def softmax() -> ModelProto:
    return model_of([node("Softmax", "x", "h", axis=-1), node("Relu", "h")], float_inputs(x=("batch", "seq", 16)))


@pytest.mark.parametrize("text", ["1..64", "0..", "8..512:8"])
def test_the_text_of_a_range_reads_back(text: str) -> None:
    assert str(parse_dim(text)) == text


def test_ranges_that_are_none() -> None:
    cases: list[tuple[Callable[[], Dim], str]] = [
        (lambda: Dim(-1), "a Dim has low=-1\n  hint: give a whole number, 0 or more"),
        (lambda: Dim(1, 2, 0), "a Dim has multiple=0\n  hint: give a whole number, 1 or more"),
        (
            lambda: Dim(9, 15, 8),
            "there is no size in 9..15:8\n  hint: give a low and a high with a multiple between them",
        ),
        (
            lambda: parse_dim("1-4"),
            "'1-4' is no range of sizes\n"
            "  hint: write LOW..HIGH, LOW.. or LOW..HIGH:MULTIPLE, such as 1..64, 1.. or 8..512:8",
        ),
    ]
    for make, wanted in cases:
        with pytest.raises(InputError) as told:
            make()
        assert str(told.value) == wanted


def test_ranges_as_options() -> None:
    assert parse_shapes(["batch=1..64", "seq=7"]) == {"batch": Dim(1, 64), "seq": 7}
    given = {"a": Dim(2, 4), "b": "1..", "x": (1, Dim(0, 9), "n")}
    assert check_shapes(given) == {"a": Dim(2, 4), "b": Dim(1), "x": (1, Dim(0, 9), "n")}


def test_what_all_sizes_have_in_common_is_known() -> None:
    g = Graph()
    n, s = g.bounded_dim("n", Dim(1, 64)), g.bounded_dim("seq", Dim(8, 512, 8))
    assert g.bounded_dim("n", Dim(1, 64)) is n
    assert simplify_size(minimum(n, 64)) is n
    assert str(simplify_size(s % 8)) == "0"
    assert size_text(s, g.dimensions.values()) == "seq"
    assert size_text(simplify_size(s * 2), g.dimensions.values()) == "(seq * 2)"
    assert size_text(simplify_size(s // 4), g.dimensions.values()) == "(seq // 4)"
    assert size_text(simplify_size(s * n), g.dimensions.values()) == "((n * (seq // 8)) * 8)"


def test_graphs_print_ranges_and_read_them_back(tmp_path: Path) -> None:
    graph = from_onnx(softmax(), {"batch": Dim(1, 64), "seq": Dim(8, 512, 8)})
    text = print_graph(graph)
    assert text.splitlines()[:3] == [
        "graph test(x: f32[batch, (seq_by_8 * 8), 16]) -> (y):",
        "  size batch in 1..64",
        "  size seq = (seq_by_8 * 8) in 8..512:8",
    ]
    save_graph(graph, tmp_path / "saved.npz", {})
    read, _ = load_graph(tmp_path / "saved.npz")
    assert print_graph(read) == text
    assert [d.unit.limits for d in read.dimensions.values()] == [(1, 64), (1, 64)]


def test_the_ranges_of_whole_shapes_and_of_one_size() -> None:
    graph = from_onnx(softmax(), {"x": (Dim(4, 4), Dim(2, 9), 16)})
    assert print_graph(graph).splitlines()[:2] == ["graph test(x: f32[4, seq, 16]) -> (y):", "  size seq in 2..9"]


def test_calls_of_a_model_with_ranges(tmp_path: Path) -> None:
    model = softmax()
    made = weft.compile(model, shapes={"batch": "1..4", "seq": Dim(8, 32, 8)})
    made.save(tmp_path / "saved.weft")
    loaded = weft.load(tmp_path / "saved.weft")
    for compiled in (made, loaded):
        assert compiled.inputs[0].shape == ("batch", "seq", 16)
        assert compiled.inputs[0].ranges == {"batch": Dim(1, 4), "seq": Dim(8, 32, 8)}
        for batch, seq in [(1, 8), (4, 24)]:
            x = np.random.default_rng(seq).standard_normal((batch, seq, 16)).astype(np.float32)
            (wanted,) = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})
            np.testing.assert_allclose(np.asarray(compiled(x)), wanted, rtol=1e-5, atol=1e-7)
        with pytest.raises(InputError) as told:
            compiled(np.zeros((2, 12, 16), np.float32))
        assert str(told.value) == (
            "input 'x': dimension 1, seq, is 12, and the model was compiled for 8 to 32, a multiple of 8\n"
            '  hint: give such a size, or compile the model for others: shapes={"seq": weft.Dim(...)}'
        )


def test_groups_of_the_same_nodes_and_other_ranges_are_others() -> None:
    keys = set()
    for sizes in (Dim(1, 8), Dim(1, 16), None):
        g = Graph()
        n = g.dim("n") if sizes is None else g.bounded_dim("n", sizes)
        y = g.add("relu", [g.input("x", (n,), f32)])
        g.output(y, "y")
        keys.add(weft.build(g).fused.groups[0].key)
    assert len(keys) == 3
