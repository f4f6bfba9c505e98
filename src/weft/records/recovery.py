"""Copying the readable entries out of a damaged database.

SQLite has no checksums; entries have their digests, and one that does not fit its digest is left out. A page that can't be
read takes the entries on it along, found by halving the range of their numbers, and no others.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weft.records.database import MARK
from weft.records.record import NAMES, TABLES, Entry, columns, entry_of
from weft.records.store import Store
from weft.support.errors import RecordsError

_MOST_FAILURES: Final = 10_000
"""Ranges of a table that can't be read before the rest is given up: the roots of its tree are gone."""


@dataclass(frozen=True)
class Salvaged:
    """The numbers of entries of each table that were copied from a damaged database.

    *unfit* entries were read, but did not fit their digests; *complete* tells that there was nothing that could not be read.
    """

    copied: dict[str, int]
    unfit: int
    complete: bool


def salvage(damaged: Path, into: Path) -> Salvaged:
    """Copies the readable entries of the database *damaged*, which is left as it is, to a new one at *into*.

    Raises `RecordsError` if there is a file at *into*, or if nothing can be read.
    """
    if into.exists() or into.is_symlink():
        raise RecordsError(f"{into} is there already", hint="salvage to a new file, and merge that: weft records merge")
    if not damaged.is_file():
        raise RecordsError(f"there is no file {damaged}", hint="give the path of the damaged database")
    with tempfile.TemporaryDirectory() as folder:
        found = _Reader(_copied(damaged, Path(folder)))
        entries = list(found.entries())
    if not entries:
        raise RecordsError(
            f"nothing can be read of {damaged}", hint="restore it from a copy, or from an export, or tune again"
        )
    with Store(into) as store:
        store.add(*entries)
        return Salvaged(store.counts(), found.unfit, found.complete)


def _copied(path: Path, folder: Path) -> Path:
    """Returns a copy of a database, with the last writes, which SQLite keeps beside it."""
    copy = folder / "copy.db"
    try:
        shutil.copyfile(path, copy)
        with suppress(FileNotFoundError):
            shutil.copyfile(path.with_name(f"{path.name}-wal"), copy.with_name(f"{copy.name}-wal"))
    except OSError as error:
        raise RecordsError(f"{path} can't be read: {error.strerror or error}", hint="check the disk") from None
    return copy


class _Reader:
    """Reads a database as far as that goes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unfit = 0
        self.complete = True

    def entries(self) -> Iterator[Entry]:
        """Yields the entries that can be read and fit their digests."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.text_factory = bytes
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA writable_schema=ON")  # or a file that was cut short would not be opened
                if connection.execute("PRAGMA application_id").fetchone()[0] not in (MARK, 0):
                    return
            for kind in TABLES.values():
                for row in self._rows(connection, kind):
                    yield from self._entry(kind, row)

    def _entry(self, kind: type[Entry], row: tuple[Any, ...]) -> Iterator[Entry]:
        try:
            yield entry_of(kind, [v.decode() if isinstance(v, bytes) else v for v in row])  # type: ignore[type-var]
        except ValueError:
            self.unfit += 1

    def _rows(self, connection: sqlite3.Connection, kind: type[Entry]) -> Iterator[tuple[Any, ...]]:
        """Yields the rows of a table; where a range of numbers can't be read as a whole, those of its halves."""
        statement = f"SELECT {', '.join(columns(kind))} FROM {NAMES[kind]} WHERE id >= ? AND id < ?"
        ranges = deque([(0, self.path.stat().st_size + 1)])  # a row takes more than a byte
        failures = 0
        while ranges and failures < _MOST_FAILURES:
            low, high = ranges.popleft()
            try:
                yield from connection.execute(statement, (low, high)).fetchall()
            except sqlite3.Error:
                self.complete = False
                failures += 1
                middle = (low + high) // 2
                ranges += [part for part in ((low, middle), (middle, high)) if high - low > 1]
