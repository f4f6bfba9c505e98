"""Machines whose kernels take few buffers: calls of many tensors are taken apart, and groups stay within the limit."""

from __future__ import annotations

import pytest
from tests.graph.checks import apply_pass, ops

from weft.graph import Graph, fuse
from weft.graph.passes.devices.bound_buffers import bound_buffers
from weft.support.dtypes import f32


def joined(count: int) -> Graph:
    """Returns a concatenation of so many tensors."""
    g = Graph()
    g.output(g.add("concat", [g.input(f"x{k}", (2, k + 1), f32) for k in range(count)], axis=1), "y")
    return g


@pytest.mark.parametrize(("count", "calls"), [(3, 1), (4, 2), (7, 3), (9, 4), (10, 5), (28, 14)])
def test_concatenations_are_made_in_steps(count: int, calls: int) -> None:
    made = apply_pass(joined(count), lambda g: bound_buffers(g, 4), exact=True)
    assert ops(made) == ["concat"] * calls
    assert all(len(n.inputs) <= 3 for n in made.nodes)


def test_a_tensor_that_is_there_several_times_takes_one_buffer() -> None:
    g = Graph()
    x = g.input("x", (2, 3), f32)
    g.output(g.add("concat", [x] * 9, axis=0), "y")
    assert bound_buffers(g, 4) is g


def test_splits_become_slices() -> None:
    g = Graph()
    for k, v in enumerate(g.add_many("split", [g.input("x", (6, 2), f32)], axis=0, sizes=(1, 2, 1, 2))):
        g.output(v, f"y{k}")
    made = apply_pass(g, lambda graph: bound_buffers(graph, 4), exact=True)
    assert ops(made) == ["slice"] * 4
    assert bound_buffers(g, 5) is g


def test_without_a_limit_nothing_changes() -> None:
    g = joined(40)
    assert bound_buffers(g, None) is g


def test_groups_take_no_more_buffers_than_a_kernel_may() -> None:
    g = Graph()
    xs = [g.input(f"x{k}", (8,), f32) for k in range(12)]
    total = xs[0]
    for x in xs[1:]:
        total = g.add("add", [total, x])
    g.output(total, "y")
    assert len(fuse(g).groups) == 1
    groups = fuse(g, most_buffers=8).groups
    assert len(groups) > 1
    assert max(len(group.inputs) + len(group.outputs) for group in groups) <= 8
