"""An executor whose worker processes may hang, crash or run out of memory: the job fails, a new worker goes on with the next."""

from __future__ import annotations

import os
import pickle
import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread, current_thread
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from weft.support.worker_process import WorkerDied, WorkerHung, WorkerProcess, told
from weft.tune.measure.jobs import Failed
from weft.tune.measure.tuner_worker import TunerWorker
from weft.tune.measure.worker_settings import WorkerSettings

P = ParamSpec("P")
T = TypeVar("T")

Job: TypeAlias = "tuple[Future[Any], bytes]"
Jobs: TypeAlias = "SimpleQueue[Job | None]"

NICENESS: Final = 10
"""The niceness of workers that build, so that they give way to one that measures on the same core."""


class LocalExecutor(Executor):
    """Worker processes on this machine, each with one job at a time.

    A job that takes more than *seconds*, whose process dies, or whose process takes more than *memory* bytes beyond its start has
    the result `Failed`; the worker is replaced, and other jobs are not affected. Functions and arguments are pickled. Workers end
    with the executor's `shutdown`, when it is collected, and with this process however that ends.
    """

    def __init__(
        self,
        workers: int = 1,
        *,
        seconds: float = 30.0,
        memory: int = 2 << 30,
        cores: Iterable[int] | None = None,
        niceness: int = 0,
    ) -> None:
        settings = WorkerSettings(None if cores is None else tuple(cores), niceness, memory)
        self._jobs: Jobs = SimpleQueue()
        self._slots = [_Slot(self._jobs, settings, seconds) for _ in range(workers)]
        self._is_shut = False
        self._stop = weakref.finalize(self, _stop, self._jobs, self._slots)

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes that there are now."""
        return [s.process.pid for s in self._slots if s.process is not None]

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Returns the result to come of *fn*, which a worker imports by its name."""
        if self._is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[T] = Future()
        self._jobs.put((future, pickle.dumps((fn, args, kwargs))))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Lets the workers end once all jobs are done, or those that run now with *cancel_futures*."""
        if not self._is_shut:
            self._is_shut = True
            if cancel_futures:
                _cancel_all(self._jobs)
            for _ in self._slots:
                self._jobs.put(None)
        if wait:
            for s in self._slots:
                s.thread.join()
            self._stop.detach()


def _cancel_all(jobs: Jobs) -> None:
    while not jobs.empty():
        job = jobs.get()
        if job is not None:
            job[0].cancel()


def _stop(jobs: Jobs, slots: list[_Slot]) -> None:
    """Ends all workers at once, whatever they do."""
    _cancel_all(jobs)
    for s in slots:
        jobs.put(None)
        s.stop()
    for s in slots:
        if s.thread is not current_thread():  # any thread may be the one that collects garbage
            s.thread.join()


class _Slot:
    """A thread that gives jobs to a process of its own, and replaces it where it dies."""

    def __init__(self, jobs: Jobs, settings: WorkerSettings, seconds: float) -> None:
        self.jobs, self.settings, self.seconds = jobs, settings, seconds
        self.process: WorkerProcess | None = None
        self.is_stopped = False
        self.thread = Thread(target=self._work, name="weft-tuner-worker", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Kills the process; the thread then finds the end of the queue."""
        self.is_stopped = True
        if (process := self.process) is not None:
            process.kill()

    def _work(self) -> None:
        process = self._started()
        while (job := self.jobs.get()) is not None:
            future, request = job
            if not future.set_running_or_notify_cancel():
                continue
            if not process.is_alive:  # it died of nothing that this job did
                process.close()
                process = self._started()
            outcome = self._outcome(process, request)
            if outcome.is_last:
                process.close(0)
                process = self._started()
            outcome.settle(future)
        process.close()

    def _started(self) -> WorkerProcess:
        process = self.process = TunerWorker(self.settings)
        if self.is_stopped:  # between the end of the last process and the start of this one
            process.kill()
        return process

    def _outcome(self, process: WorkerProcess, request: bytes) -> _Outcome:
        try:
            process.await_start()
            returned, value = pickle.loads(process.call(request, self.seconds))
        except WorkerHung as error:
            return _Outcome(Failed("timeout", str(error)), is_last=True)
        except WorkerDied as death:
            return _Outcome(_failure(*death.args), is_last=True)
        except Exception as error:  # it does not start, or its answer can't be read here
            return _Outcome(None, error, is_last=True)
        if returned:
            return _Outcome(value, is_last=isinstance(value, Failed) and value.spoils)
        return _Outcome(None, value)


@dataclass(frozen=True)
class _Outcome:
    """The outcome of a job, and whether it was the last of its process."""

    value: Any
    error: BaseException | None = None
    is_last: bool = False

    def settle(self, future: Future[Any]) -> None:
        """Tells whoever waits for it."""
        if self.error is not None:
            future.set_exception(self.error)
        else:
            future.set_result(self.value)


def _failure(status: int, text: str) -> Failed:
    """Returns the failure of a job whose process died with *status* and wrote *text* last."""
    lines = text.splitlines()
    message = "\n".join([told(status), *lines[-5:]])
    no_memory = any(words in text for words in ("MemoryError", "bad_alloc", "out of memory"))
    return Failed("memory" if no_memory else "crash", message)


def local_executors(
    builders: int | None = None,
    threads: int = 1,
    *,
    seconds: float = 30.0,
    memory: int = 2 << 30,
    is_pinned: bool = True,
) -> tuple[LocalExecutor, LocalExecutor]:
    """Returns an executor that builds and one that runs, the latter on *threads* cores that it is pinned to, unless
    not *is_pinned*: drivers of devices have threads of their own.

    There is a builder for each core that this process may use; those on the cores of the other give way to it. A job may take
    *seconds* and *memory* bytes.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    pinned = cores[-threads:] if is_pinned and hasattr(os, "sched_setaffinity") else None
    builder = LocalExecutor(builders or len(cores), seconds=seconds, memory=memory, niceness=NICENESS)
    return builder, LocalExecutor(cores=pinned, seconds=seconds, memory=memory)
