"""States of loops that grow at their ends: an iteration makes the new rows alone, and moves no others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx.helper import make_node as node
from tests.driver.host.test_control_flow import body
from tests.driver.host.ways import F32, I64, Array, Ways, model
from tests.host_programs import interpret_model

from weft.codegen.interp import machine
from weft.driver.build import Compilation
from weft.driver.checking.reference import run_graph
from weft.graph.regions.region_operators import LOOP, appends_of
from weft.loop import COPY

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
CASES = {
    "one row": [node("Concat", ["s", "x"], ["t"], axis=0)],
    "several, one after another": [
        node("Concat", ["s", "x", "x"], ["r"], axis=0),
        node("Exp", ["x"], ["e"]),
        node("Concat", ["r", "e"], ["t"], axis=0),
    ],
    "rows of the state itself": [node("Concat", ["s", "s"], ["t"], axis=0)],
    "rows that are computed from all before": [
        node("ReduceMax", ["s"], ["most"], keepdims=1),
        node("Add", ["x", "most"], ["row"]),
        node("Concat", ["s", "row"], ["t"], axis=0),
    ],
    "a result that is read": [
        node("Concat", ["s", "x"], ["t"], axis=0),
        node("ReduceSum", ["t"], ["all"], keepdims=0),
        node("Less", ["all", "limit"], ["below"]),
    ],
    "as many rows as iterations": [
        node("Reshape", ["i", "one"], ["times"]),
        node("Concat", ["times", "one"], ["repeats"], axis=0),
        node("Tile", ["x", "repeats"], ["rows"]),
        node("Concat", ["s", "rows"], ["t"], axis=0),
    ],
}


def growing(nodes: Sequence[onnx.NodeProto], shape: Sequence[int | None] = (None, 3)) -> onnx.ModelProto:
    """Returns a loop of *m* iterations whose state is *x* at first."""
    condition = "below" if any("below" in n.output for n in nodes) else ""
    made = body(nodes, [("s", F32, shape)], [("t", F32, shape)], condition)
    given = [2 if n is None else n for n in shape]
    constants = {"yes": np.array(True), "limit": np.array(1e3, np.float32), "one": np.array([1])}
    loop = node("Loop", ["m", "yes", "x"], ["y"], body=made)
    return model([loop], [("x", F32, given), ("m", I64, [])], [("y", F32, shape)], constants)


def appended(made: Compilation) -> list[int]:
    """Returns the states that loops append to."""
    return [k for n in made.fused.graph.nodes if n.operator is LOOP for k in appends_of(n)]


@pytest.mark.parametrize("case", CASES)
def test_rows_are_put_behind_those_before(case: str) -> None:
    ways = Ways(growing(CASES[case]))
    feeds = [{"x": X, "m": np.array(m)} for m in (1, 6, 0)]
    ways.check(*feeds)
    assert appended(ways.made) == [0]
    for feed in feeds:
        (before,), (after,) = run_graph(ways.made.source, feed), run_graph(ways.made.fused.graph, feed)
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(("shape", "axis"), [((1, None, 3), 1), ((1, None, 3), -2)])
def test_dimensions_of_one_element_are_before_that_which_grows(shape: tuple[int | None, ...], axis: int) -> None:
    ways = Ways(growing([node("Concat", ["s", "x"], ["t"], axis=axis)], shape))
    assert appended(ways.made) == [0]
    ways.check(*[{"x": X[None], "m": np.array(m)} for m in (0, 5)])


@pytest.mark.parametrize(
    ("given", "shape", "axis"), [(("x", "s"), (None, 3), 0), (("s", "x"), (2, None), 1), (("x", "x"), (None, 3), 0)]
)
def test_others_are_made_anew(given: tuple[str, str], shape: tuple[int | None, ...], axis: int) -> None:
    ways = Ways(growing([node("Concat", given, ["t"], axis=axis)], shape))
    assert appended(ways.made) == []
    x = X if shape[1] else X[:, :2]
    ways.check(*[{"x": x, "m": np.array(m)} for m in (0, 5)])


def test_states_that_change_places_are_made_anew() -> None:
    nodes = [node("Concat", ["s", "x"], ["u"], axis=0), node("Concat", ["r", "x"], ["t"], axis=0)]
    rows = [None, 3]
    made = body(nodes, [("s", F32, rows), ("r", F32, rows)], [("t", F32, rows), ("u", F32, rows)])
    loop = node("Loop", ["m", "yes", "x", "z"], ["y", "w"], body=made)
    inputs = [("x", F32, [2, 3]), ("z", F32, [1, 3]), ("m", I64, [])]
    ways = Ways(model([loop], inputs, [("y", F32, rows), ("w", F32, rows)], {"yes": np.array(True)}))
    assert appended(ways.made) == []
    ways.check(*[{"x": X, "z": X[:1] * 3, "m": np.array(m)} for m in (0, 1, 4)])


def moved_by(ways: Ways, feed: dict[str, Array], patch: pytest.MonkeyPatch) -> int:
    """Returns how many elements the host program of a call copies, kernels aside."""
    copies: list[int] = []
    plain = machine._LIBRARY[COPY]

    def counting(to: object, source: object, count: int) -> None:
        copies.append(count)
        plain(to, source, count)

    with patch.context() as p:
        p.setitem(machine._LIBRARY, COPY, counting)
        interpret_model(ways.program, ways.made, feed)
    return sum(copies)


def test_elements_are_moved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One copy of each row to the end of the state; the first value and the last are copied besides, and sizes."""
    ways = Ways(growing(CASES["one row"]))
    few, many = (moved_by(ways, {"x": X, "m": np.array(m)}, monkeypatch) for m in (40, 80))
    assert many - few == 40 * X.size
    (loop,) = [g for g in ways.made.fused.groups if g.regions]
    state = loop.regions[0].graph.inputs[1]
    assert all(state not in g.inputs for g in loop.regions[0].groups)  # no kernel makes all of it


def inserting(nodes: Sequence[onnx.NodeProto], **constants: object) -> onnx.ModelProto:
    """Returns a loop that begins with an empty sequence *before*, and makes *after* with *row* in it."""
    sequence = onnx.helper.make_sequence_type_proto(onnx.helper.make_tensor_type_proto(F32, [3]))
    made = body([node("Identity", ["i"], ["k"]), *nodes], [], [])
    made.input.append(onnx.helper.make_value_info("before", sequence))
    made.output.append(onnx.helper.make_value_info("after", sequence))
    outer = [
        node("SequenceEmpty", [], ["empty"]),
        node("Loop", ["m", "yes", "empty"], ["all"], body=made),
        node("ConcatFromSequence", ["all"], ["y"], axis=0, new_axis=1),
    ]
    inputs = [("x", F32, [2, 3]), ("m", I64, [])]
    return model(outer, inputs, [("y", F32, [None, 3])], {"yes": np.array(True), **constants})


ROW = [
    node("Mod", ["k", "two"], ["place"]),
    node("Gather", ["x", "place"], ["r"], axis=0),
    node("CastLike", ["k", "r"], ["f"]),
    node("Mul", ["r", "f"], ["row"]),
]


def test_insertions_at_the_end_of_a_sequence_move_one_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = Ways(inserting([*ROW, node("SequenceInsert", ["before", "row"], ["after"])], two=np.array(2)))
    ways.check(*[{"x": X, "m": np.array(m)} for m in (1, 20)])
    few, many = (moved_by(ways, {"x": X, "m": np.array(m)}, monkeypatch) for m in (40, 80))
    assert many - few == 40 * (3 + 2)  # three elements, and a row of shapes


def branches(then: Sequence[onnx.NodeProto], other: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Returns a branch that is taken in each third iteration: *then*, which makes `t1`, else *other*, which makes `t2`."""
    made = [
        onnx.helper.make_graph(nodes, name, [], [onnx.helper.make_empty_tensor_value_info(name)])
        for nodes, name in ((then, "t1"), (other, "t2"))
    ]
    condition = [node("Mod", ["i", "three"], ["third"]), node("Equal", ["third", "two"], ["c"])]
    return [*condition, node("If", ["c"], ["t"], then_branch=made[0], else_branch=made[1])]


INNER = branches([node("Concat", ["s", "x"], ["t1"], axis=0)], [node("Identity", ["s"], ["t2"])])
SOMETIMES = {
    "nothing": INNER,
    "other rows": branches(
        [node("Concat", ["s", "x", "x"], ["t1"], axis=0)],
        [node("Exp", ["x"], ["e"]), node("Concat", ["s", "e"], ["t2"], axis=0)],
    ),
    "more behind": [
        node("Concat", ["s", "x"], ["before"], axis=0),
        *branches([node("Concat", ["before", "x"], ["t1"], axis=0)], [node("Identity", ["before"], ["t2"])]),
    ],
}


@pytest.mark.parametrize("case", SOMETIMES)
def test_branches_that_append_sometimes(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = growing(SOMETIMES[case])
    for name, value in (("two", 2), ("three", 3)):
        made.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value), name))
    ways = Ways(made)
    ways.check(*[{"x": X, "m": np.array(m)} for m in (0, 1, 3, 10)])
    assert appended(ways.made) == [0]
    few, many = (moved_by(ways, {"x": X, "m": np.array(m)}, monkeypatch) for m in (30, 60))
    rows = {"nothing": 10, "other rows": 40, "more behind": 40}[case]
    assert many - few == rows * X.size
    for feed in ({"x": X, "m": np.array(m)} for m in (0, 7)):
        (before,), (after,) = run_graph(ways.made.source, feed), run_graph(ways.made.fused.graph, feed)
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    "other",
    [[node("Identity", ["x"], ["t2"])], [node("Concat", ["x", "s"], ["t2"], axis=0)]],
    ids=["another state", "rows before it"],
)
def test_branches_that_do_not_append_are_made_anew(other: list[onnx.NodeProto]) -> None:
    made = growing(branches([node("Concat", ["s", "x"], ["t1"], axis=0)], other))
    for name, value in (("two", 2), ("three", 3)):
        made.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value), name))
    ways = Ways(made)
    assert appended(ways.made) == []
    ways.check(*[{"x": X, "m": np.array(m)} for m in (0, 5)])


def test_a_sequence_that_some_iterations_insert_into(monkeypatch: pytest.MonkeyPatch) -> None:
    sequence = onnx.helper.make_sequence_type_proto(onnx.helper.make_tensor_type_proto(F32, [3]))
    then, other = (
        onnx.helper.make_graph([n], name, [], [onnx.helper.make_value_info(name, sequence)])
        for n, name in (
            (node("SequenceInsert", ["before", "row"], ["t1"]), "t1"),
            (node("Identity", ["before"], ["t2"]), "t2"),
        )
    )
    even = [node("Equal", ["place", "zero"], ["even"])]
    body_ = [*ROW, *even, node("If", ["even"], ["after"], then_branch=then, else_branch=other)]
    ways = Ways(inserting(body_, two=np.array(2), zero=np.array(0)))
    ways.check(*[{"x": X, "m": np.array(m)} for m in (1, 20)])
    few, many = (moved_by(ways, {"x": X, "m": np.array(m)}, monkeypatch) for m in (40, 80))
    assert many - few == 20 * (3 + 2)


def test_a_condition_is_read_from_what_was_appended() -> None:
    ways = Ways(growing(CASES["a result that is read"]))
    y = ways.run({"x": np.full((2, 3), 50, np.float32), "m": np.array(30)})[0]
    assert y.shape == (2 * 4, 3)


def around(nodes: Sequence[onnx.NodeProto], state: str = "s", depth: int = 0) -> list[onnx.NodeProto]:
    """Returns a loop of *k* iterations of *nodes*, which make `t` of `s`: the state of the loop around, called *state* there."""
    made = body(nodes, [("s", F32, [None, 3])], [("t", F32, [None, 3])])
    made.input[0].name, made.input[1].name, made.input[2].name = f"j{depth}", f"go{depth}", f"s{depth}"
    for n in made.node:
        n.input[:] = [{"s": f"s{depth}", "go": f"go{depth}", "i": f"j{depth}"}.get(name, name) for name in n.input]
    return [node("Loop", ["k", "yes", state], ["t"], body=made)]


LINE = [node("CastLike", ["i", "x"], ["f"]), node("Mul", ["x", "f"], ["line"])]
WITHIN = {
    "appends": (around([*LINE, node("Concat", ["s", "line"], ["t"], axis=0)]), 4),
    "behind others": (
        [
            node("Concat", ["s", "x"], ["first"], axis=0),
            *around([*LINE, node("Concat", ["s", "line", "x"], ["t"], axis=0)], "first"),
        ],
        9,
    ),
    "three deep": (around(around([*LINE, node("Concat", ["s", "line"], ["t"], axis=0)], depth=1)), 16),
}


@pytest.mark.parametrize("case", WITHIN)
def test_loops_inside_that_append(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is moved once by each loop: not with all rows before it."""
    nodes, rows = WITHIN[case]
    made = growing(nodes)
    made.graph.input.append(onnx.helper.make_tensor_value_info("k", I64, []))
    ways = Ways(made)
    ways.check(*[{"x": X, "m": np.array(m), "k": np.array(k)} for m in (0, 1, 3) for k in (0, 1, 3)])
    loops = [n for f in ways.made.fused.all_graphs for n in f.graph.nodes if n.operator is LOOP]
    assert all(len(appends_of(n)) == 1 for n in loops)
    one, few, many = (moved_by(ways, {"x": X, "m": np.array(m), "k": np.array(4)}, monkeypatch) for m in (4, 8, 16))
    assert many - few == 2 * (few - one)
    assert few - one < 4 * rows * X.size * (len(loops) + 1)
    feed = {"x": X, "m": np.array(3), "k": np.array(2)}
    (before,), (after,) = run_graph(ways.made.source, feed), run_graph(ways.made.fused.graph, feed)
    np.testing.assert_array_equal(before, after)


def test_loops_inside_that_read_the_rows_before() -> None:
    """The inner loop has all rows to read, and appends to them; the outer one copies what it makes."""
    nodes = around([*CASES["rows that are computed from all before"]])
    made = growing(nodes)
    made.graph.input.append(onnx.helper.make_tensor_value_info("k", I64, []))
    ways = Ways(made)
    assert appended(ways.made) == []
    ways.check(*[{"x": X, "m": np.array(m), "k": np.array(k)} for m in (0, 1, 3) for k in (0, 1, 3)])
