"""What looks for an index outside of its limits runs last, and only where a kernel that uses the index can't tell runs always."""

from __future__ import annotations

from weft.graph import Graph, fuse, guard_indices, put_checks_last
from weft.support.dtypes import f32, i64


def test_the_search_is_last() -> None:
    g = Graph()
    x, i = g.input("x", (4, 3), f32), g.input("i", (2,), i64)
    gathered = g.add("gather", [x, i], axis=0)
    g.output(g.add("softmax", [gathered], axis=1))
    fused = fuse(guard_indices(g))
    last = put_checks_last(fused).groups[-1]
    assert [n.op for n in last.nodes] == ["extremes"]
    assert put_checks_last(fused).on_demand == {last}
    assert put_checks_last(fused).calls == tuple([k for k in fused.groups if k is not last])


def test_a_kernel_that_can_not_tell_is_checked_before() -> None:
    g = Graph()
    x, n = g.input("x", (4, 3), f32), g.input("n", (4,), i64)
    g.output(g.add("reverse_sequence", [x, n], batch_axis=0, time_axis=1))
    fused = fuse(guard_indices(g))
    assert put_checks_last(fused) is fused
    assert [g.watched for g in fused.graph.guards] == [False]
    assert not fused.on_demand


def test_what_both_need_runs_always() -> None:
    """The same numbers are lengths and indices: each guard has a search of its own."""
    g = Graph()
    x, i = g.input("x", (4, 3), f32), g.input("i", (4,), i64)
    g.output(g.add("reverse_sequence", [x, i], batch_axis=0, time_axis=1))
    g.output(g.add("gather", [x, i], axis=0))
    fused = put_checks_last(fuse(guard_indices(g)))
    assert [g.watched for g in fused.graph.guards] == [False, True]
    assert len(fused.on_demand) == 1
    assert fused.groups[-1] in fused.on_demand
