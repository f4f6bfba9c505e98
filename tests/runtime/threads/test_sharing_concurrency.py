"""Calls that run at once share the processors: each loop uses those that the other calls leave."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.conftest import FlatImage
from tests.runtime.test_model import package

from weft.native import _rt
from weft.runtime import Model, TensorSpec
from weft.support.dtypes import i64

JOBS = 50


@pytest.fixture
def two_processors() -> Iterator[None]:
    """Leaves this process two of its processors."""
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("two threads can't run at once here")
    os.sched_setaffinity(0, sorted(before)[:2])
    yield
    os.sched_setaffinity(0, before)


def model(flat: FlatImage, name: str) -> Model:
    return Model(package(flat, name, [TensorSpec("n", i64, ())], [TensorSpec("y", i64, ())]), threads=2)


@contextmanager
def call_in_another_thread(flat: FlatImage) -> Iterator[None]:
    """Has a call run for as long as the block does."""
    stop = bytearray(1)

    def call() -> None:
        with pytest.raises(Exception, match="stopped by its caller"):
            model(flat, "steps").run([np.array(1 << 60)], stop=stop)

    other = threading.Thread(target=call)
    before = _rt.running_calls()
    other.start()
    try:
        while _rt.running_calls() == before:
            time.sleep(0.001)
        yield
    finally:
        stop[0] = 1
        other.join()


def test_calls_are_counted(flat: FlatImage) -> None:
    assert _rt.running_calls() == 0
    with call_in_another_thread(flat):
        assert _rt.running_calls() == 1
        with call_in_another_thread(flat):
            assert _rt.running_calls() == 2
        model(flat, "steps")(np.array(3))
    assert _rt.running_calls() == 0


@pytest.mark.usefixtures("two_processors")
def test_a_call_beside_another_runs_in_its_own_thread(flat: FlatImage) -> None:
    """A job of two tasks that wait for one another: each waits in vain where one thread does both."""
    meet = model(flat, "meet")
    with call_in_another_thread(flat):
        assert meet(np.array(JOBS)) == JOBS
    deadline = time.monotonic() + 30
    while meet(np.array(JOBS)) == JOBS and time.monotonic() < deadline:  # the machine may be busy
        pass
    assert time.monotonic() < deadline


FORK = """
import os, sys, threading, time, warnings
import numpy as np
from weft.native import _rt
from weft.runtime import Model, Package, TensorSpec
from weft.support.dtypes import i64
warnings.simplefilter("ignore", DeprecationWarning)  # a fork of several threads is the point
blob, readonly, plan, main = open(sys.argv[1], "rb").read(), *map(int, sys.argv[2:])
spec = (TensorSpec("n", i64, ()),)
model = Model(Package(blob, plan, main, b"", spec, spec, readonly=readonly), threads=2)
threading.Thread(target=model, args=[np.array(1 << 60)], daemon=True).start()
while _rt.running_calls() == 0:
    time.sleep(0.001)
child = os.fork()
if child == 0:
    os._exit(100 + _rt.running_calls() + int(model(np.array(7))))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), _rt.running_calls())
"""


def test_a_forked_child_has_no_calls_of_its_parents_threads(flat: FlatImage, tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(flat.blob)
    numbers = [flat.readonly, flat.symbols["steps_plan"], flat.symbols["steps_main"]]
    command = [sys.executable, "-c", FORK, str(tmp_path / "blob"), *map(str, numbers)]
    assert subprocess.run(command, check=True, timeout=60, capture_output=True, text=True).stdout == "107 1\n"
