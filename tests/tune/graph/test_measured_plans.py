"""Whatever was measured, the plan that is solved by it computes what the model does."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

import numpy as np
import pytest
from tests.driver.results.test_random_plans import NETWORKS, expected

import weft
from weft.cost import Candidate, Choosing, CostSource, D, Decision, by_cost
from weft.driver.build import fuse_graph, optimize_graph
from weft.driver.measure.random_inputs import random_inputs
from weft.driver.options import CompileOptions
from weft.frontends import to_graph
from weft.runtime.model import Model
from weft.support.digest import digest
from weft.targets import host

CONVOLUTIONS = ("resnet", "mobilenet", "dcgan")


class RandomTimes(CostSource):
    """Times between 1 and 16 by a seed, for alternatives and for moving values, whatever is estimated."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def cycles(self, subject: str, decision: Decision, estimate: float) -> float:
        return self._time(subject, str(decision)) if isfinite(estimate) else estimate

    def moving(self, subject: str, estimate: float) -> float:
        return self._time(subject)

    def ranked(self, subject: str, candidates: Iterable[Candidate[D]]) -> tuple[Candidate[D], ...]:
        return tuple(by_cost([Candidate(c.decision, self._time(subject, str(c.decision))) for c in candidates]))

    def _time(self, *about: str) -> float:
        return 1.0 + int(digest(*about, str(self.seed))[:4], 16) % 16


def check(name: str, seed: int) -> None:
    model, options, planner = NETWORKS[name](), CompileOptions(), Choosing(host(), costs=RandomTimes(seed))
    fuse_graph(optimize_graph(to_graph(model), host(), options, None, planner=planner), host(), options, planner)
    made = Model(weft.build(model, "cpu", graph_plan=planner.plan).package)
    found = made(**random_inputs(made.inputs))
    for a, b in zip(found if isinstance(found, tuple) else (found,), expected(name), strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-4, atol=1e-5, err_msg=f"{name}, seed {seed}")


@pytest.mark.parametrize("name", CONVOLUTIONS[:1])
def test_a_plan_by_random_times_is_right(name: str) -> None:
    check(name, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_any_plan_by_random_times_is_right(name: str, seed: int) -> None:
    check(name, seed)
