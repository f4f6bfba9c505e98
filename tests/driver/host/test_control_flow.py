"""Branches and loops as regions, from models to results: compiled, replayed and interpreted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.helper import make_node as node
from tests.driver.host.ways import BOOL, F32, I64, Array, Info, Values, Ways, graph, model

from weft.driver.build import build
from weft.graph import Graph, print_graph, verify_graph
from weft.graph.core.saved_graph import graph_text, load_graph, save_graph
from weft.runtime import Model, load
from weft.support.errors import ModelError, RuntimeFailure, UnknownValues, VerifyError

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
STEP: tuple[Info, Info] = (("i", I64, []), ("go", BOOL, []))


def number(value: float, kind: type = np.float32) -> Array:
    return np.array(value, kind)


def body(
    nodes: Sequence[onnx.NodeProto], states: Sequence[Info], outputs: Sequence[Info], condition: str = ""
) -> onnx.GraphProto:
    """Returns a loop's body, which goes on for ever if there is no *condition*."""
    given = [] if condition else [node("Identity", ["go"], ["on"])]
    return graph([*nodes, *given], [*STEP, *states], [(condition or "on", BOOL, []), *outputs])


def branches() -> onnx.ModelProto:
    """A branch is taken: `x * w + x` or `x - 1`."""
    then = graph(
        [node("Mul", ["x", "w"], ["a"]), node("Add", ["a", "x"], ["t"])],
        [],
        [("t", F32, [2, 3])],
        {"w": np.array([2, 3, 4], np.float32)},
    )
    other = graph([node("Sub", ["x", "v"], ["e"])], [], [("e", F32, [2, 3])], {"v": np.array([1, 1, 1], np.float32)})
    return model(
        [node("If", ["c"], ["y"], then_branch=then, else_branch=other), node("Relu", ["y"], ["z"])],
        [("x", F32, [2, 3]), ("c", BOOL, [])],
        [("y", F32, [2, 3]), ("z", F32, [2, 3])],
    )


def test_one_branch_runs() -> None:
    ways = Ways(branches())
    ways.check({"x": X, "c": np.array(True)}, {"x": X, "c": np.array(False)})
    assert "if in1[0]:" in str(ways.made.host)


def test_branches_of_different_sizes() -> None:
    """Each branch tells the sizes of its results; one of them counts elements, which may be none."""
    then = graph([node("Concat", ["x", "x"], ["t"], axis=0)], [], [("t", F32, [4, 3])])
    other = graph([node("Compress", ["x", "m"], ["e"], axis=0)], [], [("e", F32, [None, 3])])
    ways = Ways(
        model(
            [node("If", ["c"], ["y"], then_branch=then, else_branch=other), node("Relu", ["y"], ["z"])],
            [("x", F32, [2, 3]), ("c", BOOL, []), ("m", BOOL, [2])],
            [("y", F32, [None, 3]), ("z", F32, [None, 3])],
        )
    )
    ways.check(
        {"x": X, "c": np.array(True), "m": np.array([True, True])},
        {"x": X, "c": np.array(False), "m": np.array([False, True])},
        {"x": X, "c": np.array(False), "m": np.array([False, False])},
    )


def test_of_branches_of_different_ranks_the_one_of_more_dimensions_is_compiled() -> None:
    then = graph([node("ReduceSum", ["x"], ["t"], keepdims=0)], [], [("t", F32, [])])
    other = graph(
        [node("ReduceSum", ["x", "first"], ["e"], keepdims=0)], [], [("e", F32, [3])], {"first": np.array([0])}
    )
    ways = Ways(
        model(
            [node("If", ["c"], ["y"], then_branch=then, else_branch=other), node("Relu", ["y"], ["z"])],
            [("x", F32, [2, 3]), ("c", BOOL, [])],
            [("z", F32, None)],  # type: ignore[list-item]
        )
    )
    ways.check({"x": X, "c": np.array(False)})
    with pytest.raises(RuntimeFailure, match=r"compiled for the one of more dimensions, which is not taken"):
        ways.models[0].run([X, np.array(True)])


def squeezed(size: int | str) -> onnx.ModelProto:
    """What PyTorch writes of `squeeze(-1)`, and a product of two dimensions behind it, inside of a branch of its own."""
    one = graph([node("Squeeze", ["x", "last"], ["t"])], [], [("t", F32, [2, 3])])
    several = graph([node("Identity", ["x"], ["e"])], [], [("e", F32, [2, 3, None])])
    inner = node("If", ["is_one"], ["v"], then_branch=one, else_branch=several)
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "last"], ["size"]),
        node("Equal", ["size", "one"], ["is_one"]),
        inner,
        node("Gemm", ["v", "w"], ["p"]),
    ]
    then = graph(nodes, [], [("p", F32, [2, 2])])
    other = graph([node("Flatten", ["x"], ["f"]), node("Gemm", ["f", "w"], ["q"])], [], [("q", F32, [2, 2])])
    weights = {"last": np.array([-1]), "one": np.array([1]), "w": np.arange(6, dtype=np.float32).reshape(3, 2)}
    return model(
        [node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
        [("x", F32, [2, 3, size]), ("c", BOOL, [])],
        [("y", F32, [2, 2])],
        weights,
    )


def test_a_branch_of_fewer_dimensions_is_compiled_where_later_nodes_take_no_other() -> None:
    ways = Ways(squeezed("n"))
    ways.check({"x": X[:, :, None], "c": np.array(True)}, {"x": X[:, :, None], "c": np.array(False)})
    with pytest.raises(RuntimeFailure, match="compiled for the one of fewer dimensions, which is not taken"):
        ways.models[0].run([np.stack([X, X], -1), np.array(True)])


def test_a_branch_that_does_not_fit_the_shapes_is_left_out() -> None:
    """Silero's network for speech has a branch for each sampling rate, of which a length of the input fits one."""
    then = graph([node("MatMul", ["x", "a"], ["t"])], [], [("t", F32, [2, 4])])
    other = graph([node("MatMul", ["x", "b"], ["e"])], [], [("e", F32, [2, 4])])
    weights = {"a": np.ones((3, 4), np.float32), "b": np.ones((5, 4), np.float32)}
    inputs = [("x", F32, [2, 3]), ("c", BOOL, [])]
    made = model([node("If", ["c"], ["y"], then_branch=then, else_branch=other)], inputs, [("y", F32, [2, 4])], weights)
    ways = Ways(made)
    ways.check({"x": X, "c": np.array(True)})
    with pytest.raises(
        RuntimeFailure, match=r"If y: its other branch, which is taken, could not be compiled: MatMul e: "
    ):
        ways.models[0].run([X, np.array(False)])


def test_branches_of_which_none_can_be_compiled_are_told() -> None:
    bad = graph([node("MatMul", ["x", "b"], ["e"])], [], [("e", F32, [2, 4])])
    made = model(
        [node("If", ["c"], ["y"], then_branch=bad, else_branch=bad)],
        [("x", F32, [2, 3]), ("c", BOOL, [])],
        [("y", F32, [2, 4])],
        {"b": np.ones((5, 4), np.float32)},
    )
    with pytest.raises(ModelError, match="MatMul e: "):
        Ways(made)


def test_results_of_one_element_are_the_same_in_any_number_of_dimensions() -> None:
    """PaddlePaddle's loops end by conditions that are bool[] in one branch and bool[1] in the other."""
    then = graph([node("ReduceSum", ["x"], ["t"], keepdims=0)], [], [("t", F32, [])])
    other = graph([node("ReduceMax", ["x"], ["m"]), node("Reshape", ["m", "one"], ["e"])], [], [("e", F32, [1])])
    made = model(
        [node("If", ["c"], ["y"], then_branch=then, else_branch=other), node("Add", ["x", "y"], ["z"])],
        [("x", F32, [2, 3]), ("c", BOOL, [])],
        [("z", F32, [2, 3])],
        {"one": np.array([1])},
    )
    Ways(made).check({"x": X, "c": np.array(True)}, {"x": X, "c": np.array(False)})


def adding(trips: Sequence[int | str | None]) -> onnx.ModelProto:
    """Adds `x` to a state as often as `m` says, and keeps the squares."""
    made = body(
        [node("Add", ["s", "x"], ["t"]), node("Mul", ["t", "t"], ["r"])],
        [("s", F32, [2, 3])],
        [("t", F32, [2, 3]), ("r", F32, [2, 3])],
    )
    return model(
        [node("Loop", ["m", "yes", "x"], ["y", "r"], body=made)],
        [("x", F32, [2, 3]), ("m", I64, [])],
        [("y", F32, [2, 3]), ("r", F32, [*trips, 2, 3])],
        {"yes": np.array(True)},
    )


def test_a_loop_of_a_number_that_is_computed() -> None:
    """The rows of all iterations are written where they belong in the result, whose size is known before the loop."""
    squares = [(X * (k + 2)) ** 2 for k in range(20)]
    feeds = [{"x": X, "m": np.array(m)} for m in (1, 20, 0)]
    Ways(adding([None])).check(
        *feeds, wanted=[[X * (m + 1), np.array(squares[:m], np.float32).reshape(m, 2, 3)] for m in (1, 20, 0)]
    )


def test_operators_of_a_body_are_one_kernel() -> None:
    """Those that are fused outside of regions are fused inside, and an iteration calls the kernel that is left alone."""
    made = body(
        [
            node("Add", ["s", "x"], ["a"]),
            node("Tanh", ["a"], ["b"]),
            node("Mul", ["b", "x"], ["c"]),
            node("Neg", ["c"], ["t"]),
        ],
        [("s", F32, [2, 3])],
        [("t", F32, [2, 3])],
    )
    ways = Ways(
        model(
            [node("Loop", ["m", "yes", "x"], ["y"], body=made)],
            [("x", F32, [2, 3]), ("m", I64, [])],
            [("y", F32, [2, 3])],
            {"yes": np.array(True)},
        )
    )
    ways.check({"x": X, "m": np.array(3)})
    (main, *_) = str(ways.made.host).split("@function(external")
    (_, loop) = main.split("while ")
    called = [line.strip() for line in loop.splitlines() if ".at(0)" in line and "copy" not in line]
    assert [c.split("(")[0] for c in called] == ["add_tanh_mul_neg", "identity"]  # the second tells that it goes on


def test_a_loop_until_a_condition_fails() -> None:
    """Only the loop tells how many rows there are: their memory grows, and keeps what is in it."""
    made = body(
        [
            node("Add", ["s", "s"], ["t"]),
            node("ReduceMax", ["t"], ["most"], keepdims=0),
            node("Less", ["most", "limit"], ["more"]),
            node("ReduceSum", ["t"], ["r"], keepdims=0),
        ],
        [("s", F32, [2, 3])],
        [("t", F32, [2, 3]), ("r", F32, [])],
        "more",
    )
    ways = Ways(
        model(
            [node("Loop", ["", "c", "x"], ["y", "r"], body=made)],
            [("x", F32, [2, 3]), ("c", BOOL, []), ("limit", F32, [])],
            [("y", F32, [2, 3]), ("r", F32, [None])],
        )
    )
    feeds: list[Values] = [
        {"x": X, "c": np.array(c), "limit": number(n)} for c, n in ((True, 1e4), (True, 0), (False, 9))
    ]
    times = [12, 1, 0]
    rows = [np.array([X.sum() * 2 ** (k + 1) for k in range(n)], np.float32) for n in times]
    ways.check(*feeds, wanted=[[X * np.float32(2**n), r] for n, r in zip(times, rows, strict=True)])


def test_a_state_that_grows() -> None:
    made = body([node("Concat", ["s", "x"], ["t"], axis=0)], [("s", F32, [None, 3])], [("t", F32, [None, 3])])
    ways = Ways(
        model(
            [node("Loop", ["m", "yes", "x"], ["y"], body=made), node("Relu", ["y"], ["z"])],
            [("x", F32, [2, 3]), ("m", I64, [])],
            [("y", F32, [None, 3]), ("z", F32, [None, 3])],
            {"yes": np.array(True)},
        )
    )
    whole = [np.tile(X, (m + 1, 1)) for m in (1, 17, 0)]
    feeds = [{"x": X, "m": np.array(m)} for m in (1, 17, 0)]
    ways.check(*feeds, wanted=[[w, np.maximum(w, 0)] for w in whole])


def widened_by(limit: float | None, trips: int | None) -> onnx.ModelProto:
    """A loop whose first state is one number, and after an iteration a matrix; it stops at a *limit* of the sum, if any."""
    nodes = [
        node("Add", ["s", "x"], ["t"]),
        node("Cast", ["i"], ["f"], to=F32),
        node("Mul", ["t", "f"], ["r"]),
        node("ReduceSum", ["t"], ["sum"], keepdims=0),
        node("Less", ["sum", "limit"], ["go_on"]),
    ]
    if limit is None:
        nodes[-1] = node("Identity", ["go"], ["go_on"])
    made = graph(
        nodes,
        [("i", I64, []), ("go", BOOL, []), ("s", F32, None)],  # type: ignore[list-item]
        [("go_on", BOOL, []), ("t", F32, [2, 3]), ("r", F32, [2, 3])],
    )
    most = "" if trips is None else "trips"
    return model(
        [node("Loop", [most, "yes", "zero"], ["y", "r"], body=made)],
        [("x", F32, [2, 3])],
        [("y", F32, [2, 3]), ("r", F32, [None, 2, 3])],
        {
            "yes": np.array(True),
            "zero": np.float32(0.5),
            "limit": np.float32(limit or 0),
            **({} if trips is None else {"trips": np.array(trips)}),
        },
    )


@pytest.mark.parametrize(("limit", "trips"), [(40.0, None), (40.0, 30), (-1e9, None), (None, 70)], ids=str)
def test_a_state_that_has_its_dimensions_after_an_iteration(limit: float | None, trips: int | None) -> None:
    """Its first iteration is written out, and the loop goes on with the others, if any."""
    x, rows = np.abs(X), list[Array]()
    state: Array = np.float32(0.5) + x
    while True:
        rows.append(state * np.float32(len(rows)))
        if len(rows) == trips or (limit is not None and state.sum() >= limit):
            break
        state = state + x
    Ways(widened_by(limit, trips)).check({"x": x}, wanted=[[state, np.array(rows)]])


def test_a_state_of_more_dimensions_after_each_iteration_is_refused() -> None:
    made = body(
        [node("Unsqueeze", ["s", "front"], ["t"])],
        [("s", F32, None)],  # type: ignore[list-item]
        [("t", F32, None)],  # type: ignore[list-item]
    )
    grows = model(
        [node("Loop", ["trips", "yes", "x"], ["y"], body=made)],
        [("x", F32, [2, 3])],
        [("y", F32, None)],  # type: ignore[list-item]
        {"yes": np.array(True), "trips": np.array(1000), "front": np.array([0])},
    )
    with pytest.raises(UnknownValues, match="type and rank must stay"):
        Ways(grows)


@pytest.mark.parametrize("length", [40, "t"])
def test_a_scan_of_a_long_sequence(length: int | str) -> None:
    """One body for all steps; a second output is written backwards."""
    made = graph(
        [node("Add", ["s", "e"], ["t"]), node("Identity", ["t"], ["r"]), node("Neg", ["e"], ["q"])],
        [("s", F32, [3]), ("e", F32, [3])],
        [("t", F32, [3]), ("r", F32, [3]), ("q", F32, [3])],
    )
    scan = node("Scan", ["s0", "xs"], ["y", "r", "q"], body=made, num_scan_inputs=1, scan_output_directions=[0, 1])
    ways = Ways(
        model(
            [scan],
            [("s0", F32, [3]), ("xs", F32, [length, 3])],
            [("y", F32, [3]), ("r", F32, [length, 3]), ("q", F32, [length, 3])],
        )
    )
    xs = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
    sums = np.cumsum(np.concatenate([X[:1], xs]), axis=0, dtype=np.float32)[1:]
    ways.check({"s0": X[0], "xs": xs}, wanted=[[sums[-1], sums, -xs[::-1]]])


def nested() -> onnx.ModelProto:
    """A loop and a branch inside of a loop: they use values of all graphs around."""
    inner = graph(
        [node("Add", ["q", "s"], ["q1"]), node("Identity", ["cj"], ["dj"])],
        [("j", I64, []), ("cj", BOOL, []), ("q", F32, [2, 3])],
        [("dj", BOOL, []), ("q1", F32, [2, 3])],
    )
    then = graph([node("Mul", ["p", "x"], ["tt"])], [], [("tt", F32, [2, 3])])
    other = graph([node("Identity", ["p"], ["ee"])], [], [("ee", F32, [2, 3])])
    made = body(
        [
            node("Loop", ["n", "yes", "s"], ["p"], body=inner),
            node("ReduceSum", ["p"], ["sum"], keepdims=0),
            node("Less", ["sum", "limit"], ["small"]),
            node("If", ["small"], ["t"], then_branch=then, else_branch=other),
        ],
        [("s", F32, [2, 3])],
        [("t", F32, [2, 3])],
    )
    return model(
        [node("Loop", ["m", "yes", "x"], ["y"], body=made)],
        [("x", F32, [2, 3]), ("m", I64, []), ("n", I64, []), ("limit", F32, [])],
        [("y", F32, [2, 3])],
        {"yes": np.array(True)},
    )


def test_regions_inside_of_regions() -> None:
    def computed(m: int, n: int, limit: float) -> Array:
        s = X
        for _ in range(m):
            p = s * np.float32(n + 1)
            s = p * X if p.sum() < limit else p
        return s

    cases = [(1, 1, 0.0), (3, 2, 50.0), (2, 0, -5.0)]
    feeds = [{"x": X, "m": np.array(m), "n": np.array(n), "limit": number(limit)} for m, n, limit in cases]
    Ways(nested()).check(*feeds, wanted=[[computed(*case)] for case in cases])


def test_the_graph_is_printed_saved_and_verified(tmp_path: Path) -> None:
    source = build(nested()).source
    verify_graph(source)
    text = print_graph(source)
    assert "  graph body(step: i64[], state0: f32[2, 3]" in text
    assert "    graph then(p: f32[2, 3]" in text or "    graph then(loop: f32[2, 3]" in text
    save_graph(source, tmp_path / "g.npz", {})
    again, _ = load_graph(tmp_path / "g.npz")
    verify_graph(again)
    assert graph_text(again) == graph_text(source)


def test_a_region_that_uses_what_it_is_not_given_is_refused() -> None:
    source = build(branches()).source
    branch = next(n for n in source.nodes if n.op == "if")
    region = branch.attribute("then")
    assert isinstance(region, Graph)
    lost = region.nodes[0].inputs[0]
    region.inputs = [v for v in region.inputs if v is not lost]
    with pytest.raises(VerifyError):
        verify_graph(source)


def test_saved_and_loaded(tmp_path: Path) -> None:
    made = Model(build(adding([None])).package)
    made.save(tmp_path / "loop.weft")
    again = load(tmp_path / "loop.weft", threads=1)
    for a, b in zip(again(X, np.array(5)), made(X, np.array(5)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_indices_inside_of_a_loop_are_checked() -> None:
    """The message is that of the node, from whatever iteration."""
    picked = body(
        [node("Gather", ["w", "i"], ["row"]), node("Add", ["s", "row"], ["t"])], [("s", F32, [3])], [("t", F32, [3])]
    )
    loop = Model(
        build(
            model(
                [node("Loop", ["m", "yes", "s0"], ["y"], body=picked)],
                [("w", F32, [4, 3]), ("s0", F32, [3]), ("m", I64, [])],
                [("y", F32, [3])],
                {"yes": np.array(True)},
            )
        ).package
    )
    w = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(loop(w, X[0], np.array(4)), X[0] + w.sum(axis=0))
    with pytest.raises(RuntimeFailure, match=r"Gather row: index 4 is outside of -4 to 3"):
        loop(w, X[0], np.array(6))


def test_states_whose_rank_changes_are_refused() -> None:
    made = body([node("Unsqueeze", ["s", "zero"], ["t"])], [("s", F32, None)], [("t", F32, None)])  # type: ignore[list-item]
    proto = model(
        [node("Loop", ["m", "yes", "x"], ["y"], body=made)],
        [("x", F32, [2, 3]), ("m", I64, [])],
        [("y", F32, None)],  # type: ignore[list-item]
        {"yes": np.array(True), "zero": np.array([0])},
    )
    with pytest.raises(UnknownValues, match="type and rank must stay"):
        build(proto)


def test_a_state_that_begins_with_nothing() -> None:
    """As exporters write lists: kernels of the first iteration are those for a size of zero."""
    made = body([node("Concat", ["s", "x"], ["t"], axis=0)], [("s", F32, [None, 3])], [("t", F32, [None, 3])])
    ways = Ways(
        model(
            [node("Loop", ["m", "yes", "none"], ["y"], body=made)],
            [("x", F32, [2, 3]), ("m", I64, [])],
            [("y", F32, [None, 3])],
            {"yes": np.array(True), "none": np.zeros((0, 3), np.float32)},
        )
    )
    ways.check(*[{"x": X, "m": np.array(m)} for m in (3, 0)], wanted=[[np.tile(X, (m, 1))] for m in (3, 0)])


def test_greedy_decoding() -> None:
    """A loop that appends the likeliest word, until that is the last word or there are enough."""
    nodes = [
        node("Gather", ["w", "last"], ["row"], axis=0),
        node("ArgMax", ["row"], ["next"], axis=1, keepdims=1),
        node("Concat", ["ids", "next"], ["more"], axis=1),
        node("Equal", ["next", "end"], ["ends"]),
        node("Not", ["ends"], ["goes"]),
        node("Squeeze", ["goes"], ["go_on"]),
        node("Reshape", ["next", "one"], ["word"]),
    ]
    made = body(
        nodes, [("ids", I64, [1, None]), ("last", I64, [1])], [("more", I64, [1, None]), ("word", I64, [1])], "go_on"
    )
    ways = Ways(
        model(
            [node("Loop", ["m", "yes", "ids0", "last0"], ["ids", "word"], body=made)],
            [("w", F32, [5, 5]), ("ids0", I64, [1, "t"]), ("last0", I64, [1]), ("m", I64, [])],
            [("ids", I64, [1, None])],
            {"yes": np.array(True), "end": np.array([[4]]), "one": np.array([1])},
        )
    )
    feed = {"w": np.eye(5, dtype=np.float32)[[1, 2, 3, 4, 0]], "ids0": np.array([[7, 0]]), "last0": np.array([0])}
    feeds = [{**feed, "m": np.array(m)} for m in (100, 2)]
    ways.check(*feeds, wanted=[[np.array([[7, 0, 1, 2, 3, 4]])], [np.array([[7, 0, 1, 2]])]])
