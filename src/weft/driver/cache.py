"""The on-disk cache: entries by key, checked, atomic, bounded in size.

An entry is a file `KIND-KEY`, its content preceded by its SHA-256. The folder is `$WEFT_CACHE_DIR`, else `~/.cache/weft`; it
is the user's alone (mode 0700), since machine code is run from it. Reading an entry makes it the most recently used; the least
recently used go first when the cache outgrows its size.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import weft
from weft.runtime.artifact import read_artifact, write_artifact
from weft.runtime.package import Package
from weft.support.errors import ArtifactError, CacheError

LIMIT = 4 << 30
"""Bytes that the cache may take on disk."""

DIGEST = hashlib.sha256().digest_size


class CacheWarning(UserWarning):
    """The cache can't be used; compiling goes on without it."""


class Cache:
    """A folder of entries; `get` and `put` never fail, they warn and do without."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder = folder
        self.limit = limit

    def path(self, kind: str, key: str) -> Path:
        """Returns the file of an entry, whether or not it exists."""
        return self.folder / f"{kind}-{key}"

    def get(self, kind: str, key: str) -> bytes | None:
        """Returns an entry's content; None if there is none. A damaged one is dropped."""
        path = self.path(kind, key)
        try:
            check_owner(self.folder)
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except (OSError, CacheError) as e:
            _warn(e)
            return None
        if len(data) < DIGEST or hashlib.sha256(data[DIGEST:]).digest() != data[:DIGEST]:
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            os.utime(path)
        return data[DIGEST:]

    def put(self, kind: str, key: str, content: bytes) -> None:
        """Writes an entry; it appears whole or not at all."""
        self._write(lambda: write_file(self.path(kind, key), hashlib.sha256(content).digest() + content))

    def _write(self, write: Callable[[], None]) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_owner(self.folder)
            write()
            self.shrink()
        except (OSError, CacheError) as e:
            _warn(e)

    def package(self, key: str) -> Package | None:
        """Returns a compiled model; None if there is none. A damaged one is dropped."""
        path = self.path("model", key)
        try:
            check_owner(self.folder)
            found = read_artifact(path)
        except FileNotFoundError:
            return None
        except ArtifactError:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            return None
        except (OSError, CacheError) as e:
            _warn(e)
            return None
        with suppress(OSError):
            os.utime(path)
        return found

    def put_package(self, key: str, package: Package) -> None:
        """Keeps a compiled model; its file appears whole or not at all."""
        self._write(lambda: write_artifact(package, self.path("model", key)))

    def shrink(self) -> None:
        """Removes the least recently used entries until the rest fit the limit."""
        entries = sorted([(e.stat().st_atime_ns, e.stat().st_size, e.path) for e in os.scandir(self.folder)])
        total = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if total <= self.limit:
                return
            with suppress(OSError):
                os.unlink(path)
            total -= size


def write_file(path: Path, content: bytes) -> None:
    """Writes a file beside *path*, and moves it there once it is whole."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except OSError:
        with suppress(OSError):
            os.unlink(name)
        raise


def check_owner(folder: Path) -> None:
    """Refuses a folder that is another user's, or that others may write to: code is run from it."""
    found = folder.stat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022:
        raise CacheError(
            f"the cache folder {folder} belongs to, or may be written by, somebody else",
            hint=f"chmod 700 {folder}, or set WEFT_CACHE_DIR to a folder of your own",
        )


def default_cache() -> Cache:
    """Returns the cache in `$WEFT_CACHE_DIR`, else in `~/.cache/weft`."""
    given = os.environ.get("WEFT_CACHE_DIR")
    return Cache(Path(given) if given else Path.home() / ".cache" / "weft")


def digest(*parts: object) -> str:
    """Returns a key for *parts*, by their text."""
    joined = hashlib.sha256()
    for part in parts:
        text = str(part).encode()
        joined.update(len(text).to_bytes(8, "little") + text)
    return joined.hexdigest()[:40]


@cache
def source_hash() -> str:
    """Returns a hash of Weft's own source: code from another version of the compiler is never reused."""
    joined = hashlib.sha256()
    root = Path(weft.__file__).parent
    for path in sorted(root.rglob("*.py")):
        joined.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return joined.hexdigest()


def _warn(error: Exception) -> None:
    warnings.warn(f"Weft's cache is not used: {error}", CacheWarning, stacklevel=4)
