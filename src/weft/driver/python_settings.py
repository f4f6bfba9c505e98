"""Settings of the Python interpreter that suit a compilation, while any is on its way.

A compilation makes objects by the hundred thousand, most of which live until it ends. Python goes through them again and
again, looking for cycles that nothing refers to: 5 to 9 % of the time that ResNet-18 took.

One thread schedules and lowers kernels, others have LLVM compile them. LLVM needs no interpreter lock, but after each call
into it a thread waits for the lock, by default 5 ms each time: on two idle cores, ResNet-18 took a fifth longer.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final, Generic, TypeAlias, TypeVar

T = TypeVar("T")

OBJECTS: Final = 500_000
"""How many new objects there are before their cycles are looked for: about fifty megabytes. ResNet-18 has 150,000 in the end."""

YOUNGER: Final = 1
"""The older of the two generations that hold new objects."""

PATIENCE: Final = 0.001
"""Seconds for which a thread waits for the interpreter lock before it asks for it."""


class _Setting(Generic[T]):
    """A setting that compilations change; the last of them to end restores the value that the first one found."""

    def __init__(self, read: Callable[[], T], write: Callable[[T], None], wanted: Callable[[T], T]) -> None:
        self._read, self._write, self._wanted = read, write, wanted
        self._lock = Lock()
        self._before: list[T] = []  # one for each compilation that is on its way

    @contextmanager
    def changed(self) -> Iterator[None]:
        """Changes the setting until the end of the block."""
        with self._lock:
            found = self._read()
            self._before.append(self._before[0] if self._before else found)
            self._set(self._wanted(found))
        try:
            yield
        finally:
            with self._lock:
                kept = self._before.pop()
                if not self._before:
                    self._set(kept)

    def _set(self, value: T) -> None:
        if value != self._read():  # Python rounds the value it is given: set it only if it differs
            self._write(value)


Thresholds: TypeAlias = tuple[int, int, int]


def _rarer(found: Thresholds) -> Thresholds:
    """Returns the thresholds while compiling: those *found*, if they have Python collect more seldom, or never."""
    return (OBJECTS, *found[1:]) if 0 < found[0] < OBJECTS else found


_COLLECTOR: Final = _Setting[Thresholds](gc.get_threshold, lambda t: gc.set_threshold(*t), _rarer)
_SWITCHES: Final = _Setting[float](sys.getswitchinterval, sys.setswitchinterval, lambda found: min(found, PATIENCE))


@contextmanager
def tuned_for_compiling() -> Iterator[None]:
    """Lets the collector of cycles wait for more objects, and threads less long for the interpreter lock."""
    with _COLLECTOR.changed(), _SWITCHES.changed():
        yield


@contextmanager
def collecting_new_objects() -> Iterator[None]:
    """At the end of the block, frees reference cycles among the objects made in it.

    Those are in the collector's younger generations unless there are several times `OBJECTS` of them. The oldest generation
    isn't traversed: a program that compiles may have millions of objects there. (Nor would `gc.freeze` be free: whether the
    program has frozen objects is found out by counting them.)
    """
    yield
    gc.collect(YOUNGER)


@contextmanager
def tuned_for_a_worker() -> Iterator[None]:
    """Has a process that does nothing but compile leave out of every search for cycles what it has imported."""
    gc.collect()
    gc.freeze()
    with tuned_for_compiling():
        yield
