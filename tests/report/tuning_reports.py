"""A session of tuning as it may have been, without searching: candidates by chance, with times made of their plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from tests.models import mlp

from weft.driver.build import build
from weft.records import Record
from weft.tune.features import Ints
from weft.tune.measure import Built, Failed, Interval, Measured, Outcome
from weft.tune.space import PlanSpace
from weft.tune.task_tuner import Trial
from weft.tune.tasks import Task, task_of
from weft.tune.tuning_session import TuneReport, Winner

FAILURES: Final = (
    Failed("plan", "", (("schedule", 0.01),)),
    Failed("error", ""),
    Failed("wrong", "", (("check", 0.02),)),
    Failed("raised", ""),
    Failed("memory", ""),
    Failed("timeout", ""),
    Failed("crash", ""),
)
"""One of each kind, which the first candidates of the first kernel are."""

STAGES: Final = (("parse", 0.001), ("schedule", 0.03), ("lower", 0.02), ("LLVM", 0.05))


def made_up_tasks() -> list[Task]:
    """Returns the kernels of a small network, with times that add up to 10 us."""
    made = build(mlp(), shapes={"batch": 4})
    tasks = [
        task_of(r, made.target, seconds=1e-6 * (5 - 2 * n), calls=n + 1) for n, r in enumerate(made.requests.values())
    ]
    return tasks[:3]


def tuning_report(*, count: int = 40, is_faster: bool = True) -> TuneReport:
    """Returns a session that tried *count* candidates for each of the first two kernels, and found a winner for the first."""
    tasks = made_up_tasks()
    spaces = [PlanSpace(t.program, t.target) for t in tasks[:2]]
    trials = {t.workload.digest: _trials(s, count, n == 0) for n, (t, s) in enumerate(zip(tasks, spaces, strict=False))}
    knobs = {t.workload.digest: s.knobs for t, s in zip(tasks, spaces, strict=False)}
    best = max(trials[tasks[0].workload.digest], key=lambda t: t.score)
    winners = [_winner(tasks[0], best)] if is_faster else []
    ratio = Interval(0.78, 0.8, 0.82) if is_faster else None
    return TuneReport(tasks, trials, winners, 75.0, "it was interrupted", ratio, knobs, run_seconds=10e-6)


def _trials(space: PlanSpace, count: int, with_failures: bool) -> list[Trial]:
    points = space.sample(np.random.default_rng(0), count)
    failures: Sequence[Failed] = FAILURES if with_failures else ()
    return [_trial(space, p, n, failures[n] if n < len(failures) else None) for n, p in enumerate(points)]


def _trial(space: PlanSpace, point: Ints, n: int, failure: Failed | None) -> Trial:
    text = str(space.open_plan(point))
    if failure is not None:
        return Trial(point, text, Outcome(text, None, failure), 0.0, n / 4)
    built = Built(b"", 0, (), str(space.schedule(point)[1]), "[]", STAGES)
    middle = 0.8 + 0.2 * float(point[0]) + 0.01 * (n % 7)
    times = Measured(
        (middle,), (1.0,), Interval(middle - 0.02, middle, middle + 0.02), middle > 1.1, 0.0, (("time", 0.04),)
    )
    return Trial(point, text, Outcome(text, built, times), 1 / middle, n / 4)


def _winner(task: Task, best: Trial) -> Winner:
    assert best.outcome.built is not None
    plan = best.outcome.built.plan
    record = Record(
        task.workload.digest, "machine", "0", plan, 4e-6, 3.9e-6, 4.1e-6, baseline=5e-6, samples=30, verified=True
    )
    return Winner(task, record, Interval(0.78, 0.8, 0.82))
