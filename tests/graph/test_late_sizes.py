"""Sizes that only a run tells, in graphs: where they come from, that they are verified, and that unused ones go."""

from __future__ import annotations

import numpy as np
import pytest

from weft.graph import FusedGraph, Graph, Place, Value, fuse, plan_memory, print_graph, rewrite_graph, verify_graph
from weft.graph.builder import Builder, PartialEvaluator
from weft.graph.builder.element_source import element_source
from weft.graph.core.conditions import LateSize
from weft.ir import INDEX, ZERO, Var, eq
from weft.support.dtypes import f32, i64
from weft.support.errors import VerifyError


def chosen(name: str = "found") -> tuple[Graph, Value, Value]:
    """Returns a graph that chooses elements of `x` [8], the positions, and the elements."""
    g = Graph()
    x = g.input("x", (8,), f32)
    room, count = g.add_many("nonzero_positions", [x])
    size = g.late_size(count, name=name, what="a number")
    positions = g.add("slice", [room], starts=(0,), ends=(size,), axes=(0,), steps=(1,), inside=True)
    return g, positions, g.add("gather", [x, positions], axis=0)


def test_nodes_use_a_late_size_as_any_other() -> None:
    g, _, y = chosen()
    g.output(g.add("relu", [y]), "y")
    verify_graph(g)
    assert "relu: f32[found] = relu(gather)" in print_graph(g)
    assert g.late_sizes[0].value in g.roots


def test_the_same_element_is_one_size() -> None:
    g = Graph()
    v = g.input("v", (2,), i64)
    first = g.late_size(v, 0, name="n", what="a size")
    assert g.late_size(v, 0, name="m", what="a size") is first
    assert g.late_size(v, 1, name="n", what="a size").name == "n_1"


def test_a_size_that_is_used_before_it_is_known_is_refused() -> None:
    g, _, y = chosen()
    g.output(y, "y")
    g.nodes = [g.nodes[1], g.nodes[0], g.nodes[2]]
    with pytest.raises(VerifyError, match=r"before it is made|which is not known yet"):
        verify_graph(g)
    g, _, y = chosen()
    g.output(y, "y")
    early = g.add("full", [], shape=(g.late_sizes[0].size,))
    g.nodes = [g.nodes[-1], *g.nodes[:-1]]
    with pytest.raises(VerifyError, match=r"f32\[found\] uses the size found, which is not known yet"):
        verify_graph(g)
    assert early.shape[0] is g.late_sizes[0].size


def test_a_size_without_a_source_is_refused() -> None:
    g = Graph()
    x = g.input("x", (8,), f32)
    g.output(g.add("relu", [x]), "y")
    other = Graph().input("n", (1,), i64)
    g.late_sizes.append(LateSize(g.dim("n"), other, 0, "a size", ""))
    with pytest.raises(VerifyError, match=r"the size n is read from n: i64\[1\], which no node makes"):
        verify_graph(g)


def test_sizes_that_nothing_uses_go() -> None:
    g, _, _ = chosen()
    g.output(g.add("relu", [g.inputs[0]]), "y")
    made = rewrite_graph(g, lambda new, node, inputs: None)
    assert (made.late_sizes, [n.op for n in made.nodes]) == ([], ["relu"])


def test_a_size_that_a_condition_uses_stays() -> None:
    g, _, _ = chosen()
    g.output(g.add("relu", [g.inputs[0]]), "y")
    size = g.late_sizes[0].size
    g.require(size < 5, "{0} are too many", size)
    made = rewrite_graph(g, lambda new, node, inputs: None)
    assert [n.op for n in made.nodes] == ["nonzero_positions", "relu"]


def fused() -> FusedGraph:
    g, _, y = chosen()
    z = g.add("exp", [y])
    g.output(g.add("reduce_sum", [g.add("softmax", [z], axis=0)], axes=(0,)), "y")
    return fuse(g)


def test_values_of_late_sizes_are_in_an_arena_of_their_stage() -> None:
    made = fused()
    plan = plan_memory(made)
    places = {v.name: (where.place, where.number) for v, where in plan.locations.items()}
    assert places["nonzero_positions"] == (Place.ARENA, 0)
    assert places["slice"] == (Place.ARENA, 0)  # the first elements of those
    late = [number for place, number in places.values() if place is Place.ARENA and number > 0]
    assert set(late) == {1}
    assert list(plan.late) == [1]
    assert str(plan).splitlines()[-1].endswith("; later (64 * found)")


def test_another_kernel_computes_what_is_left_where_a_size_is_zero() -> None:
    made = fused()
    sums = [g for g in made.groups if g.nodes[-1].op == "reduce_sum"]
    assert sums
    size = made.graph.late_sizes[0].size
    for g in sums:
        (other,) = made.versions[g]
        assert other.condition is eq(size, ZERO)
        assert other.group.sizes == other.sizes == ()
        assert [v.shape for v in other.group.outputs] == [v.shape for v in g.outputs]
    assert made.groups[0] not in made.versions


def test_where_an_element_comes_from() -> None:
    g = Graph()
    b = Builder(PartialEvaluator(g), "node")
    v, w = g.input("v", (3,), i64), g.input("w", (2,), i64)
    a, rest = b.add_many("split", v, axis=0, sizes=(1, 2))
    back = b.add("slice", rest, starts=(-1,), ends=(-3,), axes=(0,), steps=(-1,))
    joined = b.add("concat", b.reshape(a, (1,)), back, w, axis=0)
    picked = b.add("gather", joined, b.vector([2, 3, -1]), axis=0)
    assert isinstance(picked, Value)
    assert [element_source(picked, k) for k in range(3)] == [(v, 1), (w, 0), (w, 1)]
    doubled = b.add("add", picked, picked)
    assert isinstance(doubled, Value)
    assert element_source(doubled, 0) == (doubled, 0)
    constant = g.constant(np.array([5, 7]))
    assert element_source(constant, 1) == 7
    x = g.input("x", (4,), i64)
    far = g.add(
        "concat", [x, g.constant(np.array([5]))], axis=0
    )  # reads element -4 of the constant where that is not taken
    assert [element_source(far, k) for k in (0, 4)] == [(x, 0), 5]


def test_the_names_of_sizes_are_no_inputs_names() -> None:
    g, _, y = chosen("found")
    assert isinstance(y.shape[0], Var)
    assert y.shape[0].dtype is INDEX
    assert g.dims["found"] is y.shape[0]
