"""Cases compiled by PyTorch (`torch.compile`), each in a process of its own.

All compile at once, for so many seconds at most, and are timed later, one by one, when nothing else runs on the GPU.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any

from cases import all_cases
from rivals import Timed, by_torch, torch_on_gpu, torch_times

ANSWER = 30.0
"""Seconds after which a process that is to time its case is given up."""


class Compilations:
    """Cases that compile, by their names; to be closed."""

    def __init__(self, names: Sequence[str], limit: float, mode: str) -> None:
        """Starts to compile the cases in a *mode* of `torch.compile`; *limit* is the seconds that they have."""
        self.limit, self.stop = limit, monotonic() + limit
        context = get_context("spawn")
        self._running: dict[str, tuple[Any, Connection]] = {}
        self._told: dict[str, str] = {}
        for name in names:
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(name, mode, len(names), theirs))
            process.start()
            theirs.close()
            self._running[name] = process, ours

    def wait(self) -> None:
        """Waits for all of them; those that are not compiled by then are ended."""
        for name, (_, connection) in list(self._running.items()):
            try:
                is_ready = connection.poll(max(0.0, self.stop - monotonic()))
                told = connection.recv() if is_ready else f"> {self.limit:.0f} s"
            except EOFError:
                told = "its process ended"
            if told is not None:
                self._end(name, told)

    def times(self, name: str, seconds: float) -> Timed | str:
        """Returns the times of a case, or why there are none."""
        if name not in self._running:
            return self._told.get(name, "not compiled")
        _, connection = self._running[name]
        try:
            connection.send(seconds)
            made: Timed | str = connection.recv() if connection.poll(ANSWER) else f"> {ANSWER:.0f} s for a call"
        except (EOFError, OSError):
            made = "its process ended"
        self._end(name, "timed")
        return made

    def close(self) -> None:
        """Ends all processes."""
        for name in list(self._running):
            self._end(name, "ended")

    def _end(self, name: str, told: str) -> None:
        process, connection = self._running.pop(name)
        self._told[name] = told
        connection.close()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # and the processes that compile for it
        process.kill()
        process.join()


def _work(name: str, mode: str, processes: int, connection: Connection) -> None:
    """Compiles a case and says so, with None; then sends its times for each number of seconds that it gets."""
    os.setsid()
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(max(1, 2 * (os.cpu_count() or 1) // processes)))
    try:
        torch = torch_on_gpu()
        case = next(c for c in all_cases() if c.name == name)
        run = by_torch(torch, case, case.inputs(), mode=mode)
        with torch.no_grad():
            run()
            torch.cuda.synchronize()
        connection.send(None)
        connection.send(torch_times(torch, run, connection.recv()))
    except Exception as error:  # whoever waits is told
        connection.send(f"{type(error).__name__}: {error}".splitlines()[0])
