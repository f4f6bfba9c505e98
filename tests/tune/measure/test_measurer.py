"""Many plans of a kernel, built and run by any two executors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from multiprocessing import get_context
from typing import Any

import pytest
from tests.tune.measure.programs import job, random_plans

from weft.support.errors import RuntimeFailure
from weft.tune.measure import (
    Built,
    Failed,
    Interval,
    Limits,
    Measured,
    Measurer,
    RunJob,
    build,
    local_executors,
    shares_text,
    stage_seconds,
)

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


class Answers(Executor):
    """Builds, and answers what is to be run with results that are given; notes the seeds."""

    def __init__(self, *results: Measured | Failed) -> None:
        self.results, self.seeds = list(results), list[int]()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if isinstance(args[0], RunJob):
            self.seeds.append(args[0].seed)
            future.set_result(self.results.pop(0))
        else:
            future.set_result(build(args[0]))
        return future


def times(low: float, middle: float, high: float, error: float = 0.0) -> Measured:
    return Measured((middle,), (1.0,), Interval(low, middle, high), is_early=False, error=error)


def test_a_winner_is_measured_in_several_places() -> None:
    runner = Answers(times(0.5, 0.6, 0.7), times(0.4, 0.8, 0.9, error=0.5), times(0.6, 0.7, 0.8))
    found = Measurer(job(), runner, runner, seed=4).again(next(random_plans()), QUICK).measured
    assert found is not None
    assert runner.seeds == [5, 6, 7]
    assert found.ratio == Interval(0.4, 0.7, 0.9)
    assert (found.times, found.incumbent, found.error) == ((0.6, 0.8, 0.7), (1.0, 1.0, 1.0), 0.5)


@pytest.mark.parametrize("second", [times(0.9, 0.95, 1.01), Failed("wrong", "with these inputs")])
def test_it_ends_where_it_is_none(second: Measured | Failed) -> None:
    runner = Answers(times(0.5, 0.6, 0.7), second, times(0.5, 0.6, 0.7))
    found = Measurer(job(), runner, runner).again(next(random_plans()), QUICK)
    assert len(runner.results) == 1
    if isinstance(second, Failed):
        assert found.result == second
    else:
        assert found.measured is not None
        assert found.measured.ratio.high == 1.01


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
