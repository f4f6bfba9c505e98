"""Compiled models called from many threads, from forked children and from event loops: right, never stuck, never growing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from tests import models

import weft
from weft.native import _rt
from weft.runtime import Model

BATCHES: Final = (1, 3, 16, 100)
PATIENCE: Final = 120
"""Seconds after which a test takes its threads for stuck."""


@dataclass(frozen=True)
class Case:
    """A model, and inputs of several sizes with the outputs that they have when nothing else runs."""

    model: Model
    inputs: list[tuple[Any, ...]]
    wanted: list[list[Any]]

    def call(self, k: int) -> bool:
        """Makes one call; tells whether its outputs are the very bits that they should be."""
        k %= len(self.inputs)
        made = self.model.run(self.inputs[k])
        return all(a.tobytes() == b.tobytes() for a, b in zip(made, self.wanted[k], strict=True))


@cache
def case(name: str, threads: int) -> Case:
    proto = models.mlp("batch", (64, 256, 256, 16)) if name == "mlp" else models.lstm_step("batch")
    model = weft.compile(proto, threads=threads)
    inputs = [tuple(models.random_inputs(proto, {"batch": n}, seed=n).values()) for n in BATCHES]
    return Case(model, inputs, [Model(model.package, threads=1).run(x) for x in inputs])


def resident() -> int:
    """Returns the bytes of memory that this process has in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def run_all(threads: int, work: Callable[[int], None]) -> None:
    """Runs *work* in so many threads at once, given their numbers; fails if one fails, or is stuck."""
    failed: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failed.append(error)

    callers = [threading.Thread(target=guarded, args=(k,), daemon=True) for k in range(threads)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(PATIENCE)
        assert not caller.is_alive(), "a call is stuck"
    assert failed == []


def check(cases: list[Case], start: int, calls: int) -> None:
    """Makes so many calls, the models and their inputs in turn."""
    for k in range(start, start + calls):
        assert cases[k % len(cases)].call(k // len(cases))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("threads", [1, 2])
def test_ten_thousand_calls_from_eight_threads_over_two_models(threads: int) -> None:
    cases = [case("mlp", threads), case("lstm", threads)]

    run_all(8, lambda number: check(cases, number, 100))
    before = resident()
    run_all(8, lambda number: check(cases, number, 1250))
    assert resident() - before < 8 << 20


def test_sessions_of_one_model_have_threads_of_their_own_and_share_weights() -> None:
    whole = case("mlp", 1)
    several = [Model(whole.model.package, threads=n) for n in (1, 2, 1000)]
    assert [m.threads for m in several] == [1, min(2, _rt.cpus()), _rt.cpus()]
    assert len({id(m.package.constants) for m in [whole.model, *several]}) == 1
    cases = [Case(m, whole.inputs, whole.wanted) for m in several]

    run_all(6, lambda number: check(cases, number, 200))


def test_outputs_belong_to_the_caller() -> None:
    """Outputs kept from many calls at once stay as they were made, whatever is called afterwards."""
    one = case("mlp", 2)
    with ThreadPoolExecutor(8) as pool:
        kept = list(pool.map(lambda k: one.model.run(one.inputs[k % len(BATCHES)])[0], range(300)))
    addresses = {y.__array_interface__["data"][0] for y in kept}
    assert len(addresses) == len(kept)
    for k, y in enumerate(kept):
        assert y.tobytes() == one.wanted[k % len(BATCHES)][0].tobytes()


def test_calls_from_executors_of_an_event_loop() -> None:
    cases = [case("mlp", 2), case("lstm", 2)]

    async def calls() -> list[bool]:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(8) as pool:
            tasks = [loop.run_in_executor(pool, cases[k % 2].call, k) for k in range(2000)]
            ticks = 0
            while not all(task.done() for task in tasks):  # the loop itself stays free
                await asyncio.sleep(0)
                ticks += 1
            assert ticks > 1
            return await asyncio.gather(*tasks)

    assert all(asyncio.run(asyncio.wait_for(calls(), PATIENCE)))


def test_threads_that_come_and_go_leave_nothing() -> None:
    one = case("lstm", 2)
    run_all(8, lambda number: check([one], number, 20))
    before = resident()
    for _ in range(30):
        run_all(8, lambda number: check([one], number, 1))
    assert resident() - before < 8 << 20


FORKS = """
import os, sys, threading, warnings
import numpy as np
import weft
warnings.simplefilter("ignore", DeprecationWarning)  # a fork of several threads is the point

models = [weft.load(path, threads=2) for path in sys.argv[1:3]]
rng = np.random.default_rng(0)
shapes = [[[40 if isinstance(d, str) else d for d in s.shape] for s in m.inputs] for m in models]
inputs = [[rng.standard_normal(shape).astype(np.float32) for shape in each] for each in shapes]
wanted = [[y.tobytes() for y in m.run(x)] for m, x in zip(models, inputs)]

def right(times):
    return all([y.tobytes() for y in models[k % 2].run(inputs[k % 2])] == wanted[k % 2] for k in range(times))

stop = False
wrong = []

def busy():
    while not stop:
        if not right(10):
            wrong.append(1)

others = [threading.Thread(target=busy) for _ in range(3)]
for other in others:
    other.start()
children = []
for _ in range(12):  # each in the middle of calls that other threads make
    child = os.fork()
    if child == 0:
        nested = os.fork()
        if nested == 0:
            os._exit(0 if right(100) else 1)
        ok = right(200) and os.waitpid(nested, 0)[1] == 0
        threads = [threading.Thread(target=lambda: right(50) or os._exit(1)) for _ in range(3)]
        [t.start() for t in threads], [t.join() for t in threads]
        os._exit(0 if ok else 1)
    children.append(child)
    assert right(20)
statuses = [os.waitpid(child, 0)[1] for child in children]
stop = True
for other in others:
    other.join()
assert statuses == [0] * 12 and not wrong, (statuses, wrong)
"""


def test_calls_in_forked_children_and_in_their_parent(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.weft" for name in ("mlp", "lstm")]
    for path in paths:
        case(path.stem, 2).model.save(path)
    subprocess.run([sys.executable, "-c", FORKS, *map(str, paths)], check=True, timeout=PATIENCE)


AFFINITY = """
import os, sys
import weft
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(weft.load(sys.argv[1]).threads, weft.load(sys.argv[1], threads=8).threads)
"""


def test_affinity_bounds_the_threads(tmp_path: Path) -> None:
    case("mlp", 1).model.save(tmp_path / "m.weft")
    command = [sys.executable, "-c", AFFINITY, str(tmp_path / "m.weft")]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "1 1\n"
