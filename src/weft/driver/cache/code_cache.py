"""The on-disk cache: entries by key, checked, atomic, bounded in size.

An entry is a file `KIND-KEY`: its content preceded by its SHA-256, or an artifact, which has a checksum of its own. Reading an
entry makes it the most recently used; the least recently used go first when the cache outgrows its size, 4 GiB or
`$WEFT_CACHE_LIMIT`. `driver.cache.cache_folder` defines the folder and the other files in it.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Final, TypeVar

from weft.driver.cache.cache_folder import ENTRY, check_folder, default_folder, make_folder, sweep
from weft.driver.cache.lock import Claim, claim
from weft.runtime.artifact import fill_artifact, read_artifact
from weft.runtime.lazy_constants import LazyConstants
from weft.runtime.package import Package
from weft.support.errors import ArtifactError, CacheError
from weft.support.files import replace_file

LIMIT: Final = 4 << 30
"""Bytes that the cache may take on disk."""

DIGEST: Final = hashlib.sha256().digest_size

_SIZE: Final = re.compile(r"(\d{1,15}(?:\.\d+)?) *([KMGT]?)(i?B?)", re.IGNORECASE)

_KNOWN_SIZES: Final[dict[Path, int]] = {}
"""The bytes of all entries in a folder, as far as this process knows, so that it looks at all of them once."""

_SIZES_LOCK: Final = threading.Lock()

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """One file of the cache: its kind, key, bytes, and when it was last used (seconds of the system's clock)."""

    kind: str
    key: str
    path: Path
    nbytes: int
    used: float


class CacheWarning(UserWarning):
    """The cache can't be used; compiling goes on without it."""


class Cache:
    """A folder of entries, for any number of threads and processes.

    Nothing here fails: at the first error of the system it warns, and goes on as a cache that is empty and stays so.
    """

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self._usable = True

    def path(self, kind: str, key: str) -> Path:
        """Returns the file of an entry, whether or not it exists."""
        return self.folder / f"{kind}-{key}"

    def get(self, kind: str, key: str) -> bytes | None:
        """Returns an entry's content; None if there is none. A damaged one is dropped."""
        return self._read(self.path(kind, key), read_checked)

    def package(self, key: str) -> Package | None:
        """Returns a compiled model; None if there is none. A damaged one is dropped."""
        return self._read(self.path("model", key), lambda path: read_artifact(path) if path.exists() else None)

    def put(self, kind: str, key: str, content: bytes) -> None:
        """Writes an entry; it appears whole or not at all."""
        data = hashlib.sha256(content).digest() + content
        self._write(self.path(kind, key), lambda file: file.write(data))

    def put_package(self, key: str, package: Package) -> Package:
        """Keeps a compiled model; its file appears whole or not at all. Returns it, lazy constants as they are in that file.

        One that is larger than all of the cache may be is not kept.
        """
        lazy = package.constants if isinstance(package.constants, LazyConstants) else None
        if lazy is not None and lazy.nbytes >= self.limit:
            return package
        self._write(self.path("model", key), partial(fill_artifact, package))
        return package if lazy is None else self.package(key) or package

    def claim(self, kind: str, key: str, waiting: Callable[[], object] | None = None) -> Claim:
        """Returns the right to make an entry, once no other thread or process is at it.

        *waiting* is called once if there is one. The holder looks for the entry once more: another may have made it, and released
        the claim, since the holder looked for it first. An unusable cache keeps nobody out.
        """
        if not self._usable:
            return Claim()
        try:
            make_folder(self.folder)
        except (OSError, CacheError) as e:
            self._give_up(e)
            return Claim()
        return claim(self.folder / f".lock-{kind}-{key}", waiting)

    def entries(self) -> list[Entry]:
        """Returns the entries of the cache, the most recently used first; raises `CacheError` if the folder can't be read."""
        with self._reporting():
            return sorted(_entries(self.folder), key=lambda e: -e.used)

    def remove(self, entries: Iterable[Entry]) -> int:
        """Removes *entries*; returns the bytes that are free now."""
        freed = 0
        with self._reporting(), suppress(FileNotFoundError):
            check_folder(self.folder)
            sweep(self.folder)
        for e in entries:
            with self._reporting(), suppress(FileNotFoundError):  # removed by another process
                os.unlink(e.path)
                freed += e.nbytes
        return freed

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Turns errors of the system into `CacheError`, for those who ask for the cache itself."""
        try:
            yield
        except OSError as e:
            raise CacheError(
                f"the cache in {self.folder} can't be used: {e.strerror or e}",
                hint="set WEFT_CACHE_DIR to a folder of your own",
            ) from None

    def _read(self, path: Path, read: Callable[[Path], T | None]) -> T | None:
        if not self._usable:
            return None
        try:
            check_folder(self.folder)
            found = read(path)
        except FileNotFoundError:
            return None
        except ArtifactError:  # damaged
            with suppress(OSError):
                path.unlink()
            return None
        except (OSError, CacheError) as e:
            self._give_up(e)
            return None
        with suppress(OSError):  # it may be read-only
            os.utime(path)
        return found

    def _write(self, path: Path, write: Callable[[IO[bytes]], object]) -> None:
        if not self._usable:
            return
        try:
            make_folder(self.folder)
            replace_file(path, write, 0o600)
            self._grow(path)
        except (OSError, CacheError) as e:
            self._give_up(e)

    def _give_up(self, error: Exception) -> None:
        self._usable = False
        warnings.warn(f"Weft's cache is not used: {error}", CacheWarning, stacklevel=2)

    def _grow(self, path: Path) -> None:
        """Counts a new entry, and makes room when the entries outgrow the limit."""
        with _SIZES_LOCK:
            known = _KNOWN_SIZES.get(self.folder)
            if known is not None and path.exists():
                known += path.stat().st_size
            _KNOWN_SIZES[self.folder] = known if known is not None and known <= self.limit else self.shrink()

    def shrink(self) -> int:
        """Removes the least recently used entries until the rest fit the limit; returns the bytes that they take."""
        sweep(self.folder)
        entries = sorted(_entries(self.folder), key=lambda e: e.used)
        total = sum(e.nbytes for e in entries)
        for e in entries:
            if total <= self.limit:
                break
            with suppress(OSError):
                os.unlink(e.path)
            total -= e.nbytes
        return total


def _entries(folder: Path) -> list[Entry]:
    """Returns the entries in *folder*; none if there is no such folder."""
    found = []
    try:
        check_folder(folder)
    except FileNotFoundError:
        return []
    for file in os.scandir(folder):
        name = ENTRY.fullmatch(file.name)
        with suppress(FileNotFoundError):  # removed by another process
            if name is not None and file.is_file(follow_symlinks=False):
                facts = file.stat()
                found.append(Entry(name[1], name[2], Path(file.path), facts.st_size, facts.st_mtime))
    return found


def read_checked(path: Path) -> bytes:
    """Returns the content of an entry that `Cache.put` wrote; raises `ArtifactError` if its checksum is wrong."""
    data = path.read_bytes()
    if len(data) < DIGEST or hashlib.sha256(data[DIGEST:]).digest() != data[:DIGEST]:
        raise ArtifactError("its checksum is wrong", where=str(path), hint="remove it")
    return data[DIGEST:]


def default_cache() -> Cache:
    """Returns the cache in `$WEFT_CACHE_DIR`, else in `weft` in `$XDG_CACHE_HOME` or `~/.cache`."""
    return Cache(default_folder(), _limit(os.environ.get("WEFT_CACHE_LIMIT", "")))


def _limit(given: str) -> int:
    """Returns the bytes that the user allows the cache, such as `500MB` or `2GiB`; warns of a text that is not a size."""
    size = _SIZE.fullmatch(given.strip())
    if size is not None:
        base = 1000 if size[3].upper() == "B" else 1024
        return int(float(size[1]) * base ** " KMGT".index(size[2].upper() or " "))
    if given:
        warnings.warn(
            f"WEFT_CACHE_LIMIT is {given!r}, which is no size such as 500MB or 2GiB", CacheWarning, stacklevel=2
        )
    return LIMIT
