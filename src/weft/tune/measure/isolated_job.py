"""Jobs in a separate process, for the workers of other executors, so that a hang or crash fails one job only."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar

from weft.tune.measure.jobs import Failed
from weft.tune.measure.local_executor import LocalExecutor

P = ParamSpec("P")
T = TypeVar("T")


def run_isolated(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T | Failed:
    """Returns the result of *fn*, carried out by a process that this one keeps for that; `Failed` where it hangs or crashes."""
    return _executor().submit(fn, *args, **kwargs).result()


@cache
def _executor() -> LocalExecutor:
    return LocalExecutor()
