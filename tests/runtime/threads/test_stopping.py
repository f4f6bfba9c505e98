"""Calls that end early: by a signal whose handler raises, by Ctrl-C, by a flag; and those that don't."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.conftest import FlatImage
from tests.runtime.test_model import package

from weft.native import _rt
from weft.runtime import Model, TensorSpec
from weft.support.dtypes import i64
from weft.support.errors import RuntimeFailure

FOREVER = np.array(1 << 60)


class Alarm(Exception):
    """What a signal's handler raises."""


def steps(flat: FlatImage, threads: int = 2) -> Model:
    return Model(package(flat, "steps", [TensorSpec("n", i64, ())], [TensorSpec("done", i64, ())]), threads=threads)


@pytest.fixture
def after() -> Iterator[Callable[[float, Callable[[], object]], None]]:
    """Gives a function that has another function called by a signal's handler in so many seconds."""
    before = signal.getsignal(signal.SIGALRM)

    def set_alarm(seconds: float, act: Callable[[], object]) -> None:
        signal.signal(signal.SIGALRM, lambda *_: act())
        signal.setitimer(signal.ITIMER_REAL, seconds)

    yield set_alarm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def fail() -> None:
    raise Alarm


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", [Alarm, KeyboardInterrupt, TypeError, ValueError, BufferError])
def test_a_handler_that_raises_ends_the_call(
    flat: FlatImage, after: Callable[[float, Callable[[], object]], None], threads: int, kind: type[BaseException]
) -> None:
    model = steps(flat, threads)

    def act() -> None:
        raise kind("from the handler")

    after(0.03, act)
    begin = time.perf_counter()
    with pytest.raises(kind, match="from the handler"):
        model(FOREVER)
    assert time.perf_counter() - begin < 5  # it looks every 0.1 s; the rest is for a busy machine
    assert model(np.array(10)) == 10  # the model is none the worse


def test_a_handler_that_returns_lets_the_call_go_on(
    flat: FlatImage, after: Callable[[float, Callable[[], object]], None]
) -> None:
    seen: list[object] = []
    model = steps(flat)

    def act() -> None:
        seen.append(model(np.array(7)))  # a call inside the call
        after(0.05, fail)

    after(0.05, act)
    with pytest.raises(Alarm):
        model(FOREVER)
    assert seen == [7]


def test_calls_in_other_threads_go_on(flat: FlatImage, after: Callable[[float, Callable[[], object]], None]) -> None:
    model, stop = steps(flat), bytearray(1)
    ended: list[str] = []

    def call() -> None:
        try:
            model.run([FOREVER], stop=stop)
        except RuntimeFailure as error:
            ended.append(error.message)

    other = threading.Thread(target=call)
    other.start()
    after(0.05, fail)
    with pytest.raises(Alarm):
        model(FOREVER)
    assert ended == []
    stop[0] = 1
    other.join(30)
    assert ended == ["the call was stopped by its caller"]


def test_a_flag_set_before_the_call_ends_it_at_once(flat: FlatImage) -> None:
    with pytest.raises(RuntimeFailure) as caught:
        steps(flat).run([FOREVER], stop=b"\1")
    assert str(caught.value) == "the call was stopped by its caller\n  hint: its outputs were not computed"
    assert steps(flat).run([np.array(5)], stop=b"\0") == [5]


def test_an_empty_flag_is_refused(flat: FlatImage) -> None:
    native = steps(flat)._native
    with pytest.raises(ValueError, match="a flag that stops a call has one byte"):
        native.run_into([np.array(5)], None, b"")


CTRL_C = """
import os, signal, sys, threading
import numpy as np
from weft.runtime import Model, Package, TensorSpec
from weft.support.dtypes import i64
blob, readonly, plan, main = open(sys.argv[1], "rb").read(), *map(int, sys.argv[2:])
spec = [TensorSpec("n", i64, ())]
model = Model(Package(blob, plan, main, b"", tuple(spec), tuple(spec), readonly=readonly), threads=2)
signal.signal(signal.SIGINT, signal.default_int_handler)  # what starts tests in the background ignores it
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    model(np.array(1 << 60))
except KeyboardInterrupt:
    print("interrupted", model(np.array(3)))
"""


def test_ctrl_c(flat: FlatImage, tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(flat.blob)
    numbers = [flat.readonly, flat.symbols["steps_plan"], flat.symbols["steps_main"]]
    command = [sys.executable, "-c", CTRL_C, str(tmp_path / "blob"), *map(str, numbers)]
    assert subprocess.run(command, check=True, timeout=60, capture_output=True, text=True).stdout == "interrupted 3\n"


def test_asking_costs_next_to_nothing(flat: FlatImage) -> None:
    """A parallel loop asks its clock, some nanoseconds; it does not take the interpreter's lock."""
    model, n = steps(flat, threads=1), np.array(100_000)
    counts = np.zeros(64, np.int64)
    bare = model_time = 1e9
    for _ in range(5):
        begin = time.thread_time()
        _rt.call(flat.blob, flat.symbols["repeated"], [counts], [64, 100_000], threads=1)
        middle = time.thread_time()
        model(n)
        bare, model_time = min(bare, middle - begin), min(model_time, time.thread_time() - middle)
    assert (model_time - bare) / 100_000 < 100e-9
