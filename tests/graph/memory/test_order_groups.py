"""The order of least memory: never worse, found where it is known, and the graph means the same."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import strategies as st
from tests.graph.checks import constant, random_inputs
from tests.graph.oracle import run_graph, run_planned
from tests.support.sampling import tried

from weft.graph import FusedGraph, Graph, Value, find_in_place, fuse, order_groups, plan_memory
from weft.ir import Const
from weft.support.dtypes import f32


def product(g: Graph, x: Value, columns: int) -> Value:
    """A kernel of its own."""
    rows = x.shape[-1]
    assert isinstance(rows, Const)
    return g.add("matmul", [x, constant(g, int(rows.value), columns)])


def branches() -> Graph:
    """Two branches, each with a large value inside and a small one at its end, interleaved."""
    g = Graph()
    x = g.input("x", (1, 16), f32)
    large = [product(g, x, 512), product(g, x, 512)]
    small = [product(g, v, 16) for v in large]
    g.output(product(g, g.add("mul", small), 4), "y")
    return g


def bound(fused: FusedGraph) -> int:
    plan = plan_memory(fused, in_place=find_in_place(fused))
    assert isinstance(plan.bound, Const)
    return int(plan.bound.value)


def test_branches_run_one_after_the_other() -> None:
    fused = fuse(branches())
    assert bound(fused) == 2 * 2048 + 64
    assert bound(order_groups(fused)) == 2048 + 64


def test_an_order_that_is_best_already_is_kept() -> None:
    g = Graph()
    x = g.input("x", (1, 16), f32)
    for _ in range(4):
        x = product(g, x, 16)
    g.output(x, "y")
    fused = fuse(g)
    assert order_groups(fused) is fused


def test_open_sizes_are_left_alone() -> None:
    g = Graph()
    x = g.input("x", (g.dim("n"), 16), f32)
    a, b = product(g, product(g, x, 512), 16), product(g, product(g, x, 512), 16)
    g.output(product(g, g.add("mul", [a, b]), 4), "y")
    fused = fuse(g)
    assert order_groups(fused) is fused


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Products that each read one or two of the values before them."""
    g = Graph()
    values = [g.input("x", (1, 16), f32)]
    for _ in range(draw(st.integers(2, 6))):
        x = draw(st.sampled_from(values))
        y = product(g, x, draw(st.sampled_from([16, 64, 256])))
        other = draw(st.sampled_from(values))
        values.append(g.add("add", [y, other]) if other.shape == y.shape else y)
    ends = [product(g, v, 4) for v in values[1:] if v not in g.users()]
    total = ends[0]
    for v in ends[1:]:
        total = g.add("add", [total, v])
    g.output(g.add("relu", [product(g, total, 4)]), "y")
    return g


def legal_orders(fused: FusedGraph) -> list[FusedGraph]:
    found = []
    for order in permutations(fused.groups):
        made: set[Value] = set()
        for g in order:
            if any(v.producer is not None and fused.root(v) not in made for v in g.inputs):
                break
            made.update(g.outputs)
        else:
            found.append(FusedGraph(fused.graph, order, fused.aliases))
    return found


@tried(10, 40, graphs())
def test_orders_mean_the_same_and_few_groups_are_ordered_best(g: Graph) -> None:
    fused = fuse(g)
    made = order_groups(fused)
    inputs = random_inputs(g)
    for in_place in (None, find_in_place(made)):
        found = run_planned(made, plan_memory(made, in_place=in_place), inputs)
        for a, b in zip(run_graph(g, inputs), found, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-4)
    assert bound(made) <= bound(fused)
    if len(fused.groups) <= 6:
        assert bound(made) == min(map(bound, legal_orders(fused)))


@pytest.mark.parametrize("count", [40, 400])
def test_large_graphs_take_little_time(count: int) -> None:
    """Counted in what is asked, not in seconds: a wide graph of many groups is left after a bounded search."""
    g = Graph()
    x = g.input("x", (1, 16), f32)
    total = product(g, product(g, x, 64), 16)
    for _ in range(count // 3):
        total = g.add("add", [product(g, product(g, x, 64), 16), product(g, total, 16)])
    g.output(product(g, total, 4), "y")
    fused = fuse(g)
    assert bound(order_groups(fused)) <= bound(fused)
