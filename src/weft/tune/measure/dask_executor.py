"""An executor over a Dask cluster: needs `distributed`, the extra `cluster`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, Final, ParamSpec, TypeVar

from distributed import Client
from distributed.comm import get_address_host_port

from weft.support.errors import DeviceError, InputError
from weft.tune.measure.isolated_job import run_isolated

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE: Final = 10.0
"""The seconds that a scheduler has to answer."""


class DaskExecutor(Executor):
    """Jobs on the workers of the cluster at *address*, each in a process that may crash without its worker.

    Raises `DeviceError` where no scheduler answers, and `InputError` for an invalid address.
    """

    def __init__(self, address: str, retries: int) -> None:
        _check_address(address)
        try:
            self._client: Any = Client(address, timeout=PATIENCE, set_as_default=False)
        except OSError as error:
            raise DeviceError(
                f"no cluster answers at {address}: {error}", hint="start one with `dask scheduler` and `dask worker`"
            ) from None
        self._jobs = self._client.get_executor(retries=retries, pure=False)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Returns the result to come of *fn*, which the workers import by its name."""
        future: Future[T] = self._jobs.submit(run_isolated, fn, *args, **kwargs)
        return future

    def on_every_worker(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> dict[str, T]:
        """Returns the result of *fn* in the process of each worker, by the worker's address; waits for the first worker.

        Raises `DeviceError` where none comes.
        """
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise DeviceError(
                f"the cluster at {self._client.scheduler.address} has no workers",
                hint="start some with `dask worker`, where Weft is installed",
            ) from None
        found: dict[str, T] = self._client.run(fn, *args, **kwargs)
        return found

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the connection, after all jobs are done if *wait*; the cluster goes on."""
        self._jobs.shutdown(wait=wait and not cancel_futures)
        self._client.close()


def _check_address(address: str) -> None:
    """Raises `InputError` for an invalid address: a client that is given one does not end for long."""
    try:
        get_address_host_port(address)
    except ValueError as error:
        raise InputError(
            f"{address!r} is no address of a cluster: {error}",
            hint="give that of its scheduler, as tcp://host:8786",
        ) from None
