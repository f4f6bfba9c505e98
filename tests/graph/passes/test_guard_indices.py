"""Which indices are looked at while a model runs, and which need not be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from weft.graph import Graph, Value, guard_indices, print_graph, verify_graph
from weft.graph.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from weft.graph.rewriting.known_ranges import known_range
from weft.ir import index
from weft.support.dtypes import f32, i32, i64, u8
from weft.support.errors import ModelError, VerifyError


def guarded(graph: Graph, *outputs: Value) -> Graph:
    for v in outputs:
        graph.output(v)
    made = guard_indices(graph)
    verify_graph(made)
    return made


def test_a_guard_in_print() -> None:
    g = Graph("net")
    x, i = g.input("x", (g.dim("n"), 3), f32), g.input("i", (2,), i64)
    made = guarded(g, g.add("gather", [x, i], axis=0, source="Gather /g"))
    assert print_graph(made) == (
        "graph net(x: f32[n, 3], i: i64[2]) -> (gather):\n"
        "  extremes: i64[], extremes_1: i64[] = extremes(i, i, axes=(0,))  # Gather /g\n"
        "  gather: f32[2, 3] = gather(x, i, axis=0)  # Gather /g\n"
        "  watched guard extremes, extremes_1 in (0 - n) to (n - 1)  # Gather /g\n"
        "  return gather=gather\n"
    )
    assert guard_indices(made) is made


def test_what_several_read_is_looked_at_once() -> None:
    g = Graph()
    x, y, i = g.input("x", (5, 3), f32), g.input("y", (9, 3), f32), g.input("i", (2,), i64)
    gathers = [g.add("gather", [v, i], axis=0) for v in (x, y, x)]
    made = guarded(g, *gathers[:2], g.add("neg", [gathers[2]]))
    assert [n.op for n in made.nodes].count("extremes") == 1
    assert len(made.guards) == 2
    assert len(eliminate_common_subexpressions(made).guards) == 2


def test_each_number_of_a_tuple_has_its_own_limits() -> None:
    g = Graph()
    x, i = g.input("x", (5, 3), f32), g.input("i", (7, 2), i64)
    (guard,) = guarded(g, g.add("gather_nd", [x, i])).guards
    assert guard.least.shape == (index(2),)
    assert guard.limits == ((index(-5), index(4)), (index(-3), index(2)))


ROWS = 300
BOUNDED: dict[str, Callable[[Graph, Value], Value]] = {
    "argmax": lambda g, x: g.add("argmax", [x], axis=0, keepdims=False),
    "argsort": lambda g, x: g.add("argsort", [x], axis=0),
    "cast": lambda g, x: g.add("cast", [g.add("argmin", [x], axis=0)], dtype=i32),
    "moved": lambda g, x: g.add(
        "slice", [g.add("argsort", [x], axis=0)], starts=(0,), ends=(2,), axes=(0,), steps=(1,)
    ),
    "narrow": lambda g, x: g.add("cast", [g.add("cast", [x], dtype=u8)], dtype=i64),
    "clip": lambda g, x: g.add("clip", [g.add("cast", [x], dtype=i64), *_scalars(g, -3, ROWS - 1)]),
    "remainder": lambda g, x: g.add("floor_mod", [g.add("cast", [x], dtype=i64), _scalars(g, ROWS)[0]]),
}


def _scalars(g: Graph, *values: int) -> list[Value]:
    return [g.constant(np.array(v, np.int64)) for v in values]


@pytest.mark.parametrize("name", BOUNDED)
def test_indices_that_cannot_be_outside_are_not_looked_at(name: str) -> None:
    g = Graph()
    x = g.input("x", (ROWS, 4), f32)
    assert not guarded(g, g.add("gather", [x, BOUNDED[name](g, x)], axis=0)).guards


def test_positions_along_a_symbolic_axis_are_inside_of_it() -> None:
    g = Graph()
    x = g.input("x", (g.dim("n"), 4), f32)
    assert not guarded(g, g.add("gather_elements", [x, g.add("argsort", [x], axis=0)], axis=0)).guards


@pytest.mark.parametrize(("low", "high"), [(-ROWS - 1, 5), (0, ROWS)])
def test_a_clip_that_reaches_outside_is_looked_at(low: int, high: int) -> None:
    g = Graph()
    x, i = g.input("x", (ROWS,), f32), g.input("i", (4,), i64)
    clipped = g.add("clip", [i, *_scalars(g, low, high)])
    assert known_range(clipped) == (index(low), index(high))
    assert len(guarded(g, g.add("gather", [x, clipped])).guards) == 1


def test_a_condition_that_is_computed_later_makes_no_difference() -> None:
    g = Graph()
    x, i = g.input("x", (5,), f32), g.input("i", (2,), i64)
    y = g.add("gather", [x, i])
    condition = g.add("less", [g.add("reduce_max", [y], keepdims=False), g.constant(np.array(0, np.float32))])
    made = guarded(g, g.add("where", [condition, y, g.add("neg", [y])]))
    assert [n.op for n in made.nodes].count("where") == 1


def test_a_known_index_outside() -> None:
    g = Graph()
    x = g.input("x", (5,), f32)
    g.output(g.add("gather", [x, g.constant(np.array([-6, 0]))], source="Gather /g"))
    with pytest.raises(ModelError, match="Gather /g: index -6 is outside of -5 to 4"):
        guard_indices(g)


def test_a_guard_of_what_is_not_there() -> None:
    g = Graph()
    x, i = g.input("x", (5,), f32), g.input("i", (2,), i64)
    made = guarded(g, g.add("gather", [x, i], source="Gather /g"))
    made.nodes = made.nodes[1:]
    with pytest.raises(VerifyError) as refused:
        verify_graph(made)
    assert str(refused.value) == "Gather /g: a guard looks at extremes: i64[], which no node of the graph makes"
