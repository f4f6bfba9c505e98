"""Concatenations written in place: which are, and that the values are right wherever they lie."""

from __future__ import annotations

import numpy as np
import pytest
from tests.graph.checks import constant, random_inputs
from tests.graph.oracle import run_graph, run_planned

from weft.graph import FusedGraph, Graph, Value, find_in_place, fuse, order_groups, place_concats, plan_memory
from weft.support.dtypes import f32


def product(g: Graph, x: Value, rows: int = 4) -> Value:
    """A kernel of its own, of shape (1, *rows*, 16)."""
    return g.add("matmul", [constant(g, 1, rows, 4), x])


def placed(g: Graph) -> FusedGraph:
    """Places the concatenations of *g*, runs it in the memory that it then has, and returns it."""
    made = order_groups(place_concats(fuse(g)))
    inputs = random_inputs(g)
    for in_place in (None, find_in_place(made)):
        found = run_planned(made, plan_memory(made, in_place=in_place), inputs)
        for a, b in zip(run_graph(g, inputs), found, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-4)
    return made


def names(fused: FusedGraph) -> list[str]:
    return sorted(g.name for g in fused.groups)


def start(g: Graph) -> Value:
    return g.input("x", (1, 4, 16), f32)


def end(g: Graph, *values: Value) -> None:
    for k, v in enumerate(values):
        rows = v.static_shape[1] if v.static_shape is not None else 0
        g.output(g.add("matmul", [constant(g, 1, 2, rows), v]), f"y{k}")


def test_pieces_are_written_where_they_belong() -> None:
    g = Graph()
    x = start(g)
    a, b = product(g, x), product(g, x, 8)
    end(g, g.add("concat", [a, b], axis=1), a)
    made = placed(g)
    assert names(made) == ["matmul"] * 4
    assert [(made.aliases[v].offset, made.offset(v)) for v in (a, b)] == [(0, 0), (64, 256)]


def test_an_output_is_written_in_place() -> None:
    g = Graph()
    x = start(g)
    g.output(g.add("concat", [product(g, x), product(g, x)], axis=1), "y")
    assert names(placed(g)) == ["matmul", "matmul"]


def test_a_concatenation_of_concatenations() -> None:
    g = Graph()
    x = start(g)
    inner = g.add("concat", [product(g, x), product(g, x)], axis=1)
    outer = g.add("concat", [inner, product(g, x)], axis=1)
    end(g, outer, inner)
    made = placed(g)
    assert "concat" not in names(made)
    assert made.root(inner) is outer


def test_what_has_memory_of_its_own_is_copied_by_itself() -> None:
    g = Graph()
    x = start(g)
    a = product(g, x)
    end(g, g.add("concat", [a, x, product(g, x), a], axis=1))
    assert names(placed(g)) == ["identity", "identity", "matmul", "matmul", "matmul"]


@pytest.mark.parametrize("kind", ["inputs", "outputs", "rows", "edges", "slices"])
def test_what_is_left_alone(kind: str) -> None:
    g = Graph()
    x = start(g)
    a, b = product(g, x), product(g, x)
    if kind == "inputs":  # little would be written in place
        end(g, g.add("concat", [x, g.input("z", (1, 4, 16), f32)], axis=1))
    elif kind == "outputs":  # a caller has the pieces
        g.output(a, "a")
        g.output(b, "b")
        end(g, g.add("concat", [a, b], axis=1))
    elif kind == "rows":  # the pieces' rows alternate in the result
        end(g, g.add("concat", [a, b], axis=2))
    elif kind == "edges":  # the second piece would not begin at a cache line
        c = g.add("matmul", [g.add("matmul", [constant(g, 1, 3, 4), x]), constant(g, 16, 5)])
        end(
            g,
            g.add(
                "concat", [c, g.add("matmul", [constant(g, 1, 1, 4), g.add("matmul", [x, constant(g, 16, 5)])])], axis=1
            ),
        )
    else:
        parts = [g.add("slice", [product(g, x, 8)], starts=(k,), ends=(k + 4,), axes=(1,)) for k in (0, 4)]
        end(g, g.add("concat", parts, axis=1))
    assert "concat" in " ".join(names(placed(g)))
