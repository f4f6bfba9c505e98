"""States of loops that scatters change are in one memory: an iteration writes what changes, and copies nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx.helper import make_node as node
from tests.driver.host.test_appends_of_loops import moved_by
from tests.driver.host.test_control_flow import body
from tests.driver.host.ways import F32, I64, Array, Info, Ways, model

from weft.driver.build import Compilation, build
from weft.driver.options import check_options

ROWS, WIDTH = 5, 3
SHAPE = [ROWS, WIDTH]
X = np.arange(ROWS * WIDTH, dtype=np.float32).reshape(SHAPE) / 10 - 0.5
CONSTANTS = {
    "yes": np.array(True),
    "one": np.array([1]),
    "rows": np.array(ROWS),
    "before": np.array(ROWS - 1),
    "axes": np.array([1]),
    "split": np.array([-1, WIDTH, 1]),
    "whole": np.array([-1, WIDTH]),
    "zero": np.array(0),
    "step": np.array(1),
}
PLACE = [
    node("Mod", ["i", "rows"], ["place"]),
    node("Add", ["i", "before"], ["i4"]),
    node("Mod", ["i4", "rows"], ["previous"]),
    node("Reshape", ["place", "one"], ["place1"]),
    node("Unsqueeze", ["place1", "axes"], ["at"]),
    node("Reshape", ["previous", "one"], ["previous1"]),
    node("Unsqueeze", ["previous1", "axes"], ["at_previous"]),
]
"""The place [1, 1] of an iteration, and of that before it."""
NEW = [node("Gather", ["s", "previous1"], ["last"], axis=0), node("Cos", ["last"], ["new"])]
"""What an iteration puts there, which is computed from the row that the one before has put."""

UPDATES = {
    "tuples": [*NEW, node("ScatterND", ["s", "at", "new"], ["t"])],
    "sums": [*NEW, node("ScatterND", ["s", "at", "new"], ["t"], reduction="add")],
    "elements": [
        *NEW,
        node("Shape", ["new"], ["shape"]),
        node("Expand", ["at", "shape"], ["everywhere"]),
        node("ScatterElements", ["s", "everywhere", "new"], ["t"], axis=0),
    ],
    "two, and what is read between them": [
        *NEW,
        node("ScatterND", ["s", "at", "new"], ["u"]),
        node("ReduceMean", ["u"], ["mean"], keepdims=0),
        node("Sin", ["mean"], ["bounded"]),
        node("Add", ["new", "bounded"], ["other"]),
        node("ScatterND", ["u", "at_previous", "other"], ["t"]),
    ],
    "of another shape": [
        node("Gather", ["s", "previous1"], ["last"], axis=0),
        node("Cos", ["last"], ["row"]),
        node("Reshape", ["s", "split"], ["apart"]),
        node("Reshape", ["row", "split"], ["new"]),
        node("ScatterND", ["apart", "at", "new"], ["u"]),
        node("Reshape", ["u", "whole"], ["t"]),
    ],
}

OTHERS = {
    "a row as it was behind the update": [
        *NEW,
        node("ScatterND", ["s", "at", "new"], ["u"]),
        node("ReduceSum", ["u"], ["sum"], keepdims=0),
        node("Mul", ["s", "sum"], ["scaled"]),
        node("ReduceMax", ["scaled"], ["most"], keepdims=0),
        node("Sin", ["most"], ["bounded"]),
        node("Mul", ["new", "bounded"], ["other"]),
        node("ScatterND", ["u", "at_previous", "other"], ["t"]),
    ],
    "the state by itself": [
        node("Mul", ["s", "s"], ["doubled"]),
        node("Range", ["zero", "rows", "step"], ["every"]),
        node("Unsqueeze", ["every", "axes"], ["all"]),
        node("ScatterND", ["doubled", "all", "s"], ["t"]),
    ],
}


def looped(nodes: Sequence[onnx.NodeProto], scans: Sequence[str] = ()) -> onnx.ModelProto:
    """Returns a loop of *m* iterations of *nodes*, which make the state `t` of `s`; *scans* are rows that it makes besides."""
    rows: list[Info] = [(name, F32, [WIDTH]) for name in scans]
    made = body([*PLACE, *nodes], [("s", F32, SHAPE)], [("t", F32, SHAPE), *rows])
    loop = node("Loop", ["m", "yes", "x"], ["y", *[f"{name}_rows" for name in scans]], body=made)
    outputs: list[Info] = [("y", F32, SHAPE), *[(f"{name}_rows", F32, [None, WIDTH]) for name in scans]]
    return model(
        [loop, node("Neg", ["x"], ["z"])], [("x", F32, SHAPE), ("m", I64, [])], [*outputs, ("z", F32, SHAPE)], CONSTANTS
    )


def updated(made: Compilation) -> list[list[int]]:
    """Returns the states of each loop, at any depth, that are updated where they are."""
    loops = [g for f in made.fused.all_graphs for g in f.groups if g.regions]
    return [list(r.updates) for g in loops for r in g.regions]


def feed(iterations: int) -> dict[str, Array]:
    return {"x": X, "m": np.array(iterations)}


@pytest.mark.parametrize("case", UPDATES)
def test_updates_copy_nothing(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ways = Ways(looped(UPDATES[case]), rtol=1e-5, atol=1e-6)
    assert updated(ways.made) == [[0]]
    ways.check(*map(feed, (0, 1, 2, 20)))
    few, many = (moved_by(ways, feed(count), monkeypatch) for count in (20, 40))
    assert few == many == X.size  # the first value
    (loop,) = [g for g in ways.made.fused.groups if g.regions]
    scatters = [n for g in loop.regions[0].groups for n in g.nodes if n.op.startswith("scatter")]
    assert all(n.attribute("in_place") for n in scatters)


@pytest.mark.parametrize("case", OTHERS)
def test_states_that_are_read_later_have_two_copies(case: str) -> None:
    ways = Ways(looped(OTHERS[case]), rtol=1e-5, atol=1e-6)
    assert updated(ways.made) == [[]]
    ways.check(*map(feed, (0, 1, 2, 20)))


def test_rows_of_before_and_after() -> None:
    """Rows that a loop returns may be of the state as it was and as it is."""
    rows = [node("Gather", ["s", "place"], ["old"], axis=0), node("Gather", ["t", "place"], ["late"], axis=0)]
    ways = Ways(looped([*UPDATES["tuples"], *rows], ["old", "late"]), rtol=1e-5, atol=1e-6)
    assert updated(ways.made) == [[0]]
    ways.check(*map(feed, (1, 2, 20)))


def test_one_of_two_states() -> None:
    """The sum of all that a state was has two copies; so have states that change places."""
    nodes = [*PLACE, *UPDATES["tuples"], node("Add", ["sum", "s"], ["more"])]
    two: list[Info] = [("t", F32, SHAPE), ("more", F32, SHAPE)]
    for results, wanted in ((two, [0]), (two[::-1], [])):
        made = body(nodes, [("s", F32, SHAPE), ("sum", F32, SHAPE)], results)
        loop = node("Loop", ["m", "yes", "x", "x"], ["y", "z"], body=made)
        outputs: list[Info] = [("y", F32, SHAPE), ("z", F32, SHAPE)]
        ways = Ways(model([loop], [("x", F32, SHAPE), ("m", I64, [])], outputs, CONSTANTS), rtol=1e-5, atol=1e-6)
        assert updated(ways.made) == [wanted]
        ways.check(*map(feed, (0, 1, 2, 20)))


def nested(inner: Sequence[onnx.NodeProto]) -> onnx.ModelProto:
    """Returns a loop whose body is a loop of three iterations of *inner*, which make `u` of `r`; they may read `s`."""
    within = body(inner, [("r", F32, SHAPE)], [("u", F32, SHAPE)])
    within.input[0].name, within.input[1].name = "j", "on_before"
    for n in within.node:
        n.input[:] = [{"i": "j", "go": "on_before"}.get(name, name) for name in n.input]
    outer = body([node("Loop", ["times", "yes", "s"], ["t"], body=within)], [("s", F32, SHAPE)], [("t", F32, SHAPE)])
    loop = node("Loop", ["m", "yes", "x"], ["y"], body=outer)
    constants = {**CONSTANTS, "times": np.array(20)}
    return model([loop], [("x", F32, SHAPE), ("m", I64, [])], [("y", F32, SHAPE)], constants)


WITHIN = [
    *PLACE,
    node("Gather", ["r", "previous1"], ["last"], axis=0),
    node("Cos", ["last"], ["new"]),
    node("ScatterND", ["r", "at", "new"], ["u"]),
]


def test_an_inner_loop_updates_the_state_of_the_outer(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = Ways(nested(WITHIN), rtol=1e-5, atol=1e-6)
    assert updated(ways.made) == [[0], [0]]
    ways.check(*map(feed, (0, 1, 18)))
    few, many = (moved_by(ways, feed(count), monkeypatch) for count in (17, 34))
    assert few == many == X.size


def test_an_inner_loop_that_reads_the_outer_state_has_its_own() -> None:
    other = [*WITHIN[:-2], node("Gather", ["s", "place1"], ["first"], axis=0), node("Add", ["last", "first"], ["sum"])]
    ways = Ways(nested([*other, node("Cos", ["sum"], ["new"]), WITHIN[-1]]), rtol=1e-5, atol=1e-6)
    assert updated(ways.made) == [[], [0]]
    ways.check(*map(feed, (0, 1, 18)))


def test_at_every_level() -> None:
    made = looped(UPDATES["two, and what is read between them"])
    first, other = (build(made, options=check_options(opt_level=level)) for level in (0, 3))
    assert updated(first) == updated(other) == [[0]]
