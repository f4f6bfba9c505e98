"""Jobs that no worker survives, or that only look like it: they are pickled by name."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from typing import NoReturn

from weft.support.errors import InputError
from weft.tune.measure import Built, RunJob, run


def pid(_: object = None) -> int:
    return os.getpid()


def square(x: int, seconds: float = 0.0) -> int:
    time.sleep(seconds)
    return x * x


def hang() -> None:
    time.sleep(3600)


def segfault() -> None:
    ctypes.string_at(8)


def leave(status: int) -> NoReturn:
    os._exit(status)


def abort(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGABRT)


def eat_memory() -> int:
    return len(b"x" * (6 << 30))


def fail(text: str) -> None:
    raise InputError(text, hint="none")


class Unpicklable(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__("odd")
        self.held = lambda: a + b


def fail_oddly() -> None:
    raise Unpicklable(1, 2)


def print_much() -> int:
    print("x" * 100_000, flush=True)
    os.write(1, b"y" * 100_000)
    return os.getpid()


def cores() -> set[int]:
    return os.sched_getaffinity(0)


def run_and_tell(job: RunJob) -> tuple[object, int]:
    return run(job), os.getpid()


def is_built(x: object) -> bool:
    return isinstance(x, Built)
