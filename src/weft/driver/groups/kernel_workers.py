"""Processes that make kernels beside this one, each with an interpreter lock of its own.

A kernel's way is its own: a program as text goes in, machine code comes out. So large models are compiled on all processors that
there are. Nothing depends on the processes: this one makes what they do not, and all of it where there are none.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Condition, Thread
from typing import Final

from weft.driver.groups.kernel_jobs import KernelJob, MadeKernel, job_of
from weft.driver.kernel import Kernel, WantedKernel
from weft.graph import Graph
from weft.native import _rt
from weft.support.errors import InputError
from weft.support.worker_process import WorkerDied, WorkerHung, WorkerProcess

MODULE: Final = "weft.driver.groups.kernel_worker"
"""The module that a process runs."""

PROCESSES: Final = "WEFT_COMPILE_PROCESSES"
"""The variable that limits the processes of a compilation, the first among them: with 1 there are no others."""

CALLS: Final = 24
"""The different calls of operators in a model for each process beside the first: their kernels take longer than its imports."""

MOST: Final = 8
"""The most processes: each takes a hundred megabytes, and this one has to keep them busy."""

AHEAD: Final = 4
"""The orders that wait for each process: it must not wait for this one, which asks once for each kernel that it makes."""

SECONDS: Final = 120.0
"""The time after which a process is taken to hang, and killed."""


def worker_count(graph: Graph) -> int:
    """Returns how many processes beside this one are worth starting for a model.

    Raises `InputError` where the variable that limits them has no number.
    """
    calls = {(n.op, tuple([None if v is None else v.type for v in n.inputs])) for n in graph.nodes}
    return min(_rt.cpus() - 1, len(calls) // CALLS, MOST, _limit() - 1) if _can_start() else 0


def _limit() -> int:
    given = os.environ.get(PROCESSES, str(MOST + 1))
    if not given.isdecimal() or int(given) < 1:
        raise InputError(
            f"{PROCESSES} is {given!r}", hint="give a number of processes, such as 1 for no others, or unset it"
        )
    return int(given)


def _can_start() -> bool:
    """Tells whether `sys.executable` is Python: a program with Python in it would be started anew instead."""
    name = Path(sys.executable or "").name.lower()
    return not getattr(sys, "frozen", False) and name.startswith(("python", "pypy"))


@contextmanager
def kernel_workers(count: int) -> Iterator[KernelWorkers | None]:
    """Has so many processes for the length of a `with`; None for none."""
    if count == 0:
        yield None
        return
    workers = KernelWorkers(count)
    try:
        yield workers
    finally:
        workers.close()


@dataclass(frozen=True, eq=False)
class _Order:
    """A kernel on its way: by a process, or by whoever takes it back."""

    wanted: WantedKernel
    job: KernelJob
    future: Future[Kernel] = field(default_factory=Future)

    def settle(self, made: MadeKernel) -> None:
        """Takes what a process made."""
        try:
            kernel = self.wanted.keep(made.data)
        except Exception as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(replace(kernel, spans=(self.wanted.formed, *made.spans)))

    def make_here(self, pool: Executor | None) -> None:
        """Makes the kernel in this process."""
        try:
            self.wanted.make(pool).add_done_callback(self._follow)
        except BaseException as error:
            self.future.set_exception(error)

    def _follow(self, own: Future[Kernel]) -> None:
        if (error := own.exception()) is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(own.result())

    def drop(self) -> None:
        """Gives the kernel up, so that others may make it."""
        self.wanted.claim.release()
        self.future.cancel()


class KernelWorkers:
    """Processes that take kernels as they are free.

    This process makes what one of them could not: where it died, and where it raised an error, as it may lack what was registered
    here. So errors are those of this process.
    """

    def __init__(self, count: int) -> None:
        self._changed = Condition()
        self._waiting: deque[_Order] = deque()
        self._ready = 0
        self._is_closed = False
        self._threads = [Thread(target=self._work, name="weft-kernel-worker", daemon=True) for _ in range(count)]
        self._processes: list[WorkerProcess] = []
        for t in self._threads:
            t.start()

    @property
    def ready(self) -> int:
        """How many processes have started, and go on."""
        with self._changed:
            return self._ready

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes."""
        with self._changed:
            return [p.pid for p in self._processes]

    def offer(self, wanted: WantedKernel) -> Future[Kernel] | None:
        """Returns the kernel to come; None where no process is free for it, or it can't be told to one."""
        with self._changed:
            if len(self._waiting) >= AHEAD * self._ready:
                return None
        job = job_of(wanted.request, wanted.target)
        if job is None:
            return None
        order = _Order(wanted, job)
        with self._changed:
            self._waiting.append(order)
            self._changed.notify()
        return order.future

    def finish(self, pool: Executor | None) -> None:
        """Makes, in this process, the kernels that no process has begun with."""
        while (order := self._take_back()) is not None:
            order.make_here(pool)

    def _take_back(self) -> _Order | None:
        with self._changed:
            return self._waiting.pop() if self._waiting else None

    def close(self) -> None:
        """Ends the processes, at once, and gives up what they were at."""
        with self._changed:
            self._is_closed = True
            processes, waiting = list(self._processes), list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        for order in waiting:
            order.drop()
        for p in processes:
            p.kill()
        for t in self._threads:
            t.join()

    def _work(self) -> None:
        """Gives a process one order after another, until there are no more or it ends."""
        try:
            process = WorkerProcess(MODULE)
        except OSError:  # the system lets this process start none
            return
        with self._changed:
            self._processes.append(process)
            if self._is_closed:
                process.kill()
        try:
            self._serve(process)
        finally:
            process.close(0)

    def _serve(self, process: WorkerProcess) -> None:
        try:
            process.await_start()
        except (WorkerDied, WorkerHung):
            return
        with self._changed:
            self._ready += 1
        while process.is_alive and (order := self._next()) is not None:
            if (made := _answered(process, order.job)) is not None:
                order.settle(made)
            elif self._is_closed:
                order.drop()
            else:
                order.make_here(None)
        with self._changed:
            self._ready -= 1

    def _next(self) -> _Order | None:
        with self._changed:
            while not self._waiting and not self._is_closed:
                self._changed.wait()
            return self._waiting.popleft() if self._waiting and not self._is_closed else None


def _answered(process: WorkerProcess, job: KernelJob) -> MadeKernel | None:
    """Returns what a process made of *job*; None where it died of it or raised an error, or where the job can't be sent."""
    try:
        found = pickle.loads(process.call(pickle.dumps(job), SECONDS))
    except Exception:  # of whatever kind: a target may have parts that a user wrote
        return None
    return found if isinstance(found, MadeKernel) else None
