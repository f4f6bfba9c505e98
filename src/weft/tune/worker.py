"""The process that carries out jobs of the tuner: `python -m weft.tune.worker PARENT SETTINGS`, started by `LocalExecutor`.

Jobs come as pickled calls through the standard input, results go to the standard output. The process ends with its parent.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, Final

from weft.driver.python_settings import tuned_for_compiling
from weft.support.errors import RuntimeFailure
from weft.tune.measure.frames import read_frame, write_frame
from weft.tune.measure.jobs import Failed
from weft.tune.measure.run_candidate import run
from weft.tune.measure.worker_settings import WorkerSettings

PR_SET_PDEATHSIG: Final = 1

WARM: Final = run
"""Imports what jobs need before the first comes."""


def main(parent: int, settings: WorkerSettings) -> None:
    """Carries out jobs until the standard input ends."""
    _end_with(parent)
    source, to = _take_pipes()
    _limit(settings)
    gc.collect()
    gc.freeze()
    with tuned_for_compiling():
        write_frame(to, b"ready")
        while (request := read_frame(source)) is not None:
            write_frame(to, answer(request))


def answer(request: bytes) -> bytes:
    """Carries out a pickled call; returns the pickle of whether it returned, and of its result or its exception."""
    try:
        call, arguments, keywords = pickle.loads(request)
        return pickle.dumps((True, _result(call, arguments, keywords)))
    except Exception as error:
        try:
            return pickle.dumps((False, error))
        except Exception:
            return pickle.dumps((False, RuntimeFailure(f"{type(error).__name__}: {error}", hint="see the job's code")))


def _result(call: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    try:
        return call(*arguments, **keywords)
    except MemoryError:
        return Failed("memory", "there is no memory left in the worker")


def _end_with(parent: int) -> None:
    """Asks Linux to kill this process when its parent dies; others see the end of the standard input."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told, and ends its workers


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Returns the pipes of jobs and of results, which nothing that a job prints can get into."""
    source, to = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, to


def _limit(settings: WorkerSettings) -> None:
    """Holds the process to its cores, its niceness and its memory."""
    if settings.cores is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, settings.cores)
    os.nice(settings.niceness)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = _data_bytes() + settings.memory
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _data_bytes() -> int:
    """Returns how many bytes of memory this process has that count for the limit."""
    with open("/proc/self/status", encoding="ascii") as status:
        kilobytes = next(line.split()[1] for line in status if line.startswith("VmData:"))
    return int(kilobytes) * 1024


if __name__ == "__main__":
    main(int(sys.argv[1]), WorkerSettings.from_text(sys.argv[2]))
