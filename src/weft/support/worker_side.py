"""A worker process as it sees itself: it ends with its parent, answers the requests of its pipes, and has limits.

The module that a worker runs calls `end_with(parent)`, then `serve(*take_pipes(), answer)`.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import BinaryIO, Final

from weft.support.frames import read_frame, write_frame

PR_SET_PDEATHSIG: Final = 1

READY: Final = b"ready"
"""The line that `WorkerProcess.await_start` waits for."""


def end_with(parent: int) -> None:
    """Asks Linux to kill this process when its parent dies; others see the end of the standard input."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told, and ends its workers


def take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Returns the pipes of requests and of answers, which nothing that a request prints can get into."""
    source, to = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, to


def serve(source: BinaryIO, to: BinaryIO, answer: Callable[[bytes], bytes]) -> None:
    """Says that the worker is ready, and answers requests until there are no more."""
    write_frame(to, READY)
    while (request := read_frame(source)) is not None:
        write_frame(to, answer(request))


def limit_memory(more: int) -> None:
    """Lets this process take *more* bytes beyond its present size, where the system is Linux, and leave no core behind."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        return  # others do not hold a process to such a limit
    limit, (_, hard) = _data_bytes() + more, resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _data_bytes() -> int:
    """Returns how many bytes of memory this process has that count for the limit."""
    with open("/proc/self/status", encoding="ascii") as status:
        kilobytes = next(line.split()[1] for line in status if line.startswith("VmData:"))
    return int(kilobytes) * 1024
