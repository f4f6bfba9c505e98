"""A database of tuning records: one SQLite file for any number of processes.

with Store("tune.db") as store:
    store.add(hardware, workload, record)
    best = store.best(workload.digest, hardware.digest)

An entry is identified by the digest of its content, so that adding it again, or merging the same file twice, changes nothing.
"""

from __future__ import annotations

import math
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from weft.records.database import connect, damaged, telling
from weft.records.record import (
    NAMES,
    TABLES,
    E,
    Entry,
    Hardware,
    Measurement,
    Record,
    Value,
    Workload,
    columns,
    entry_of,
    values,
)
from weft.support.errors import RecordsError

BETTER: Final = "verified DESC, seconds, time DESC, digest"
"""The order of records, the best first: those that are verified, by their times; of equals the latest."""

_FOLLOWED: Final = "verified AND (baseline IS NULL OR seconds <= baseline)"
"""Holds for the records that a compilation may follow."""

BATCH: Final = 1000
"""Entries that are copied in one step."""


@dataclass(frozen=True)
class Neighbour:
    """The best record of a workload that is like another: the sum of the logarithms of their sizes' ratios is *distance*."""

    distance: float
    workload: Workload
    record: Record


class Store:
    """The records in the file at *path*, which is made unless the store is *read_only*.

    Every method raises `RecordsError` where the file is damaged, in use for long, or can't be written. A store may be used
    by several threads, one of them at a time; another process opens the file itself.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._connection = connect(self.path, read_only=read_only)

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Store:
        """Opens nothing more: the store is open from the start."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the file."""
        self.close()

    def add(self, *entries: Entry) -> int:
        """Writes *entries*, all or none of them; returns how many were not there yet.

        Of two workloads, or machines, of one digest, whose labels or facts differ, the first in alphabetical order stays,
        whichever came first.
        """
        with self._writing():
            return self._insert(entries)

    def best(self, workload: str, hardware: str) -> Record | None:
        """Returns the fastest record of a workload on a machine, given by their digests, that is verified and no loss."""
        where = f"workload = ? AND hardware = ? AND {_FOLLOWED} ORDER BY {BETTER} LIMIT 1"
        return next(iter(self._select(Record, where, workload, hardware)), None)

    def for_workload(self, workload: str) -> list[Record]:
        """Returns all records of a workload, of any machine, the best first."""
        return self._select(Record, f"workload = ? ORDER BY {BETTER}", workload)

    def nearest(
        self, structure: str, sizes: Sequence[int], hardware: str, n: int, *, others: bool = False
    ) -> list[Neighbour]:
        """Returns the best records of the *n* workloads of a *structure* whose sizes are the nearest.

        With *others*, those of other machines come after: plans that were fast there are hints of plans to measure here.
        """
        found = []
        for w in self._select(Workload, "structure = ? ORDER BY digest", structure):
            away = distance(w.sizes, sizes)
            machines = dict.fromkeys([r.hardware for r in self.for_workload(w.digest)] if others else [hardware])
            best = [self.best(w.digest, h) for h in machines]
            found += [Neighbour(away, w, r) for r in best if r is not None]
        return sorted(found, key=lambda f: (f.record.hardware != hardware, f.distance, f.record.digest))[:n]

    def measurements(self, workload: str | None = None, hardware: str | None = None) -> list[Measurement]:
        """Returns the candidates that were measured, in the order in which that was done; by default all of them."""
        where = "(?1 IS NULL OR workload = ?1) AND (?2 IS NULL OR hardware = ?2) ORDER BY time, digest"
        return self._select(Measurement, where, workload, hardware)

    def records(self) -> list[Record]:
        """Returns all records, grouped by workload and machine, the best first."""
        return self._select(Record, f"TRUE ORDER BY workload, hardware, {BETTER}")

    def workload(self, digest: str) -> Workload | None:
        """Returns the workload of a digest."""
        return next(iter(self._select(Workload, "digest = ?", digest)), None)

    def hardware(self, digest: str) -> Hardware | None:
        """Returns the machine of a digest."""
        return next(iter(self._select(Hardware, "digest = ?", digest)), None)

    def entries(self) -> Iterator[Entry]:
        """Yields everything that is stored, table by table, in the order of the digests."""
        for kind in TABLES.values():
            last = ""
            while rows := self._some(kind, last):
                yield from rows
                last = rows[-1].digest

    def _some(self, kind: type[Entry], last: str) -> Sequence[Entry]:
        found: Sequence[Entry] = self._select(kind, f"digest > ? ORDER BY digest LIMIT {BATCH}", last)  # type: ignore[type-var]
        return found

    def counts(self) -> dict[str, int]:
        """Returns how many entries each table has."""
        with self._lock, telling(self.path):
            return {name: self._count(name) for name in TABLES}

    def merge(self, other: Store) -> int:
        """Copies all that *other* has, all or nothing; returns how many entries were not there yet.

        The result is the same in whatever order files are merged, and however often.
        """
        with self._writing():
            return self._insert(other.entries())

    def prune(self, keep: int | None = None, before: float | None = None, weft: str | None = None) -> dict[str, int]:
        """Removes records that are of no more use; returns how many entries each table lost.

        *keep* leaves the best so many of each workload and machine; *before* removes measurements from before that moment
        (seconds since 1970), *weft* those of other versions of Weft. Workloads and machines that nothing refers to go too.
        """
        with self._writing():
            start = {name: self._count(name) for name in TABLES}
            ranked = (
                f"SELECT id, row_number() OVER (PARTITION BY workload, hardware ORDER BY {BETTER}) AS rank FROM record"
            )
            if keep is not None:
                self._execute(f"DELETE FROM record WHERE id IN (SELECT id FROM ({ranked}) WHERE rank > ?)", keep)
            for name in ("record", "measurement"):
                self._execute(f"DELETE FROM {name} WHERE time < ? OR weft <> ?", before, weft)
            for name in ("workload", "hardware"):
                used = f"SELECT {name} FROM record UNION SELECT {name} FROM measurement"
                self._execute(f"DELETE FROM {name} WHERE digest NOT IN ({used})")
            lost = {name: count - self._count(name) for name, count in start.items()}
        with (
            self._lock,
            suppress(RecordsError),
            telling(self.path),
        ):  # another process reads: the file stays as long as it is
            self._execute("VACUUM")
        return lost

    def _insert(self, entries: Iterable[Entry]) -> int:
        start = sum(map(self._count, TABLES))
        for e in entries:
            self._connection.execute(_INSERT[type(e)], _checked(e))
        return sum(map(self._count, TABLES)) - start

    def _count(self, table: str) -> int:
        return int(self._execute(f"SELECT count(*) FROM {table}")[0][0])

    def _select(self, kind: type[E], where: str, *given: object) -> list[E]:
        with self._lock, telling(self.path):
            rows = self._execute(f"SELECT {', '.join(columns(kind))} FROM {NAMES[kind]} WHERE {where}", *given)
        try:
            return [entry_of(kind, row) for row in rows]
        except ValueError as error:
            raise damaged(self.path, str(error)) from None

    def _execute(self, statement: str, *given: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, given).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Gives a transaction: its writes are kept as a whole, or not at all."""
        with self._lock, telling(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite itself may have ended it
                    self._connection.execute("ROLLBACK")
                raise


def _checked(entry: Entry) -> list[Value]:
    """Returns the values of *entry*; raises `RecordsError` for one that would not be read back."""
    found = values(entry)
    try:
        entry_of(type(entry), found)  # type: ignore[type-var]
    except ValueError as error:
        kind = NAMES[type(entry)]
        raise RecordsError(f"a {kind} can't be kept: {error}", hint="measure again, and record finite times") from None
    return found


def _insertion(kind: type[Entry]) -> str:
    """Returns the statement that writes an entry; of two with one digest the lesser stays."""
    names = columns(kind)
    new, old = ", ".join([f"excluded.{n}" for n in names]), ", ".join(names)
    return (
        f"INSERT INTO {NAMES[kind]}({old}) VALUES({', '.join('?' * len(names))}) ON CONFLICT(digest) DO UPDATE SET"
        f" ({old}) = ({new}) WHERE ({new}) < ({', '.join([f'{NAMES[kind]}.{n}' for n in names])})"
    )


_INSERT: Final = {kind: _insertion(kind) for kind in NAMES}


def distance(a: Sequence[int], b: Sequence[int]) -> float:
    """Returns how much two lists of sizes differ: the sum of |log(a/b)|, infinite for lists of different lengths.

    Zero counts as one, and a difference in sign, or from zero, adds one.
    """
    if len(a) != len(b):
        return math.inf
    return sum(
        [abs(math.log(max(1, abs(x)) / max(1, abs(y)))) + (_sign(x) != _sign(y)) for x, y in zip(a, b, strict=True)]
    )


def _sign(x: int) -> int:
    return (x > 0) - (x < 0)
