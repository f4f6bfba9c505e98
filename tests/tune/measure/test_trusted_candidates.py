"""Candidates are scheduled without proofs that only refuse: their results are compared, and winners are proved."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from tests.replay.machines import MACHINES
from tests.tune.measure.programs import job, random_plans
from tests.tune.space.test_plan_space import PROGRAMS

from weft.schedule import trusting
from weft.targets import Target, host, parse_target
from weft.tune.measure import BuildJob, Built, Failed, Limits, Measurer, build
from weft.tune.space import PlanSpace

QUICK = Limits(seconds=0.002)
RUNNING_SUM = """
def running_sum(A: f32[64], B: f32[64]):
    for i in range(0, 64):
        with block("B", vi=spatial(64, i)):
            reads(A[vi], B[max(vi - 1, 0)])
            writes(B[vi])
            B[vi] = select(1 <= vi, B[max(vi - 1, 0)], 0.0) + A[vi]
"""
SERIAL = BuildJob(RUNNING_SUM, None, host(), template="tests.tune.templates:leave_serial")
IN_VECTORS = "tests.tune.templates:vectorize_at_once"  # of the sum, each iteration of which needs the one before


def test_an_illegal_candidate_is_caught_by_its_results_and_then_by_proofs() -> None:
    with ThreadPoolExecutor(1) as executor:
        measurer = Measurer(SERIAL, executor, executor, limits=QUICK)
        measurer.task = replace(SERIAL, template=IN_VECTORS)
        (found,) = measurer.submit([""])
        assert isinstance(found.built, Built)
        assert isinstance(found.result, Failed)
        assert found.result.kind == "wrong"
        again = measurer.again("", QUICK)
    assert again.built is None
    assert isinstance(again.result, Failed)
    assert again.result.kind == "plan"
    assert "vectorize(loop i) is not legal" in again.result.message


def test_a_legal_candidate_is_the_same_code() -> None:
    for plan in islice(random_plans(), 3):
        trusted, proved = (build(replace(job(plan=plan), trusted=t)) for t in (True, False))
        assert isinstance(trusted, Built)
        assert isinstance(proved, Built)
        assert trusted.code == proved.code


@pytest.mark.parametrize(("name", "machine"), [("layer", MACHINES["avx512"]), ("product", parse_target("opencl"))])
def test_a_legal_schedule_is_the_same_program(name: str, machine: Target) -> None:
    space = PlanSpace(PROGRAMS[name], machine)
    for point in space.sample(np.random.default_rng(2), 2):
        with trusting():
            trusted, _ = space.schedule(point)
        assert str(trusted.program) == str(space.schedule(point)[0].program)
