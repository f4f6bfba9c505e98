"""A worker process as its parent sees it: started, given one job after another, killed where it hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from threading import Event, Timer
from typing import IO, Final

from weft.support.frames import read_frame, write_frame

START: Final = 60.0
"""The seconds after which a worker that has not started is killed."""

PATIENCE: Final = 2.0
"""The seconds that an idle worker has to end by itself."""

ONE_THREAD: Final = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""NumPy's own threads, which no job uses, would take memory and cores."""


class WorkerDied(Exception):
    """The process ended in the middle of a job; `args` are its exit status and the last it wrote to its standard error."""


class WorkerHung(Exception):
    """The process was killed, since a job took too long."""


class WorkerProcess:
    """A process that runs `python -m MODULE PARENT ARGUMENTS`, a module that begins as `worker_side` says.

    The thread that makes it must live as long as it does: Linux ends the worker with that thread, so also where the whole
    process is killed.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._errors: IO[bytes] = TemporaryFile()  # noqa: SIM115  (open as long as the process)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(os.getpid()), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={
                **os.environ,
                **ONE_THREAD,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },  # the worker can import the same modules
        )
        self._ready = False

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def await_start(self) -> None:
        """Waits until the worker has imported its modules; raises `WorkerDied`, or `WorkerHung`, where it does not start."""
        if not self._ready:
            with self._limited(START):
                self._read()
            self._ready = True

    def call(self, request: bytes, seconds: float) -> bytes:
        """Returns the answer to *request*; raises `WorkerDied`, or `WorkerHung` after *seconds*."""
        with self._limited(seconds):
            assert self._process.stdin is not None
            try:
                write_frame(self._process.stdin, request)
            except OSError:
                raise self._death() from None
            return self._read()

    def _read(self) -> bytes:
        assert self._process.stdout is not None
        answer = read_frame(self._process.stdout)
        if answer is None:
            raise self._death()
        return answer

    @contextmanager
    def _limited(self, seconds: float) -> Iterator[None]:
        """Kills the process after *seconds* in the block, which then raises `WorkerHung`."""
        is_over = Event()

        def end() -> None:
            is_over.set()
            self._process.kill()

        timer = Timer(seconds, end)
        timer.daemon = True
        timer.start()
        death: WorkerDied | None = None
        try:
            yield
        except WorkerDied as error:
            death = error
        finally:
            timer.cancel()
        if is_over.is_set():
            raise WorkerHung(f"it took more than {seconds:g} s")
        if death is not None:
            raise death

    def _death(self) -> WorkerDied:
        status = self._process.wait()
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 2000))
        return WorkerDied(status, self._errors.read().decode(errors="replace").strip())

    def close(self, patience: float = PATIENCE) -> None:
        """Lets the process end, kills it where it does not within *patience* seconds, and frees all that it took."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):  # output not read yet is dropped
            self._process.stdin.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def kill(self) -> None:
        """Kills the process at once."""
        self._process.kill()


def told(status: int) -> str:
    """Returns an exit status of a process in words."""
    if status >= 0:
        return f"it ended with the status {status}"
    name = signal.Signals(-status).name
    hint = ", as the system does where memory runs out" if -status == signal.SIGKILL else ""
    return f"it was killed by {name}{hint}"
