"""The process that carries out jobs of the tuner: `python -m weft.tune.worker PARENT SETTINGS`, started by `LocalExecutor`.

Jobs come as pickled calls through the standard input, results go to the standard output. The process ends with its parent.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from typing import Any, Final

from weft.driver.python_settings import tuned_for_a_worker
from weft.support.errors import RuntimeFailure
from weft.support.worker_side import end_with, limit_memory, serve, take_pipes
from weft.tune.measure.jobs import Failed
from weft.tune.measure.run_candidate import run
from weft.tune.measure.worker_settings import WorkerSettings

WARM: Final = run
"""Imports the modules of jobs before the first comes."""


def main(parent: int, settings: WorkerSettings) -> None:
    """Carries out jobs until the standard input ends."""
    end_with(parent)
    source, to = take_pipes()
    _limit(settings)
    with tuned_for_a_worker():
        serve(source, to, answer)


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


def _limit(settings: WorkerSettings) -> None:
    """Holds the process to its cores, its niceness and its memory."""
    if settings.cores is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, settings.cores)
    os.nice(settings.niceness)
    limit_memory(settings.memory)


if __name__ == "__main__":
    main(int(sys.argv[1]), WorkerSettings.from_text(sys.argv[2]))
