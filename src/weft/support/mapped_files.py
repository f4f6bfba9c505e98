"""Files that are mapped instead of read: models, and the weights beside them, of which memory holds the pages in use."""

from __future__ import annotations

from mmap import ACCESS_READ, MADV_DONTNEED, mmap
from pathlib import Path
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

Key: TypeAlias = tuple[str, int, int, int]

_MAPS: Final[WeakValueDictionary[Key, mmap]] = WeakValueDictionary()
"""The maps that are in use, by the path, inode, size and time of their files."""


def map_file(path: Path) -> memoryview:
    """Returns the content of a file without reading it; it is unmapped when nothing refers to it any more.

    A file that is mapped already is not mapped again. Raises `OSError` where it can't be read.
    """
    facts = path.stat()
    if facts.st_size == 0:
        return memoryview(b"")
    key = str(path), facts.st_ino, facts.st_size, facts.st_mtime_ns
    made = _MAPS.get(key)
    if made is None:
        with path.open("rb") as file:
            made = _MAPS[key] = mmap(file.fileno(), 0, access=ACCESS_READ)
    return memoryview(made)


def drop_pages() -> None:
    """Lets go of the memory of all files that are mapped: later reads come from the file, or the system's cache of it."""
    for made in list(_MAPS.values()):
        made.madvise(MADV_DONTNEED)
