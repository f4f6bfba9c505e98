"""A session keeps all that it measures, goes on where it stopped, and records only what is faster beyond noise."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import numpy as np
import onnx
import pytest
from tests.models import mlp
from tests.tune.graph.made_up_times import MadeUpMachine, by_panel

import weft
from weft.cli.records.export_pack import export_packs
from weft.cost import Panel, Parallel, Plan, addressed
from weft.driver.measure.random_inputs import random_inputs
from weft.driver.measure.roofline import Level, Roofs
from weft.driver.options import CompileOptions
from weft.records import Record, Store
from weft.runtime.model import Model
from weft.support.errors import InputError, ToolchainError
from weft.targets import Target, host
from weft.tune import tune_model
from weft.tune import tuning_session as sessions
from weft.tune.measure import Interval, Measured, RunJob, measurer
from weft.tune.space import PlanSpace
from weft.tune.tasks import Task, task_of
from weft.tune.tuning_session import Status, TuneReport, Winner

SHAPES: Final = {"batch": 4}


@pytest.fixture(autouse=True)
def threads_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds and runs in threads of this process."""
    monkeypatch.setattr(sessions, "local_executors", lambda **_: (ThreadPoolExecutor(1), ThreadPoolExecutor(1)))


class Machine:
    """A machine on which the candidates whose code is in a given class take so much of the incumbent's time."""

    def __init__(self, ratio: float, width: float = 0.01) -> None:
        self.ratio, self.width, self.runs = ratio, width, 0

    def __call__(self, job: RunJob) -> Measured:
        self.runs += 1
        assert job.incumbent is not None
        is_other = job.candidate.digest != job.incumbent.digest
        middle = self.ratio if is_other else 1.0
        ratio = Interval(middle * (1 - self.width), middle, middle * (1 + self.width))
        return Measured((1e-4 * middle,), (1e-4,), ratio, is_early=False, error=0.0)


ONE_KERNEL: Final = mlp(widths=(24, 64))
"""Whatever its kernels take, it is the one that is tuned."""


def tune(path: Path, model: onnx.ModelProto | None = None, **options: object) -> TuneReport:
    given: dict[str, Any] = {
        "trials": 12,
        "tuner": "random",
        "shapes": SHAPES,
        "graph": False,
        "roofline": False,
        **options,
    }
    return tune_model.tune(mlp() if model is None else model, records=path, **given)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "tune.db"


@pytest.fixture
def is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the tuned model be faster, whatever it is."""
    monkeypatch.setattr(tune_model, "compare_models", lambda *_: Interval(0.7, 0.8, 0.9))


def test_what_is_faster_is_recorded_and_followed(
    database: Path, monkeypatch: pytest.MonkeyPatch, is_faster: None
) -> None:
    monkeypatch.setattr(measurer, "run", Machine(0.5))
    report = tune(database)
    assert report.winners
    with Store(database) as store:
        assert {r.workload for r in store.records()} == {w.task.workload.digest for w in report.winners}
        assert all(r.verified and r.high < (r.baseline or 0) for r in store.records())
    plans = {w.task.workload.digest: w.record.plan for w in report.winners}
    followed = weft.build(mlp(), options=CompileOptions(records=str(database)), shapes=SHAPES).requests
    assert {r.workload: str(r.plan) for r in followed.values() if r.plan is not None} == plans


@pytest.mark.parametrize("ratio", [1.0, 1.3, 0.995])
def test_nothing_else_is(database: Path, monkeypatch: pytest.MonkeyPatch, is_faster: None, ratio: float) -> None:
    monkeypatch.setattr(measurer, "run", Machine(ratio))
    report = tune(database)
    assert (report.winners, report.ratio) == ([], None)
    with Store(database) as store:
        assert list(store.records()) == []
        assert len(store.measurements()) > 0


def test_kernels_that_make_the_model_slower_are_not_recorded(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurer, "run", Machine(0.5))
    monkeypatch.setattr(tune_model, "compare_models", lambda *_: Interval(0.9, 1.0, 1.1))
    report = tune(database)
    assert (report.winners, report.ratio) == ([], None)
    with Store(database) as store:
        assert list(store.records()) == []


@pytest.mark.parametrize("most", [4, 2, 0])
def test_winners_that_save_most_are_kept_where_all_are_no_gain(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = {"one": (8.0, 0.9), "two": (1.0, 0.5), "three": (4.0, 0.5), "four": (2.0, 0.9)}  # 0.8, 0.5, 2.0 and 0.2 s
    winners = [
        Winner(Mock(Task, seconds=seconds), Mock(Record, plan=name), Interval(ratio, ratio, ratio))
        for name, (seconds, ratio) in saved.items()
    ]
    tried: list[list[str]] = []

    def compare(some: list[Winner], *_: object) -> Interval | None:
        tried.append([w.record.plan for w in some])
        return Interval(0.7, 0.8, 0.9) if len(some) <= most else None

    monkeypatch.setattr(tune_model, "_compare_with", compare)
    ratio = tune_model._keep_together(None, Mock(), winners, Mock(), None, 1)
    order = ["three", "one", "two", "four"]
    assert tried == [order[:n] for n in (4, 2, 1) if n >= most]
    assert [w.record.plan for w in winners] == order[:most]
    assert (ratio is None) == (most == 0)


def test_a_session_goes_on_where_it_stopped(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(1.2)
    monkeypatch.setattr(measurer, "run", machine)
    first = tune(
        database, ONE_KERNEL, seed=1
    )  # of two kernels alike, one session might tune the one, the next the other
    with Store(database) as store:
        kept = {m.plan for m in store.measurements()}
    second = tune(database, ONE_KERNEL, seed=1)
    assert first.trials.keys() == second.trials.keys()
    again = {t.plan for trials in second.trials.values() for t in trials}
    assert {t.plan for trials in first.trials.values() for t in trials} <= kept
    assert again
    assert not again & kept


class SlowingMachine(Machine):
    """A machine that is three times as slow after the first candidate, which gains nothing."""

    def __call__(self, job: RunJob) -> Measured:
        if self.runs == 0:
            return Machine.__call__(self, replace(job, incumbent=job.candidate))
        found = super().__call__(job)
        return replace(found, times=(3 * found.times[0],), incumbent=(3 * found.incumbent[0],))


def test_what_was_fast_before_a_kill_wins_later_whatever_the_machine_s_speed(
    database: Path, monkeypatch: pytest.MonkeyPatch, is_faster: None
) -> None:
    monkeypatch.setattr(measurer, "run", SlowingMachine(0.5))
    monkeypatch.setattr(sessions.Session, "_winner", lambda *_: None)  # it is killed before
    assert tune(database, ONE_KERNEL, trials=6).winners == []
    monkeypatch.undo()
    monkeypatch.setattr(sessions, "local_executors", lambda **_: (ThreadPoolExecutor(1), ThreadPoolExecutor(1)))
    monkeypatch.setattr(tune_model, "compare_models", lambda *_: Interval(0.7, 0.8, 0.9))
    monkeypatch.setattr(measurer, "run", FastWhenMeasuredAgain(1.2))
    (winner,) = tune(database, ONE_KERNEL, trials=1).winners
    assert winner.ratio.middle == 0.5


class FastWhenMeasuredAgain(Machine):
    """A machine where what is measured again, in other memory, takes half the time."""

    def __call__(self, job: RunJob) -> Measured:
        return Machine(0.5)(job) if job.seed else super().__call__(job)


def test_an_interrupted_session_keeps_all(database: Path, monkeypatch: pytest.MonkeyPatch, is_faster: None) -> None:
    monkeypatch.setattr(measurer, "run", Machine(0.5))
    seen: list[Status] = []

    def watch(status: Status) -> None:
        seen.append(status)
        if len(seen) == 3:
            raise KeyboardInterrupt

    report = tune(database, watch=watch)
    assert report.reason == "it was interrupted"
    assert report.winners
    with Store(database) as store:
        assert len([m for m in store.measurements() if m.origin]) == 3


def test_what_one_thread_can_not_tell_stays_as_it_is(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = weft.build(mlp(64, widths=(24, 512, 512, 10)), "cpu")
    tasks = [task_of(r, made.target) for r in made.requests.values()]
    shared = [t for t in tasks if t.settled(1)]
    assert any(isinstance(s.decision, Parallel) and s.decision.loops for t in shared for s in t.settled(1))
    assert all(isinstance(s.decision, Parallel) for t in shared for s in t.settled(1))
    assert not any(t.settled(2) for t in tasks)
    alone = PlanSpace(shared[0].program, made.target, shared[0].settled(1))
    kinds = {k.address[:2] for k in alone.knobs}
    assert not kinds & {(s.subject, "Parallel") for s in shared[0].settled(1)}
    sessions_ = sessions.Session(shared, sessions.TuneOptions(trials=4, tuner="random"), Store(database))
    monkeypatch.setattr(measurer, "run", Machine(1.2))
    assert all(t.plan for trials in sessions_.run().trials.values() for t in trials)
    for tuner in sessions_.tuners.values():
        assert tuner.space.fixed.items() >= addressed(tuner.task.settled(1)).items()


def test_a_search_begins_with_the_plan_of_the_pack(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_faster: None
) -> None:
    monkeypatch.setattr(measurer, "run", Machine(0.5))
    plans = {w.record.plan for w in tune(database, ONE_KERNEL, trials=8).winners}
    with Store(database) as store:
        export_packs(store, tmp_path / "packs")
    monkeypatch.setenv("WEFT_PACK_DIR", str(tmp_path / "packs"))
    again = tune(tmp_path / "new.db", ONE_KERNEL, trials=8)
    first = [trials[0] for trials in again.trials.values() if trials]
    assert any(t.outcome.built is not None and t.outcome.built.plan in plans for t in first)
    with Store(tmp_path / "new.db") as store:
        assert plans & {r.plan for r in store.records()}


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> int:
    """A machine where matrix products take half the time by panels of one vector, of so many columns, and no kernel is faster."""
    panel = host().isa.vector_bits // 32
    MadeUpMachine(by_panel(panel)).install(monkeypatch, is_built=True)
    monkeypatch.setattr(measurer, "run", Machine(1.2))
    return panel


WIDE: Final = mlp(widths=(24, 64, 64))

FEW_ROWS: Final = {"batch": 2}
"""So few that panels of any width are about as good, and all are tried."""


def tune_wide(path: Path, **options: Any) -> TuneReport:
    return tune_model.tune(
        WIDE, records=path, tuner="random", shapes=FEW_ROWS, roofline=False, **{"trials": 12, **options}
    )


def panels(plan: Plan) -> set[int]:
    return {s.decision.columns for s in plan.steps if isinstance(s.decision, Panel)}


def test_a_plan_of_the_graph_is_recorded_and_followed(database: Path, narrow: int, is_faster: None) -> None:
    seen: list[str] = []
    report = tune_wide(database, watch=lambda status: seen.append(status.task.name))
    assert report.graph is not None
    assert report.graph.kept is not None
    assert panels(report.graph.kept) == {narrow}
    assert report.ratio == Interval(0.7, 0.8, 0.9)
    assert report.measured <= 12
    assert seen[0] == "layouts and algorithms"
    made = weft.build(WIDE, options=CompileOptions(records=str(database)), shapes=FEW_ROWS)
    assert made.graph_plan == report.graph.kept
    assert made.package.notes["records"] == "the graph"
    plain = weft.build(WIDE, shapes=FEW_ROWS)
    assert panels(plain.graph_plan) != {narrow}
    inputs = random_inputs(plain.package.inputs)
    np.testing.assert_allclose(Model(made.package)(**inputs), Model(plain.package)(**inputs), rtol=1e-5, atol=1e-6)


def test_a_second_session_begins_with_the_plan_that_was_kept(database: Path, narrow: int, is_faster: None) -> None:
    first = tune_wide(database).graph
    again = tune_wide(database).graph
    assert first is not None
    assert again is not None
    assert again.before == first.kept
    assert again.kept is None
    with Store(database) as store:
        assert [r.plan for r in store.records()] == [str(first.kept)]


def test_a_plan_that_makes_the_model_slower_is_not_recorded(
    database: Path, narrow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune_model, "compare_models", lambda *_: Interval(0.98, 1.02, 1.06))
    report = tune_wide(database)
    assert report.graph is not None
    assert report.graph.trials
    assert (report.graph.kept, report.ratio) == (None, None)
    with Store(database) as store:
        assert list(store.records()) == []
    followed = weft.build(WIDE, options=CompileOptions(records=str(database)), shapes=FEW_ROWS)
    assert followed.graph_record is None


def test_kernels_are_those_of_the_plan_that_was_kept(
    database: Path, narrow: int, is_faster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurer, "run", Machine(0.5))
    report = tune_wide(database, trials=20)
    assert report.winners
    made = weft.build(WIDE, options=CompileOptions(records=str(database)), shapes=FEW_ROWS)
    assert made.graph_record is not None
    won = {w.task.workload.digest for w in report.winners}
    assert {r.workload for r in made.requests.values() if r.record is not None} == won


def test_an_interrupt_while_the_graph_is_searched_ends_the_session(
    database: Path, narrow: int, is_faster: None
) -> None:
    def watch(status: Status) -> None:
        raise KeyboardInterrupt

    report = tune_wide(database, watch=watch)
    assert report.reason == "it was interrupted"
    assert report.graph is not None
    assert report.measured == len(report.graph.trials) == 1


class CountedRoofs:
    """The roofs of a made-up core, and how often they were measured."""

    def __init__(self, speed: float) -> None:
        self.roofs, self.count = Roofs(speed, [Level("DRAM", inf, speed)]), 0

    def __call__(self, target: Target) -> Roofs:
        self.count += 1
        return self.roofs


@pytest.mark.parametrize(("speed", "is_tuned"), [(1e-6, False), (1e6, True)])
def test_kernels_at_their_limit_are_not_tuned(
    database: Path, monkeypatch: pytest.MonkeyPatch, speed: float, is_tuned: bool
) -> None:
    monkeypatch.setattr(measurer, "run", Machine(1.2))
    monkeypatch.setattr(tune_model, "measure_roofs", CountedRoofs(speed))
    report = tune(database, ONE_KERNEL, roofline=True)
    (task,) = report.tasks
    assert task.standing is not None
    assert task.standing.name == task.name
    assert task.room == 0.0 if not is_tuned else task.room > 0.9
    assert (report.measured > 0) == is_tuned
    assert is_tuned or report.reason == "there is nothing to tune"


def test_roofs_are_measured_where_one_thread_is_asked_about(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurer, "run", Machine(1.2))
    monkeypatch.setattr(tune_model, "measure_roofs", roofs := CountedRoofs(1e6))
    assert [t.standing for t in tune(database, ONE_KERNEL, trials=1, roofline=True, threads=2).tasks] == [None]
    assert [t.standing for t in tune(database, ONE_KERNEL, trials=1).tasks] == [None]
    assert roofs.count == 0


def test_a_tuner_that_lacks_a_package_is_refused_at_once(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    monkeypatch.delitem(sys.modules, "weft.tune.models.boosted_trees", raising=False)
    monkeypatch.setattr(tune_model, "build", None)  # nothing is compiled before
    with pytest.raises(ToolchainError, match="needs xgboost"):
        tune(database, tuner="sa-xgb")


def test_wrong_arguments(database: Path) -> None:
    with pytest.raises(InputError, match="there is no tuner 'magic'"):
        tune(database, tuner="magic")
    with pytest.raises(InputError, match="minutes is 0"):
        tune(database, minutes=0)


def test_the_module_is_the_function(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurer, "run", Machine(1.2))
    given: dict[str, Any] = {"trials": 2, "tuner": "random", "shapes": SHAPES, "roofline": False}
    assert isinstance(weft.tune(mlp(), records=database, **given), TuneReport)  # type: ignore[operator]


def test_a_search_begins_with_what_was_fast_for_like_kernels(
    database: Path, monkeypatch: pytest.MonkeyPatch, is_faster: None
) -> None:
    monkeypatch.setattr(measurer, "run", Machine(0.5))
    plans = {w.record.plan for w in tune(database, ONE_KERNEL, trials=8).winners}
    again = tune(database, ONE_KERNEL, shapes={"batch": 8}, trials=8)
    first = [trials[0] for trials in again.trials.values() if trials]
    assert any(t.outcome.built is not None and t.outcome.built.plan in plans for t in first)
