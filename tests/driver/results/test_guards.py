"""Indices outside of what they choose from: the model says which, of which node, and what would be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import weft
from weft.driver.measure.profile import Profiler

Shape = Sequence[int | str]
Array = np.ndarray[Any, np.dtype[Any]]
F, I = TensorProto.FLOAT, TensorProto.INT64  # noqa: E741
rng = np.random.default_rng(0)


def model(
    op: str, inputs: Mapping[str, tuple[int, Shape]], constants: Mapping[str, Array] | None = None, **attributes: Any
) -> onnx.ModelProto:
    known = constants or {}
    node = helper.make_node(op, [*inputs, *known], ["y"], name=f"/part/{op}", **attributes)
    given = [helper.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()]
    graph = helper.make_graph(
        [node],
        "net",
        given,
        [helper.make_tensor_value_info("y", F, None)],
        [numpy_helper.from_array(a, n) for n, a in known.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)


X = rng.standard_normal((4, 3)).astype(np.float32)
CACHE, NEW = np.zeros((1, 1, 4, 2), np.float32), np.ones((1, 1, 2, 2), np.float32)
CASES: dict[str, tuple[onnx.ModelProto, Sequence[Array], Sequence[Array], str]] = {
    "Gather": (
        model("Gather", {"x": (F, [4, 3]), "i": (I, [2, 1])}),
        [X, np.array([[3], [-4]])],
        [X, np.array([[0], [999999]])],
        "Gather /part/Gather: index 999999 is outside of -4 to 3",
    ),
    "of 32 bits": (
        model("Gather", {"x": (F, [4, 3]), "i": (TensorProto.INT32, [2])}),
        [X, np.array([3, -4], np.int32)],
        [X, np.array([0, -5], np.int32)],
        "Gather /part/Gather: index -5 is outside of -4 to 3",
    ),
    "a scalar": (
        model("Gather", {"x": (F, [4, 3]), "i": (I, [])}, axis=1),
        [X, np.array(2)],
        [X, np.array(3)],
        "Gather /part/Gather: index 3 is outside of -3 to 2",
    ),
    "symbolic sizes": (
        model("Gather", {"x": (F, ["rows", 3]), "i": (I, ["n"])}),
        [X, np.array([3, -4])],
        [X[:2], np.array([3, -4])],
        "Gather /part/Gather: index -4 is outside of -2 to 1",
    ),
    "GatherElements": (
        model("GatherElements", {"x": (F, [4, 3]), "i": (I, [4, 2])}, axis=1),
        [X, np.array([[0, 2], [-3, 1], [2, 2], [0, 0]])],
        [X, np.array([[0, 2], [-3, 1], [2, 3], [0, 0]])],
        "GatherElements /part/GatherElements: index 3 is outside of -3 to 2",
    ),
    "GatherND": (
        model("GatherND", {"x": (F, [4, 3]), "i": (I, [2, 2])}),
        [X, np.array([[3, 2], [-4, -3]])],
        [X, np.array([[2, 2], [2, 3]])],
        "GatherND /part/GatherND: index 3 is outside of -3 to 2",
    ),
    "ScatterElements": (
        model("ScatterElements", {"x": (F, [4, 3]), "i": (I, [1, 3]), "u": (F, [1, 3])}),
        [X, np.array([[3, -4, 0]]), X[:1]],
        [X, np.array([[3, 4, 0]]), X[:1]],
        "ScatterElements /part/ScatterElements: index 4 is outside of -4 to 3",
    ),
    "ScatterND": (
        model("ScatterND", {"x": (F, [4, 3]), "i": (I, [2, 1]), "u": (F, [2, 3])}),
        [X, np.array([[3], [0]]), X[:2]],
        [X, np.array([[3], [-7]]), X[:2]],
        "ScatterND /part/ScatterND: index -7 is outside of -4 to 3",
    ),
    "ReverseSequence": (
        model("ReverseSequence", {"x": (F, [4, 3]), "n": (I, [3])}),
        [X, np.array([4, 1, 0])],
        [X, np.array([4, 5, 0])],
        "ReverseSequence /part/ReverseSequence: length 5 is outside of 0 to 4",
    ),
    "TensorScatter": (
        model("TensorScatter", {"x": (F, [1, 1, 4, 2]), "u": (F, [1, 1, 2, 2]), "at": (I, [1])}),
        [CACHE, NEW, np.array([2])],
        [CACHE, NEW, np.array([3])],
        "TensorScatter /part/TensorScatter: position 3 is outside of 0 to 2",
    ),
}
FEW = ("Gather", "symbolic sizes", "ScatterND", "ReverseSequence", "TensorScatter")
"""Of each message one, and of the operators whose code is made differently."""


@pytest.mark.parametrize("name", [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_an_index_outside_is_an_error(name: str) -> None:
    made, right, wrong, message = CASES[name]
    compiled = weft.compile(made)
    before = compiled(*right)
    with pytest.raises(weft.RuntimeFailure) as stopped:
        compiled(*wrong)
    assert str(stopped.value) == f"the model stopped while it ran: {message}\n  hint: check the values of its inputs"
    np.testing.assert_array_equal(compiled(*right), before)  # a call that failed leaves nothing behind


@pytest.mark.sampled(1)
@pytest.mark.parametrize("options", [{"opt_level": 0}, {"opt_level": 1}, {"opt_level": 3}, {"precision": "strict"}])
def test_it_is_at_every_level(options: dict[str, Any]) -> None:
    made, right, wrong, message = CASES["Gather"]
    compiled = weft.compile(made, **options)
    np.testing.assert_array_equal(compiled(*right), X[[3, -4]][:, None])
    with pytest.raises(weft.RuntimeFailure, match=message):
        compiled(*wrong)


def test_a_saved_model_checks_too(tmp_path: Path) -> None:
    made, right, wrong, message = CASES["symbolic sizes"]
    weft.compile(made).save(tmp_path / "model.weft")
    loaded = weft.load(tmp_path / "model.weft")
    np.testing.assert_array_equal(loaded(*right), X[[3, -4]])
    with pytest.raises(weft.RuntimeFailure, match=message):
        loaded(*wrong)


def test_a_known_index_outside_is_refused() -> None:
    with pytest.raises(weft.ModelError) as refused:
        weft.compile(model("Gather", {"x": (F, [4, 3])}, {"i": np.array([1, 7])}))
    assert str(refused.value) == (
        "Gather /part/Gather: index 7 is outside of -4 to 3\n"
        "  hint: the model holds this value: change what it indexes, or export the model again"
    )


def test_a_known_index_into_a_symbolic_size_is_checked_when_the_size_is_known() -> None:
    compiled = weft.compile(model("Gather", {"x": (F, ["rows", 3])}, {"i": np.array([2])}))
    np.testing.assert_array_equal(compiled(X), X[[2]])
    with pytest.raises(weft.InputError, match="Gather /part/Gather: index 2 is outside of -2 to 1"):
        compiled(X[:2])


def test_the_branch_that_is_not_taken_checks_nothing() -> None:
    taken = helper.make_node("Gather", ["x", "i"], ["a"], name="/then/Gather")
    other = helper.make_node("Neg", ["z"], ["b"], name="/else/Neg")
    branches = {
        f"{n}_branch": helper.make_graph([node], n, [], [helper.make_tensor_value_info(node.output[0], F, [2, 3])])
        for n, node in (("then", taken), ("else", other))
    }
    if_ = helper.make_node("If", ["c"], ["y"], name="/if", **branches)
    given = [("c", TensorProto.BOOL, []), ("x", F, [4, 3]), ("i", I, [2]), ("z", F, [2, 3])]
    graph = helper.make_graph(
        [if_],
        "net",
        [helper.make_tensor_value_info(*g) for g in given],
        [helper.make_tensor_value_info("y", F, [2, 3])],
    )
    compiled = weft.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10))
    yes, no, outside, z = np.array(True), np.array(False), np.array([0, 4]), X[:2]
    np.testing.assert_array_equal(compiled(no, X, outside, z), -z)
    with pytest.raises(weft.RuntimeFailure, match="Gather /then/Gather: index 4 is outside of -4 to 3"):
        compiled(yes, X, outside, z)


def test_a_node_s_name_may_hold_braces() -> None:
    made = model("Gather", {"x": (F, [4, 3]), "i": (I, [1])})
    made.graph.node[0].name = "{0}{x}"
    with pytest.raises(weft.RuntimeFailure, match=r"Gather \{0\}\{x\}: index 4 is outside of -4 to 3"):
        weft.compile(made)(X, np.array([4]))


@pytest.mark.parametrize(("name", "kernels"), [("Gather", 1), ("ScatterElements", 1), ("ReverseSequence", 2)])
def test_kernels_are_timed_without_the_checks_between_them(name: str, kernels: int) -> None:
    """The kernel that looks for the index belongs to each call, unless the one that uses it tells when it is needed."""
    made, right, _, _ = CASES[name]
    compilation = weft.build(made)
    profiler = Profiler(compilation, dict(zip([v.name for v in compilation.source.inputs], right, strict=True)))
    assert len(profiler.measure(0.01).kernels) == len(compilation.fused.calls) == kernels
    assert len(compilation.fused.groups) == 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("wrong", [0, 54_321, 99_999])
def test_one_of_many_is_found_whatever_thread_meets_it(wrong: int) -> None:
    compiled = weft.compile(model("GatherND", {"x": (F, [300, 7]), "i": (I, [100_000, 2])}), threads=2)
    x, i = rng.standard_normal((300, 7)).astype(np.float32), rng.integers(0, 7, (100_000, 2))
    right = compiled(x, i)
    np.testing.assert_array_equal(right, x[i[:, 0], i[:, 1]])
    i[wrong, 1] = -8
    with pytest.raises(weft.RuntimeFailure, match="index -8 is outside of -7 to 6"):
        compiled(x, i)
    i[wrong, 1] = -7
    compiled(x, i)


def test_of_several_in_one_kernel_the_right_one_is_named() -> None:
    """The indices of the second are computed, and what is found of the first does not lie where the second's is then."""
    nodes = [
        helper.make_node("Abs", ["j"], ["k"]),
        helper.make_node("Gather", ["x", "i"], ["a"], name="/first"),
        helper.make_node("Gather", ["x", "k"], ["b"], name="/second"),
        helper.make_node("Mul", ["a", "b"], ["c"]),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Softmax", ["d"], ["y"]),
    ]
    given = [helper.make_tensor_value_info(*g) for g in (("x", F, [4, 3]), ("i", I, [5]), ("j", I, [5]))]
    graph = helper.make_graph(nodes, "net", given, [helper.make_tensor_value_info("y", F, [5, 3])])
    compiled = weft.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10))
    inside, outside = np.array([0, 1, 2, 3, 0]), np.array([0, 1, -9, 3, 0])
    assert np.sum(compiled(X, inside, -inside)) == pytest.approx(5)
    with pytest.raises(weft.RuntimeFailure, match="Gather /first: index -9 is outside of -4 to 3"):
        compiled(X, outside, inside)
    with pytest.raises(weft.RuntimeFailure, match="Gather /second: index 9 is outside of -4 to 3"):
        compiled(X, inside, outside)


def test_indices_that_gather_and_scatter_are_searched_once() -> None:
    nodes = [
        helper.make_node("GatherElements", ["x", "i"], ["a"], name="/read"),
        helper.make_node("ScatterElements", ["x", "i", "a"], ["y"], name="/write"),
    ]
    given = [helper.make_tensor_value_info(*g) for g in (("x", F, [4, 3]), ("i", I, [2, 3]))]
    graph = helper.make_graph(nodes, "net", given, [helper.make_tensor_value_info("y", F, [4, 3])])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    fused = weft.build(made).fused
    assert len(fused.groups) == 3
    assert fused.on_demand == {fused.groups[-1]}
    compiled = weft.compile(made)
    i = np.array([[0, 1, -1], [3, 3, 0]])
    np.testing.assert_array_equal(compiled(X, i), X)
    with pytest.raises(weft.RuntimeFailure, match="/read: index 4 is outside of -4 to 3"):
        compiled(X, i + 1)
