"""Layouts are solved with whatever costs the planner has: a table that contradicts the estimates changes the assignment."""

from __future__ import annotations

from collections.abc import Mapping

from tests.graph.checks import one_output
from tests.graph.passes.test_choose_layouts import conv

from weft.cost import Choosing, CostSource, Decision, Layout
from weft.graph import Graph
from weft.graph.layout.assign_layouts import nodes_in_blocks
from weft.support.dtypes import f32
from weft.targets import cpu

FOUR = cpu("sse4")
PLAIN, BLOCKS = Layout(blocks=False), Layout(blocks=True)


class Table(CostSource):
    """Costs of some decisions and of moving some values; of the rest the estimates."""

    def __init__(self, costs: Mapping[tuple[str, Decision], float], moved: Mapping[str, float] | None = None) -> None:
        self.costs, self.moved = costs, moved or {}

    def cycles(self, subject: str, decision: Decision, estimate: float) -> float:
        return self.costs.get((subject, decision), estimate)

    def moving(self, subject: str, estimate: float) -> float:
        return self.moved.get(subject, estimate)


def three_layers() -> Graph:
    g = Graph()
    y = g.input("x", (1, 8, 12, 12), f32)
    for _ in range(3):
        y = g.add("relu", [conv(g, y, 8)])
    return one_output(g, y)


def in_blocks(costs: CostSource) -> list[str]:
    graph = three_layers()
    chosen = nodes_in_blocks(graph, Choosing(FOUR, costs=costs))
    return [n.output.name for n in graph.nodes if n in chosen and n.op == "conv2d"]


def test_estimates_are_the_default() -> None:
    assert in_blocks(CostSource()) == ["conv2d", "conv2d_1", "conv2d_2"]


def test_a_layer_that_was_measured_to_be_faster_in_rows_is_plain() -> None:
    slow: dict[tuple[str, Decision], float] = {("conv2d", PLAIN): 1.0, ("conv2d", BLOCKS): 1e6}
    assert in_blocks(Table(slow)) == ["conv2d_1", "conv2d_2"]


def test_neighbours_follow_where_moving_costs_more_than_they_lose() -> None:
    slow: dict[tuple[str, Decision], float] = {("conv2d_1", PLAIN): 1.0, ("conv2d_1", BLOCKS): 1e6}
    assert in_blocks(Table(slow)) == ["conv2d", "conv2d_2"]
    dear = dict.fromkeys(("conv2d", "relu", "conv2d_1", "relu_1", "conv2d_2", "relu_2"), 1e5)
    assert in_blocks(Table(slow, dear)) == []


def test_what_can_not_be_is_not_believed_by_any_table() -> None:
    g = Graph()
    y = g.add("relu", [conv(g, g.input("x", (1, 6, 12, 12), f32), 6)])
    graph = one_output(g, g.add("exp", [g.add("reshape", [y], shape=(6, 144))]))
    reshaped: dict[tuple[str, Decision], float] = {
        (n.output.name, BLOCKS): 0.0 for n in graph.nodes if n.op in ("reshape", "exp")
    }
    assert not [n for n in nodes_in_blocks(graph, Choosing(FOUR, costs=Table(reshaped))) if n.op in ("reshape", "exp")]
