"""Sessions that are killed, whose candidates fail, or whose disk is full: nothing is lost, nothing wrong is recorded."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import pytest
from tests.tune.test_tuning_session import ONE_KERNEL, Machine, tune

from weft.records import Store
from weft.support.errors import RecordsError
from weft.tune import tune_model
from weft.tune import tuning_session as sessions
from weft.tune.measure import Failed, Interval, Measured, RunJob, measurer
from weft.tune.tuning_session import Status

FASTER: Final = Interval(0.7, 0.8, 0.9)


@pytest.fixture(autouse=True)
def threads_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds and runs in threads of this process; the tuned model is always faster."""
    monkeypatch.setattr(sessions, "local_executors", lambda **_: (ThreadPoolExecutor(1), ThreadPoolExecutor(1)))
    monkeypatch.setattr(tune_model, "compare_models", lambda *_: FASTER)
    monkeypatch.setattr(measurer, "run", Machine(0.5))


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "tune.db"


def plans_kept(path: Path) -> set[str]:
    """Returns the candidates in a database that is whole."""
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with Store(path, read_only=True) as store:
        return {m.plan for m in store.measurements() if m.origin}


def killed_after(path: Path, count: int, told: Any) -> None:
    """Tunes until *count* candidates were told of, then is killed by SIGKILL."""

    def watch(status: Status) -> None:
        told.send(status.trials)
        if status.trials == count:
            os.kill(os.getpid(), signal.SIGKILL)

    tune(path, ONE_KERNEL, trials=50, watch=watch)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_tuner_that_is_killed_loses_nothing_and_the_next_goes_on(database: Path) -> None:
    told, tell = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=killed_after, args=(database, 4, tell))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert [told.recv() for _ in range(4)] == [1, 2, 3, 4]
    kept = plans_kept(database)
    assert len(kept) == 4
    report = tune(database, ONE_KERNEL, trials=2)
    assert not {t.plan for trials in report.trials.values() for t in trials} & kept
    assert report.winners  # by what was measured before


class Hostile(Machine):
    """A machine on which all candidates but each sixth fail, each in another way."""

    def __init__(self, ratio: float) -> None:
        super().__init__(ratio)
        self.kinds = cycle(("timeout", "crash", "memory", "wrong", "raised", ""))

    def __call__(self, job: RunJob) -> Measured | Failed:  # type: ignore[override]
        kind = "" if job.seed else next(self.kinds)
        return Failed(kind, "as told") if kind else super().__call__(job)  # type: ignore[arg-type]


def test_candidates_that_fail_are_kept_as_failures_and_win_nothing(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurer, "run", Hostile(0.5))
    (winner,) = tune(database, ONE_KERNEL, trials=48).winners  # few others' code may be the incumbent's own
    with Store(database) as store:
        failed = [m for m in store.measurements() if m.failure]
        assert {m.failure for m in failed} == {"timeout", "crash", "memory", "wrong", "raised"}
        assert all(m.seconds is None for m in failed)
        assert [r.plan for r in store.records()] == [winner.record.plan]


def test_a_disk_that_is_full_ends_a_session_in_words_and_keeps_what_was_measured(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SmallDisk(Store):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            pages = self._connection.execute("PRAGMA page_count").fetchone()[0]
            self._connection.execute(f"PRAGMA max_page_count={pages + 6}")

    with monkeypatch.context() as full:
        full.setattr(tune_model, "Store", SmallDisk)
        with pytest.raises(RecordsError) as told:
            tune(database, ONE_KERNEL, trials=60)
    assert str(told.value) == (
        f"{database} can't be written: the disk is full\n  hint: make room; what was written before is kept"
    )
    kept = plans_kept(database)
    assert kept
    report = tune(database, ONE_KERNEL, trials=2)
    assert not {t.plan for trials in report.trials.values() for t in trials} & kept
    assert report.winners
