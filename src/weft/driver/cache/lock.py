"""One thread or process at a time makes an entry of the cache; the others wait for it and read the entry.

A claim is a lock of the system (`flock`) on a file beside the entry, so that it ends with the process that holds it, however
that ends. Where the system has no such locks, or they can't be had, work may be done twice; nothing else depends on them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Final

PATIENCE: Final = 600.0
"""Seconds to wait for another process; one that takes longer is assumed to hang, and its entry is made here too."""

MOST: Final = 64
"""Claims of a process at a time: each holds a file open, of which a system may allow only 256."""

_SHORTEST, _LONGEST = 0.002, 0.1  # seconds between two looks

_free = threading.BoundedSemaphore(MOST)


class Claim:
    """The right to make an entry, until `release`, from any thread."""

    def __init__(self, file: int | None = None, path: Path | None = None) -> None:
        self._file = file
        self._path = path

    def release(self) -> None:
        """Releases the lock, so that the next thread or process can take it."""
        if self._file is None or self._path is None:
            return
        file, self._file = self._file, None
        with suppress(OSError):
            os.unlink(self._path)  # while it is locked, so that nobody locks a file that is gone unseen
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # closing is not enough where a child of this process has it open too
        os.close(file)
        _free.release()

    def __enter__(self) -> Claim:
        """Holds the claim for the length of a `with`."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Releases the claim."""
        self.release()


def claim(path: Path, waiting: Callable[[], object] | None = None, patience: float = PATIENCE) -> Claim:
    """Returns the claim for which the file at *path* stands, once nobody else holds it.

    *waiting* is called once if there is somebody to wait for. After *patience* seconds, or where no file can be locked, the
    claim that is returned keeps nobody out.
    """
    if not _free.acquire(blocking=False):
        return Claim()
    deadline, pause, waited = monotonic() + patience, _SHORTEST, False
    try:
        while (file := _try(path)) is None:
            if not waited and waiting is not None:
                waiting()
            waited = True
            if monotonic() > deadline:
                break
            sleep(pause)
            pause = min(2 * pause, _LONGEST)
    except BaseException as e:
        _free.release()
        if isinstance(e, OSError):
            return Claim()
        raise
    if file is None:
        _free.release()
    return Claim(file, path)


def _try(path: Path) -> int | None:
    """Returns the locked file at *path*, open; None if somebody else has it."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(file, path):
                return file
        except BaseException as e:
            os.close(file)
            if isinstance(e, OSError) and e.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return None
            raise
        os.close(file)  # whoever had it removed the file meanwhile: lock the next


def _is_at(file: int, path: Path) -> bool:
    """Tells whether the open *file* is still the one at *path*."""
    try:
        there, here = path.stat(), os.fstat(file)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
