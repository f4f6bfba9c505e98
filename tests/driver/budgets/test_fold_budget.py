"""What constant folding may make: as much as models need, and not what a chain of small steps comes to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from tests.driver.budgets.bombs import chain, compile_apart, model_of, tensor, twice

import weft
from weft.frontends.onnx.importer import from_onnx
from weft.graph.core import fold_budget
from weft.graph.core.fold_budget import FoldBudget

node = helper.make_node
ONE = np.ones(1, np.float32)


def constant_chain(count: int, *nodes: str, **constants: object) -> ModelProto:
    """Returns a chain of nodes, each of the constant before and what *nodes* names besides, that begins with one number."""
    op, *others = nodes
    axis = {"axis": 0} if op == "Concat" else {}

    def link(a: str, b: str) -> list[NodeProto]:
        made = node(op, [a, *others] if others else [a, a], [b])
        made.attribute.extend([helper.make_attribute(key, value) for key, value in axis.items()])
        return [made]

    return chain(count, link, inputs=[tensor("x", [1])], constants={"v0": ONE, **constants})


BOMBS = {
    "Concat": constant_chain(40, "Concat"),
    "Tile": constant_chain(40, "Tile", "two", two=np.array([2])),
    "Pad": constant_chain(200, "Pad", "pads", pads=np.array([0, 200_000])),
    "Expand": model_of(
        [node("Expand", ["one", "shape"], ["v1"]), node("Add", ["v1", "v1"], ["v2"]), node("ReduceSum", ["v2"], ["v3"])],
        "v3", [tensor("x", [1])], constants={"one": ONE, "shape": np.array([1 << 34])},
    ),
    "sizes": model_of(
        [node("Shape", ["x"], ["s0"])]
        + [node("Concat", [f"s{k}", f"s{k}"], [f"s{k + 1}"], axis=0) for k in range(40)]
        + [node("ReduceMax", ["s40"], ["v1"])],
        "v1", [tensor("x", ["n"])], TensorProto.INT64,
    ),
    "outer products": model_of(
        [n for k in range(400) for n in (node("Add", ["row", f"c{k}"], [f"p{k}"]), node("ReduceMax", [f"p{k}"], [f"q{k}"]))]
        + [node("Sum", [f"q{k}" for k in range(400)], ["v1"])],
        "v1", [tensor("x", [1])],
        constants={"row": np.ones((1, 2000), np.float32), **{f"c{k}": np.full((2000, 1), k, np.float32) for k in range(400)}},
    ),
}  # fmt: skip
FEW = ["Concat", "Expand", "sizes"]


@pytest.mark.parametrize("names", [FEW, pytest.param([*BOMBS], marks=pytest.mark.slow)], ids=["few", "all"])
def test_chains_of_constants_take_bounded_memory(names: list[str], tmp_path: Path) -> None:
    found = dict(zip(names, compile_apart([BOMBS[n] for n in names], tmp_path), strict=True))
    assert {name: o.said for name, o in found.items() if "bug" in o.said or "not an error of Weft" in o.said} == {}
    assert {name: o for name, o in found.items() if o.megabytes > 700 or o.seconds > 30} == {}


def test_what_is_beyond_the_budget_is_computed_when_the_model_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_budget, "LEAST_FOLDED_BYTES", 3 << 12)
    nodes = [n for k in range(4) for n in twice("Add")(f"c{k}", f"c{k + 1}")] + [node("Mul", ["x", "c4"], ["v1"])]
    c = np.arange(4096, dtype=np.float32)
    made = weft.build(model_of(nodes, "v1", [tensor("x", [4096])], constants={"c0": c}))
    np.testing.assert_array_equal(weft.Model(made.package)(np.ones(4096, np.float32)), 16 * c)


def test_a_graph_that_is_compiled_again_has_the_same_budget() -> None:
    graph = from_onnx(constant_chain(4, "Concat"))
    graph.fold_budget.begin([])
    bytes_left = graph.fold_budget._left
    forms = {str(weft.build(graph).fused) for _ in range(3)}
    assert len(forms) == 1
    assert graph.fold_budget._left == bytes_left


def test_the_budget_grows_with_the_constants_of_the_model() -> None:
    small, large = FoldBudget(), FoldBudget()
    small.begin([100])
    large.begin([1 << 30, 1 << 30])
    assert not small.take(1 << 30)
    assert all(large.take(1 << 30) for _ in range(32))
    assert not large.take(1)


def test_it_is_that_of_the_model_for_all_graphs_made_of_it() -> None:
    graph = from_onnx(constant_chain(2, "Concat"))
    assert graph.empty_copy().fold_budget is graph.fold_budget
