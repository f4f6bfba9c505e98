"""Many plans of a kernel, built and run by any two executors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from multiprocessing import get_context

import pytest
from tests.tune.measure.programs import job, random_plans

from weft.support.errors import RuntimeFailure
from weft.tune.measure import Built, Failed, Limits, Measured, Measurer, local_executors, shares_text, stage_seconds

QUICK = Limits(seconds=0.002)


@pytest.fixture(scope="module")
def local() -> Iterator[tuple[Executor, Executor]]:
    builder, runner = local_executors()
    with builder, runner:
        yield builder, runner


def test_plans_are_measured_once_each(local: tuple[Executor, Executor]) -> None:
    plans = list(islice(random_plans(), 10))
    measurer = Measurer(job(), *local, limits=QUICK)
    found = list(measurer.submit([*plans, plans[0], plans[9]]))
    assert Counter(o.plan for o in found) == Counter([*plans, plans[0], plans[9]])
    assert all(isinstance(o.result, Measured) and isinstance(o.built, Built) for o in found)
    again = list(measurer.submit(plans))
    assert [o.plan for o in again] == plans
    assert {id(o) for o in again} == {id(o) for o in found}


def test_failures_are_outcomes(local: tuple[Executor, Executor]) -> None:
    good = next(random_plans())
    found = {o.plan: o for o in Measurer(job(), *local, limits=QUICK).submit(["nonsense\n", good])}
    result = found["nonsense\n"].result
    assert isinstance(result, Failed)
    assert result.kind == "plan"
    assert found["nonsense\n"].built is None
    assert found["nonsense\n"].measured is None
    assert found[good].measured is not None


def test_a_better_plan_becomes_the_incumbent(local: tuple[Executor, Executor]) -> None:
    measurer = Measurer(job(), *local, limits=QUICK)
    good, bad = measurer.submit([next(random_plans()), "nonsense\n"])
    if good.built is None:
        good, bad = bad, good
    measurer.promote(good)
    assert measurer.incumbent is good.built
    with pytest.raises(RuntimeFailure, match="is no incumbent"):
        measurer.promote(bad)


def test_plans_are_taken_as_there_is_room(local: tuple[Executor, Executor]) -> None:
    taken: list[str] = []

    def plans() -> Iterator[str]:
        for plan in random_plans():
            taken.append(plan)
            yield plan

    outcomes = Measurer(job(), *local, limits=QUICK, in_flight=3).submit(plans())
    for n, _ in zip(range(5), outcomes, strict=False):
        assert len(taken) <= n + 4
    outcomes.close()  # type: ignore[attr-defined]


def test_any_executors_will_do() -> None:
    plans = list(islice(random_plans(), 4))
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(1, get_context("spawn")) as processes:
        for builder, runner in ((threads, threads), (processes, threads)):
            found = list(Measurer(job(), builder, runner, limits=QUICK).submit(plans))
            assert {o.plan for o in found if o.measured is not None} == set(plans)


def test_an_incumbent_that_can_not_be_built_is_an_error() -> None:
    with ThreadPoolExecutor(1) as threads, pytest.raises(RuntimeFailure, match="the incumbent can't be built"):
        Measurer(replace(job(), plan="nonsense\n"), threads, threads)


def test_shares_of_stages_are_told() -> None:
    with ThreadPoolExecutor(1) as threads:
        found = list(Measurer(job(), threads, threads, limits=QUICK).submit(islice(random_plans(), 2)))
    stages = stage_seconds(found)
    assert list(stages) == ["parse", "schedule", "lower", "LLVM", "link", "inputs", "check", "time"]
    assert all(x >= 0 for x in stages.values())
    assert shares_text({"LLVM": 3.0, "time": 1.0}) == "LLVM 75%, time 25%"
