"""The time of a kernel is put down to the questions that it answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.models import mlp, tiny_resnet
from tests.replay.machines import MACHINES

from weft.cost import Layout, Panel, Recompute, Winograd, parse_plan
from weft.driver.build import build
from weft.driver.cache.code_cache import default_cache
from weft.driver.measure.random_inputs import random_inputs
from weft.tune.graph import attribute
from weft.tune.graph.profile_beside import LARGEST_ERROR, ModelTimer, differs, profile_beside


def test_convolutions_have_their_kernels_and_what_is_fused_into_them_nothing() -> None:
    made = build(tiny_resnet(), MACHINES["avx2"], cache=default_cache())
    seconds = [float(1 << n) for n in range(len(made.fused.calls))]
    found = attribute(made.fused, made.graph_plan, seconds)
    taken = dict(zip([g.nodes[0].output.name.removesuffix("_blocked") for g in made.fused.calls], seconds, strict=True))
    layouts = {s: t for (s, d), t in found.seconds.items() if isinstance(d, Layout)}
    convolutions = {s: t for (s, d), t in found.seconds.items() if isinstance(d, Winograd)}
    assert len(convolutions) == 5
    for subject, t in convolutions.items():
        name = subject.removesuffix("_blocked")
        assert t == layouts[name]
    named = {name.replace(":", "_"): t for name, t in taken.items()}
    assert {s: t for s, t in layouts.items() if t} == {s: named[s] for s, t in layouts.items() if t}
    fused = {s for s, t in layouts.items() if t == 0}
    assert any("Relu" in s for s in fused)


def test_a_matrix_has_the_kernels_that_read_it() -> None:
    made = build(mlp(batch=4, widths=(24, 64, 64)), MACHINES["avx2"], cache=default_cache())
    found = attribute(made.fused, made.graph_plan, [1.0, 10.0])
    assert sorted(t for (_, d), t in found.seconds.items() if isinstance(d, Panel)) == [1.0, 10.0]


def test_what_is_left_of_no_value_has_no_cost() -> None:
    made = build(mlp(batch=4, widths=(24, 64)), MACHINES["avx2"], cache=default_cache())
    plan = parse_plan("nowhere: Recompute(fuse=True)\n")
    assert attribute(made.fused, plan, [1.0]).seconds == {}
    assert (*attribute(made.fused, plan, [1.0]).moved,) == ()
    assert Recompute(fuse=True) == plan.steps[0].decision


def test_kernels_are_timed_in_turns() -> None:
    made = build(mlp(batch=4), cache=default_cache())
    inputs = random_inputs(made.package.inputs)
    first, second = (ModelTimer(made, inputs, threads=1) for _ in range(2))
    beside = profile_beside(first, second, seconds=0.0)
    assert len(beside.first) == len(beside.second) == len(made.fused.calls)
    assert all(s > 0 for s in beside.first)
    assert 0.2 < beside.ratio.middle < 5
    assert differs(first.outputs, second.outputs) is None


@pytest.mark.parametrize(
    ("found", "wanted", "said"),
    [
        (np.array([1, 2], np.float32), np.array([1, 2], np.float32), None),
        (np.array([1, 2 + LARGEST_ERROR], np.float32), np.array([1, 2], np.float32), None),
        (
            np.array([1, 2.01], np.float32),
            np.array([1, 2], np.float32),
            "output 0 differs by 0.01, where its largest number is 2",
        ),
        (np.array([1, np.nan], np.float32), np.array([1, 2], np.float32), "output 0 is not finite in other places"),
        (np.array([np.inf, 2], np.float32), np.array([np.inf, 2], np.float32), None),
        (np.array([1, 2], np.int64), np.array([1, 3], np.int64), "output 0 has other numbers"),
        (np.array([1.003], np.float16), np.array([1], np.float16), None),
        (np.array([], np.float32), np.array([], np.float32), None),
    ],
)
def test_results_differ_by_more_than_orders_of_summing(
    found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], said: str | None
) -> None:
    assert differs([found], [wanted]) == said
