"""A bound on the processor time of something that is tried, whatever exceptions it handles itself."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class TooSlow(BaseException):
    """What was tried took longer than it may."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises `TooSlow` in the block after *seconds* of processor time."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
