"""Workers that hang, crash, run out of memory or lose their parent: a job fails, nothing else does."""

from __future__ import annotations

import gc
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.yardstick import slowness
from tests.tune.measure import hostile
from tests.tune.measure.programs import FAR_OUTSIDE, FOREVER, NOTHING_WRITTEN, job, kernel, rules_choice, run_job

from weft.support.errors import DeviceError, InputError, RuntimeFailure
from weft.tune.measure import Built, Failed, LocalExecutor, Measured, build, local_executors, run
from weft.tune.measure import tuner_worker as started
from weft.tune.measure.worker_settings import WorkerSettings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are ended by means of Linux")

SECONDS = 2.0


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    """Two workers that may hang for a moment only."""
    with LocalExecutor(2, seconds=SECONDS, memory=1 << 30) as made:
        yield made


def children() -> set[int]:
    return {int(pid) for p in Path("/proc/self/task").glob("*/children") for pid in p.read_text().split()}


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody asks for its status has, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def comes_true(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize(
    ("call", "arguments", "kind", "message"),
    [
        (hostile.hang, (), "timeout", f"it took more than {SECONDS:g} s"),
        (hostile.segfault, (), "crash", "it was killed by SIGSEGV"),
        (hostile.leave, (3,), "crash", "it ended with the status 3"),
        (hostile.abort, ("LLVM ERROR: odd",), "crash", "it was killed by SIGABRT\nLLVM ERROR: odd"),
        (
            hostile.abort,
            ("LLVM ERROR: out of memory",),
            "memory",
            "it was killed by SIGABRT\nLLVM ERROR: out of memory",
        ),
        (hostile.eat_memory, (), "memory", "there is no memory left in the worker"),
    ],
)
def test_a_hostile_job_fails_and_no_other(
    executor: LocalExecutor, call: Callable[..., Any], arguments: tuple[Any, ...], kind: str, message: str
) -> None:
    before = [executor.submit(hostile.square, n) for n in range(4)]
    bad = executor.submit(call, *arguments)
    after = [executor.submit(hostile.square, n) for n in range(4)]
    assert bad.result() == Failed(kind, message)  # type: ignore[arg-type]
    assert [f.result() for f in before + after] == [0, 1, 4, 9] * 2


def test_exceptions_come_back(executor: LocalExecutor) -> None:
    with pytest.raises(InputError, match="mind the gap") as error:
        executor.submit(hostile.fail, "mind the gap").result()
    assert error.value.hint == "none"
    with pytest.raises(RuntimeFailure, match="Unpicklable: odd"):
        executor.submit(hostile.fail_oddly).result()


@pytest.mark.parametrize(("text", "kind"), [(FOREVER, "timeout"), (FAR_OUTSIDE, "crash"), (NOTHING_WRITTEN, "wrong")])
def test_a_hostile_candidate_fails_and_no_other(executor: LocalExecutor, text: str, kind: str) -> None:
    jobs = [run_job(rules_choice()), run_job(kernel(text)), run_job(rules_choice())]
    first, bad, last = [f.result() for f in [executor.submit(run, j) for j in jobs]]
    assert isinstance(bad, Failed)
    assert bad.kind == kind
    assert isinstance(first, Measured)
    assert isinstance(last, Measured)


def test_many_crashes_lose_nothing(executor: LocalExecutor) -> None:
    futures = [
        executor.submit(hostile.leave, 1) if n % 4 == 2 else executor.submit(hostile.square, n) for n in range(12)
    ]
    found = [f.result() for f in futures]
    assert [x for n, x in enumerate(found) if n % 4 != 2] == [n * n for n in range(12) if n % 4 != 2]
    assert all(isinstance(x, Failed) for n, x in enumerate(found) if n % 4 == 2)


def test_results_are_those_of_this_process(executor: LocalExecutor) -> None:
    there, here = executor.submit(build, job()).result(), build(job())
    assert isinstance(there, Built)
    assert replace(there, stages=()) == replace(here, stages=())
    assert isinstance(executor.submit(run, run_job(there, rules_choice())).result(), Measured)


def test_a_worker_is_started_once_and_printing_does_not_disturb_it() -> None:
    with LocalExecutor() as executor:
        pids = {executor.submit(hostile.pid).result() for _ in range(5)}
        assert {*pids, executor.submit(hostile.print_much).result()} == set(executor.pids) == pids
        assert len(pids) == 1


def test_a_process_that_was_told_wrong_results_is_replaced() -> None:
    with LocalExecutor() as executor:
        (pid,) = executor.pids if comes_true(lambda: bool(executor.pids)) else (0,)
        assert executor.submit(run, run_job(kernel(NOTHING_WRITTEN))).result().kind == "wrong"  # type: ignore[union-attr]
        assert executor.submit(hostile.pid).result() != pid


def test_an_idle_worker_that_is_killed_is_replaced() -> None:
    with LocalExecutor() as executor:
        pid = executor.submit(hostile.pid).result()
        os.kill(pid, signal.SIGKILL)
        assert comes_true(lambda: is_gone(pid))
        assert executor.submit(hostile.square, 3).result() == 9


def test_nothing_is_left_of_an_executor() -> None:
    before, files = children(), set(os.listdir("/proc/self/fd"))
    with LocalExecutor(2, seconds=0.5) as executor:
        found = [executor.submit(f) for f in (hostile.hang, hostile.segfault, hostile.pid)]
        wait(found)
        assert children() - before == set(executor.pids)
    assert children() == before
    assert set(os.listdir("/proc/self/fd")) == files
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(hostile.pid)


def test_jobs_that_wait_can_be_cancelled() -> None:
    with LocalExecutor(seconds=20) as executor:
        running = executor.submit(hostile.square, 5, 0.3)
        waiting = [executor.submit(hostile.square, n) for n in range(3)]
        assert waiting[1].cancel()
        assert comes_true(running.running)
        executor.shutdown(wait=False, cancel_futures=True)
    assert running.result() == 25
    assert all(f.cancelled() for f in waiting)


def test_an_executor_that_is_dropped_ends_its_workers_at_once() -> None:
    executor = LocalExecutor(seconds=60)
    executor.submit(hostile.square, 1).result()
    executor.submit(hostile.hang)
    (pid,) = executor.pids
    del executor
    gc.collect()
    assert comes_true(lambda: is_gone(pid))


PARENT = """
import sys, time
from tests.tune.measure import hostile
from tests.tune.measure.programs import FOREVER, kernel, run_job
from weft.tune.measure import LocalExecutor, run
executor = LocalExecutor(3, seconds=600)
for _ in range(9):
    executor.submit(hostile.pid).result()
executor.submit(run, run_job(kernel(FOREVER)))
executor.submit(hostile.hang)
time.sleep(0.2)
print(*executor.pids, flush=True)
time.sleep(END)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("end", ["600", "0"])
def test_workers_end_with_their_parent(end: str) -> None:
    code = PARENT.replace("END", end)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(p) for p in parent.stdout.readline().split()]
        assert len(pids) == 3
        if end != "0":
            assert not any(map(is_gone, pids))
            parent.kill()
        parent.wait()
    assert comes_true(lambda: all(map(is_gone, pids)))


def test_the_runner_has_cores_of_its_own() -> None:
    builder, runner = local_executors(builders=1)
    with builder, runner:
        assert runner.submit(hostile.cores).result() == {max(os.sched_getaffinity(0))}
        assert builder.submit(hostile.cores).result() == os.sched_getaffinity(0)


def test_settings_are_text() -> None:
    for settings in (WorkerSettings(), WorkerSettings((1, 3), 10, 1 << 20)):
        assert WorkerSettings.from_text(settings.to_text()) == settings


def test_a_worker_that_can_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(started, "MODULE", "weft.tune.no_such_module")
    with LocalExecutor() as executor, pytest.raises(DeviceError) as error:
        executor.submit(hostile.pid).result()
    assert "a worker of the tuner does not start: it ended with the status 1" in str(error.value)
    assert "No module named weft.tune.no_such_module" in str(error.value)


@pytest.mark.timed
def test_a_worker_starts_within_a_second() -> None:
    def seconds() -> float:
        before = _seconds_of_children()
        with LocalExecutor() as executor:
            executor.submit(hostile.pid).result()
        return _seconds_of_children() - before

    assert min(seconds() / slowness() for _ in range(3)) < 1.0


def _seconds_of_children() -> float:
    """The processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
