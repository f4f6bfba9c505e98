"""Times for the figures of the decisions in this folder."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time


def best(work: Callable[[], object], repeats: int = 5) -> float:
    """Returns the least processor time that *work* takes, in seconds."""
    taken = []
    for _ in range(repeats):
        start = process_time()
        work()
        taken.append(process_time() - start)
    return min(taken)
