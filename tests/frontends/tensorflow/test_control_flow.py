"""Control flow of TensorFlow 1 (`make_flow`), interpreted, equals what TensorFlow computed; other shapes of it are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.frontends.tensorflow.test_operators import unpacked
from tests.frontends.tensorflow.written import graph, node

import weft
from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph
from weft.graph import Graph

ARRAYS = unpacked("flow")
CASES = sorted({name.partition(".")[0] for name in ARRAYS})
RUNS = range(3)
X = node("x", "Placeholder", dtype="type:float", shape=(3,))
TRUTH = node("p", "Placeholder", dtype="type:bool", shape=())


def arrays(case: str, run: int, kind: str) -> list[Any]:
    return [ARRAYS[f"{case}.{run}.{kind}{k}"] for k in range(len(ARRAYS)) if f"{case}.{run}.{kind}{k}" in ARRAYS]


def regions(g: Graph) -> Iterator[str]:
    """Yields the names of the operators with regions, those in regions too."""
    for n in g.nodes:
        inner = [a for _, a in n.attributes if isinstance(a, Graph)]
        if inner:
            yield n.operator.name
        for region in inner:
            yield from regions(region)


@pytest.mark.parametrize("case", CASES)
def test_flow(case: str) -> None:
    imported = to_graph(ARRAYS[f"{case}.graph"].tobytes())
    for run in RUNS:
        given = dict(zip([v.name for v in imported.inputs], arrays(case, run, "input"), strict=True))
        made, wanted = run_graph(imported, given), arrays(case, run, "output")
        assert len(made) == len(wanted)
        for got, want in zip(made, wanted, strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * max(1e-3, np.abs(want).max(initial=0)))


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        ("cond", ["if"]),
        ("conds in turn", ["if", "if"]),
        ("nested cond", ["if", "if", "if"]),
        ("while loop", ["loop"]),
        ("nested while", ["loop", "loop"]),
        ("while in cond", ["if", "loop"]),
        ("cond in while", ["loop", "if"]),
        ("short while", []),
    ],
)
def test_regions_of_flow(case: str, wanted: list[str]) -> None:
    assert [*regions(to_graph(ARRAYS[f"{case}.graph"].tobytes()))] == wanted


@pytest.mark.parametrize("case", ["cond in while", "dynamic rnn", "map lowered", "nested cond"])
def test_compiled_flow(case: str) -> None:
    model = weft.compile(to_graph(ARRAYS[f"{case}.graph"].tobytes()))
    for run in RUNS:
        made, wanted = model(*arrays(case, run, "input")), arrays(case, run, "output")
        for got, want in zip(made if isinstance(made, tuple) else [made], wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


SWITCH = node("s", "Switch", "x", "p")


def looping(*more: bytes) -> list[bytes]:
    """Returns the nodes of a loop whose condition is an input, and *more*."""
    enters = [node("e", "Enter", "x", frame_name="f"), node("q", "Enter", "p", frame_name="f", is_constant=True)]
    return [
        *enters,
        node("m", "Merge", "e", "n"),
        node("s", "Switch", "m", "c"),
        node("n", "NextIteration", "s:1"),
        *more,
    ]


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ([SWITCH, node("y", "Relu", "s:1")], ["Switch, 1 node: s"]),
        ([SWITCH, node("y", "Merge", "s:1", "x")], ["Merge, 1 node: y", "Switch, 1 node: s"]),
        ([SWITCH, node("y", "Merge", "s:1", "s", "x")], ["Merge, 1 node: y", "Switch, 1 node: s"]),
        (looping(node("y", "Exit", "s")), ["Exit, 1 node: y", "Merge, 1 node: m", "Switch, 1 node: s"]),
        (looping(node("c", "LoopCond", "q"), node("y", "Exit", "s"), node("z", "Relu", "m")), ["Merge, 1 node: m"]),
    ],
)
def test_flow_of_other_shapes_is_refused_by_name(nodes: list[bytes], left: list[str]) -> None:
    with pytest.raises(weft.UnsupportedOperators) as told:
        to_graph(graph(X, TRUTH, *nodes))
    said = str(told.value)
    for line in left:
        assert f"  {line}\n" in said
    assert said.endswith(
        "hint: freeze the model with lower_control_flow=False, which leaves its control flow in functions"
    )


def test_branches_that_nest_too_deeply_are_refused() -> None:
    switches = [node(f"s{k}", "Switch", f"s{k - 1}" if k else "x", f"p{k}") for k in range(200)]
    predicates = [node(f"p{k}", "Placeholder", dtype="type:bool", shape=()) for k in range(200)]
    with pytest.raises(weft.ModelError, match="its branches nest too deeply"):
        to_graph(graph(X, *predicates, *switches, node("y", "Merge", "s199", "s199:1")))
