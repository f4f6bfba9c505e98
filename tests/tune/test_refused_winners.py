"""A candidate that was fast while it was trusted, and is refused when all checks are made, gives way to the next fastest."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tune.measure.test_trusted_candidates import RUNNING_SUM
from tests.tune.templates import share_or_unroll

from weft.loop import parse_program
from weft.records import Store
from weft.targets import host
from weft.tune.measure import Failed, Interval, Measured, RunJob, measurer
from weft.tune.strategies import strategy
from weft.tune.task_tuner import VERIFIED, TaskTuner
from weft.tune.tasks import Task, task_of_template
from weft.tune.tuning_session import Session, TuneOptions

SHARED, UNROLLED = ("kind: Choose(value='parallel')\n", "kind: Choose(value='unroll')\n")


class Trusting:
    """A machine on which what is shared takes 0.5 of the time, what is written out 0.8; *wrong* ones for other inputs."""

    def __init__(self, wrong: tuple[str, ...] = ()) -> None:
        self.wrong = wrong

    def __call__(self, job: RunJob) -> Measured | Failed:
        plan = job.candidate.plan
        if job.seed > 0 and plan in self.wrong:
            return Failed("wrong", "the largest error is 9 times what rounding explains")
        ratio = {SHARED: 0.5, UNROLLED: 0.8}.get(plan, 1.0)
        return Measured((1e-4 * ratio,), (1e-4,), Interval(ratio, ratio, ratio), is_early=False, error=0.0)


@pytest.fixture
def task() -> Task:
    return task_of_template(share_or_unroll, parse_program(RUNNING_SUM), host())


@pytest.fixture
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as made:
        yield made


def searched(task: Task, executor: Executor) -> TaskTuner:
    tuner = TaskTuner(task, strategy("random"), executor, executor)
    assert len(list(tuner.run(lambda: tuner.begun < 3))) == 3
    assert tuner.best == (SHARED, 2.0)
    return tuner


def test_the_next_fastest_wins_where_proofs_refuse_the_first(
    task: Task, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurer, "run", Trusting())
    tuner = searched(task, executor)
    found = tuner.verified(VERIFIED)
    assert found is not None
    assert found.built is not None
    assert found.built.plan == UNROLLED
    assert [(o.plan, o.result.kind) for o in tuner.refused if isinstance(o.result, Failed)] == [(SHARED, "plan")]
    assert tuner.speedup == 1.25


def test_nothing_wins_where_all_are_wrong_for_other_inputs(
    task: Task, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurer, "run", Trusting(wrong=(UNROLLED,)))
    tuner = searched(task, executor)
    assert tuner.verified(VERIFIED) is None
    assert [o.result.kind for o in tuner.refused if isinstance(o.result, Failed)] == ["plan", "wrong"]
    assert (tuner.best, tuner.speedup) == (None, 1.0)


def test_a_session_records_the_next_and_takes_no_refused_one_for_fast_again(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurer, "run", Trusting())
    monkeypatch.setattr(Session, "_executors", lambda _: (ThreadPoolExecutor(1), ThreadPoolExecutor(1)))
    with Store(tmp_path / "tune.db") as store:
        for trials in (3, 1):
            session = Session([replace(task, seconds=1.0)], TuneOptions(trials=trials, tuner="random"), store)
            assert [w.record.plan for w in session.run().winners] == [UNROLLED]
        (tuner,) = session.tuners.values()
        assert tuner.refused == []
