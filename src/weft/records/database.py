"""The SQLite file of a database: its schema, how it is opened, and SQLite's errors in words.

A database is in WAL mode: readers and a writer do not wait for one another, and a process that is killed loses at most the
transaction it was in. `application_id` marks the file as Weft's, `user_version` is the version of the schema.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from weft.records.record import TABLES, columns
from weft.support.errors import RecordsError

VERSION: Final = 1
"""Counts up when the tables change."""

MARK: Final = 0x57656674
"""SQLite's `application_id` of a database of tuning records: "Weft"."""

PATIENCE: Final = 30.0
"""Seconds to wait for another process that writes."""

_INDICES: Final = (
    "CREATE INDEX record_by_workload ON record(workload, hardware)",
    "CREATE INDEX measurement_by_workload ON measurement(workload, hardware)",
    "CREATE INDEX workload_by_structure ON workload(structure)",
)

_NO_RECORDS: Final = "give a file that `weft tune` or `weft records import` wrote"


def schema() -> list[str]:
    """Returns the statements that make the tables: one for each kind of entry, a column for each of its fields."""
    made = []
    for name, kind in TABLES.items():
        digest, *others = columns(kind)
        made.append(f"CREATE TABLE {name}(id INTEGER PRIMARY KEY, {digest} TEXT NOT NULL UNIQUE, {', '.join(others)})")
    return [*made, *_INDICES]


def connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """Opens the database at *path*, which is made if there is none, unless it is *read_only*.

    Raises `RecordsError` for a file that is none, or that can't be opened.
    """
    _check_place(path, read_only=read_only)
    with telling(path):
        return _open_read_only(path) if read_only else _open(path, "mode=rwc", create=True)


def _open_read_only(path: Path) -> sqlite3.Connection:
    """Opens a database to read; one in a folder that may not be written in, where WAL mode has no files, as it stands.

    SQLite may write, where that is allowed: a connection that may not would leave the files of WAL mode behind.
    """
    try:
        found = _open(path, "mode=rw")
        found.execute("PRAGMA query_only=ON")
        return found
    except sqlite3.OperationalError as error:
        latest = path.with_name(f"{path.name}-wal")
        if _code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        if latest.exists() and latest.stat().st_size:
            raise
        return _open(path, "immutable=1")


def _open(path: Path, how: str, *, create: bool = False) -> sqlite3.Connection:
    place = f"file:{quote(os.path.abspath(path))}?{how}"
    found = sqlite3.connect(place, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "synchronous=NORMAL"):
            found.execute(f"PRAGMA {pragma}")
        if create and _number(found, "user_version") == 0:
            _create(found)
        _check_kind(found, path)
    except BaseException:
        found.close()
        raise
    return found


def _create(made: sqlite3.Connection) -> None:
    """Makes the tables in a new file, unless another process made them meanwhile; leaves a file of others alone."""
    made.execute("BEGIN IMMEDIATE")
    try:
        if _number(made, "user_version") == 0 and not made.execute("SELECT 1 FROM sqlite_schema").fetchall():
            for statement in (*schema(), f"PRAGMA application_id={MARK}", f"PRAGMA user_version={VERSION}"):
                made.execute(statement)
        made.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            made.execute("ROLLBACK")
        raise
    if _number(made, "application_id") == MARK:
        _use_wal(made)


def _use_wal(made: sqlite3.Connection) -> None:
    """Switches to WAL mode; SQLite does not wait for others there, and without it all is right but slower."""
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        with suppress(sqlite3.OperationalError):
            made.execute("PRAGMA journal_mode=WAL")
            return
        time.sleep(0.01)


def _check_kind(found: sqlite3.Connection, path: Path) -> None:
    """Raises `RecordsError` for an SQLite database of another kind, or of a later version of Weft."""
    mark, version = _number(found, "application_id"), _number(found, "user_version")
    if mark != MARK:
        if not found.execute("SELECT 1 FROM sqlite_schema").fetchall():
            raise RecordsError(f"{path} is empty: no tuning records were written to it yet", hint=_NO_RECORDS)
        raise RecordsError(f"{path} is a database, but none of tuning records", hint=_NO_RECORDS)
    if version > VERSION:
        raise RecordsError(
            f"{path} has version {version} of the tables of tuning records, and this Weft knows version {VERSION}",
            hint="use the version of Weft that wrote it, or a later one",
        )


def _number(found: sqlite3.Connection, pragma: str) -> int:
    return int(found.execute(f"PRAGMA {pragma}").fetchone()[0])


def _check_place(path: Path, *, read_only: bool) -> None:
    """Raises `RecordsError` for a path at which there is no plain file, and none to be made."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if read_only:
            raise RecordsError(f"there are no tuning records at {path}", hint=_NO_RECORDS) from None
        if not path.parent.is_dir():
            raise RecordsError(
                f"{path} can't be written: there is no folder {path.parent}", hint="make it, or choose another"
            ) from None
        return
    except (OSError, ValueError) as error:
        told = getattr(error, "strerror", None) or error
        raise RecordsError(f"{path} can't be used: {told}", hint="give another path") from None
    if not stat.S_ISREG(mode):
        raise RecordsError(f"{path} is not a plain file", hint=_NO_RECORDS)


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """Turns SQLite's errors about the database at *path* into `RecordsError`."""
    try:
        yield
    except sqlite3.ProgrammingError:  # a mistake of the caller's
        raise
    except sqlite3.Error as error:
        raise _told(error, path) from None


def _code(error: sqlite3.Error) -> int:
    """Returns SQLite's primary code of an error; 0 where it has none."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _told(error: sqlite3.Error, path: Path) -> RecordsError:
    code = _code(error)
    if code in _TOLD:
        what, hint = _TOLD[code]
        return RecordsError(f"{path} {what}", hint=hint)
    if code == sqlite3.SQLITE_IOERR:
        return RecordsError(f"{path} can't be read or written: {error}", hint="check the disk")
    return damaged(path, str(error))


def damaged(path: Path, why: str) -> RecordsError:
    """Returns the error for a database that is damaged."""
    return RecordsError(
        f"{path} is damaged: {why}", hint=f"copy what can still be read: weft records salvage {path} NEW.db"
    )


_TOLD: Final = {
    sqlite3.SQLITE_READONLY: (
        "can't be written: it is read-only",
        "make it and its folder writable, or merge it into a file of your own",
    ),
    sqlite3.SQLITE_BUSY: ("is in use: another process writes to it", "try again when that is done"),
    sqlite3.SQLITE_FULL: ("can't be written: the disk is full", "make room; what was written before is kept"),
    sqlite3.SQLITE_CANTOPEN: ("can't be opened", "check that you may read it, and write in its folder"),
    sqlite3.SQLITE_NOTADB: ("is no database of tuning records", _NO_RECORDS),
}
"""The messages and hints for SQLite's error codes."""
