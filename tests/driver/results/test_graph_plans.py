"""The plan of a graph: followed, it gives the same graph again, whatever the machine; others are right as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import onnx
import pytest
from tests.driver.results.test_random_plans import NETWORKS, random_choice
from tests.models import mlp, tiny_resnet
from tests.replay.machines import MACHINES

import weft
from weft.cost import Candidate, Choose, Choosing, Following, Planner, Winograd, cheapest, parse_plan
from weft.driver.build import fuse_graph, optimize_graph
from weft.driver.options import CompileOptions
from weft.frontends import to_graph
from weft.graph import print_graph
from weft.support.errors import ScheduleError
from weft.targets import Target

OPTIONS: Final = CompileOptions()


def text(model: onnx.ModelProto, target: Target, planner: Planner, options: CompileOptions = OPTIONS) -> str:
    """The graph of a model, and how it is fused."""
    graph = optimize_graph(to_graph(model), target, options, cache=None, planner=planner)
    fused = fuse_graph(graph, target, options, planner)
    planner.finish()
    return f"{print_graph(graph)}{fused}"


@pytest.mark.sampled(6)
@pytest.mark.parametrize("choose", [cheapest, random_choice(3)], ids=["cheapest", "random"])
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_plan_read_back_gives_the_same_graph(name: str, level: str, choose: Choose) -> None:
    asked = Choosing(MACHINES[level], choose)
    once = text(NETWORKS[name](), MACHINES[level], asked)
    plan = parse_plan(str(asked.plan))
    assert plan == asked.plan
    for other in MACHINES.values():
        assert text(NETWORKS[name](), other, Following(plan)) == once


def test_choose_reaches_the_graph() -> None:
    def dearest(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        return max(candidates, key=lambda c: c.cycles)

    cheap, dear = (weft.build(tiny_resnet(), "cpu", choose=c) for c in (cheapest, dearest))
    assert cheap.graph_plan != dear.graph_plan
    assert print_graph(cheap.fused.graph) != print_graph(dear.fused.graph)
    again = weft.build(tiny_resnet(), "cpu", graph_plan=dear.graph_plan)
    assert again.graph_plan == dear.graph_plan
    assert again.choices == ()
    assert print_graph(again.fused.graph) == print_graph(dear.fused.graph)


def test_a_plan_of_another_graph_is_refused() -> None:
    plan = weft.build(mlp(), "cpu").graph_plan
    with pytest.raises(ScheduleError, match=r"the plan is of another program: Layout of .* is to be decided"):
        weft.build(tiny_resnet(), "cpu", graph_plan=plan)


def test_an_inaccurate_algorithm_is_refused() -> None:
    def by_winograd(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        found = [c for c in candidates if isinstance(c.decision, Winograd) and not c.decision.is_direct]
        return found[0] if found else cheapest(candidates)

    def build(planner: Planner, *passes: str) -> str:
        return text(tiny_resnet(), MACHINES["avx2"], planner, CompileOptions(passes=passes))

    asked = Choosing(MACHINES["avx2"], by_winograd)
    assert "conv2d_winograd" in build(asked)
    strict = "choose_winograd.largest_error=1e-12"
    assert "conv2d_winograd" not in build(Choosing(MACHINES["avx2"], by_winograd), strict)
    with pytest.raises(ScheduleError, match=r"Winograd.tile=\d, .* may not stand here"):
        build(Following(asked.plan), strict)
