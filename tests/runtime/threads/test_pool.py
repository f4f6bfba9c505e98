"""The thread pool: every index once, whatever happens around it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from tests.runtime.conftest import FlatImage

from weft.native import _rt

SPIN_US = 50
"""How long a thread without work spins."""

CLOCK_OF_THREAD = 6
"""The lowest bits of Linux's number of the clock that counts a thread's processor time; those above are its own, inverted."""


def expected(n: int, times: int = 1) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return (np.arange(n, dtype=np.int64) ** 2 + 1) * times


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 64, 1001, 100_003])
def test_each_index_is_done_once(flat: FlatImage, n: int, threads: int) -> None:
    counts = np.zeros(n + 1, np.int64)
    _rt.call(flat.blob, flat.symbols["count"], [counts], [n], threads=threads)
    np.testing.assert_array_equal(counts[:n], expected(n))
    assert counts[n] == 0


def test_negative_extent_does_nothing(flat: FlatImage) -> None:
    counts = np.zeros(4, np.int64)
    _rt.call(flat.blob, flat.symbols["count"], [counts], [-3], threads=2)
    assert not counts.any()


def test_many_small_jobs(flat: FlatImage) -> None:
    counts = np.zeros(50, np.int64)
    _rt.call(flat.blob, flat.symbols["repeated"], [counts], [50, 20_000], threads=3)
    np.testing.assert_array_equal(counts, expected(50, 20_000))


def test_nested_loops_run_inline(flat: FlatImage) -> None:
    counts = np.zeros(30 * 17, np.int64)
    _rt.call(flat.blob, flat.symbols["nested"], [counts], [30, 17], threads=4)
    np.testing.assert_array_equal(counts, np.tile(expected(17), 30))


def test_parked_workers_wake(flat: FlatImage) -> None:
    for _ in range(10):
        counts = np.zeros(1000, np.int64)
        _rt.call(flat.blob, flat.symbols["count"], [counts], [1000], threads=2)
        np.testing.assert_array_equal(counts, expected(1000))
        time.sleep(0.002)


@pytest.mark.timed
def test_a_spinning_worker_begins_within_5_microseconds(flat: FlatImage) -> None:
    """Two threads meet in every job, which so takes as long as waking the other and hearing back."""
    if _rt.cpus() < 2:
        pytest.skip("two threads can't run at once here")
    image = _rt.Image(flat.blob, flat.readonly)
    jobs, best, deadline = 20, 1e9, time.perf_counter() + 20  # other tests may keep the second core for seconds
    while best >= 5 and time.perf_counter() < deadline:
        state = np.zeros(2, np.int64)
        begin = time.perf_counter()
        _rt.call(image, flat.symbols["meetings"], [state], [jobs], threads=2)
        if state[1] == 0:  # else the system ran only one of the two
            best = min(best, (time.perf_counter() - begin) * 1e6 / jobs)
    if best == 1e9:
        pytest.skip("the machine is too busy to run two threads at once")
    assert best < 5


def work(flat: FlatImage, steps: int, *, spin: bool) -> list[int]:
    """Runs a model of so many parallel loops; returns what it counted."""
    plan, main = flat.symbols["steps_plan"], flat.symbols["steps_main"]
    image = _rt.Image(flat.blob, flat.readonly)
    model = _rt.Model(image, plan, main, b"", [(_rt.DTYPES["i64"], 0)], [(_rt.DTYPES["i64"], 0)], 2, spin=spin)
    return [int(y) for y in model.run([np.array(steps)])]


@pytest.mark.parametrize("spin", [False, True])
def test_many_jobs_with_and_without_spinning(flat: FlatImage, spin: bool) -> None:
    assert [work(flat, steps, spin=spin) for steps in (1, 7, 2000)] == [[1], [7], [2000]]


def spent(flat: FlatImage, *, spin: bool) -> float:
    """Returns the microseconds of processor time that all threads but this take in a pause after a call of two.

    In the call itself a worker may wait for this thread for long, where others run in its place.
    """
    plan, main = flat.symbols["halves_plan"], flat.symbols["halves_main"]
    image, f32 = _rt.Image(flat.blob, flat.readonly), _rt.DTYPES["f32"]
    model = _rt.Model(image, plan, main, b"", [(f32, 1)], [(f32, 1)], 2, spin=spin)
    threads = [int(p.name) for p in Path("/proc/self/task").iterdir()]
    clocks = [~t << 3 | CLOCK_OF_THREAD for t in threads if t != threading.get_native_id()]

    def read() -> float:
        return sum(time.clock_gettime(clock) for clock in clocks)

    taken = []
    for _ in range(30):
        (y,) = model.run([np.ones(2, np.float32)])
        begin = read()
        assert y[2] == 2, "the call waits until both threads take part"
        time.sleep(0.002)
        taken.append(read() - begin)
    return median(taken) * 1e6


@pytest.mark.timed
def test_without_spinning_workers_park_at_once(flat: FlatImage) -> None:
    """Beside turns in which one that may spin does: where the system has it run on the caller's own core, it is too late to."""
    if _rt.cpus() < 2 or not Path("/proc/self/task").exists():
        pytest.skip("there are no workers, or no times of theirs")
    work(flat, 1, spin=True)
    spinning, parking, deadline = list[float](), list[float](), time.perf_counter() + 20
    while len([s for s in spinning if s > SPIN_US / 2]) < 3 and time.perf_counter() < deadline:
        spinning.append(spent(flat, spin=True))
        parking.append(spent(flat, spin=False))
    if max(spinning) < SPIN_US / 2:
        pytest.skip("the machine is too busy to run two threads at once")
    assert max(parking) < max(spinning) - SPIN_US / 4, (spinning, parking)


def test_idle_workers_take_no_processor_time(flat: FlatImage) -> None:
    _rt.call(flat.blob, flat.symbols["count"], [np.zeros(1000, np.int64)], [1000], threads=4)
    time.sleep(0.01)
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.05


def test_concurrent_callers_never_deadlock(flat: FlatImage) -> None:
    image = _rt.Image(flat.blob, flat.readonly)
    results = [np.zeros(200, np.int64) for _ in range(6)]

    def work(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        for _ in range(20):
            _rt.call(image, flat.symbols["repeated"], [counts], [200, 100], threads=3)

    callers = [threading.Thread(target=work, args=(counts,)) for counts in results]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=30)
        assert not caller.is_alive()
    for counts in results:
        np.testing.assert_array_equal(counts, expected(200, 2000))


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("bad", [0, 499, 999])
def test_failure_of_any_task_is_the_failure_of_the_loop(flat: FlatImage, bad: int, threads: int) -> None:
    with pytest.raises(_rt.Failed) as caught:
        _rt.call(flat.blob, flat.symbols["failing"], [np.array([bad])], [1000], threads=threads)
    assert caught.value.args == (41, "kernel", 7, (bad, 0, 0, 0))
    counts = np.zeros(9, np.int64)
    _rt.call(flat.blob, flat.symbols["count"], [counts], [9], threads=threads)  # the pool is none the worse
    np.testing.assert_array_equal(counts, expected(9))


FORK = """
import os, sys, warnings, numpy as np
from weft.native import _rt
warnings.simplefilter("ignore", DeprecationWarning)  # a fork of several threads is the point
blob, kernel = open(sys.argv[1], "rb").read(), int(sys.argv[2])

def count():
    counts = np.zeros(10_000, np.int64)
    _rt.call(blob, kernel, [counts], [10_000], threads=3)
    return bool((counts == np.arange(10_000) ** 2 + 1).all())

for _ in range(20):
    assert count()
    child = os.fork()
    if child == 0:
        os._exit(0 if count() and count() else 1)
    assert count()
    assert os.waitpid(child, 0)[1] == 0
"""


def test_pool_works_in_a_forked_child_and_in_its_parent(flat: FlatImage, tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(flat.blob)
    arguments = [str(tmp_path / "blob"), str(flat.symbols["count"])]
    subprocess.run([sys.executable, "-c", FORK, *arguments], check=True, timeout=60)


def test_threads_are_bounded_by_the_processors() -> None:
    assert _rt.threads(0) == _rt.threads(1 << 20) == _rt.cpus() >= 1
    assert _rt.threads(1) == 1
