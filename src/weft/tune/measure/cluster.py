"""Tuning on the machines of a Dask cluster."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Final, ParamSpec, TypeVar

from weft.support.errors import ToolchainError
from weft.support.lazy_import import resolve

P = ParamSpec("P")
T = TypeVar("T")

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
