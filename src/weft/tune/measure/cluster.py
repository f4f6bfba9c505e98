"""Tuning on the machines of a Dask cluster."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Final, ParamSpec, TypeVar

from weft.driver.hardware import hardware_of
from weft.support.errors import DeviceError, ToolchainError
from weft.support.lazy_import import resolve
from weft.targets import Target

P = ParamSpec("P")
T = TypeVar("T")

SHOWN: Final = 3
"""Workers that an error names."""

CONNECT: Final = "weft.tune.measure.dask_executor:DaskExecutor"
"""The executor; imported when one is wanted, since it needs Dask."""


def cluster_executor(address: str, *, retries: int = 3) -> Executor:
    """Returns an executor whose jobs run on the cluster whose scheduler is at *address*, such as `tcp://host:8786`.

    A job whose worker is lost runs again on another, up to *retries* times. Raises `ToolchainError` without Dask.
    """
    try:
        connect = resolve(CONNECT)
    except ModuleNotFoundError as error:
        raise ToolchainError(
            f"a cluster is reached by Dask, and there is no package {error.name}",
            hint=f"pip install {error.name}",
        ) from None
    made: Executor = connect(address, retries)
    return made


def check_cluster(address: str, target: Target) -> None:
    """Raises an error unless jobs for *target* can be measured on the cluster at *address*, as if on this machine.

    Records are those of one machine, so the workers are to be like it: `DeviceError` where one is not, where there is none, or
    where no scheduler answers; `InputError` for an invalid address, `ToolchainError` without Dask.
    """
    here = hardware_of(target).digest
    with cluster_executor(address) as jobs:
        machines: dict[str, str] = jobs.on_every_worker(_machine, target)  # type: ignore[attr-defined]
    others = [worker for worker, machine in machines.items() if machine != here]
    if others:
        raise DeviceError(
            f"{len(others)} of {len(machines)} workers of the cluster at {address} are other machines than this one: "
            f"{', '.join(others[:SHOWN])}",
            hint="a record is of one kind of machine: tune on one of those, or give a cluster of machines like this",
        )


def _machine(target: Target) -> str:
    return hardware_of(target).digest
