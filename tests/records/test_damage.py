"""Files that are damaged, or none of tuning records: what is said of each, and what is saved of it."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.records.entries import HERE, MATMUL, measured, record, text_of

from weft.records import Store, salvage
from weft.support.errors import RecordsError

SAVED = "give a file that `weft tune` or `weft records import` wrote"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A database of some pages: one record, and 400 measurements."""
    path = tmp_path / "tune.db"
    with Store(path) as store:
        store.add(HERE, MATMUL, record(0.5), *[measured(0.5, f"plan {n}\n" * 20, time=float(n)) for n in range(400)])
    return path


def folder(path: Path) -> None:
    path.mkdir()


def others(path: Path) -> None:
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE notes(text)")


def later(path: Path) -> None:
    Store(path).close()
    with closing(sqlite3.connect(path)) as made:
        made.execute("PRAGMA user_version=2")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: None, f"there are no tuning records at DB\n  hint: {SAVED}"),
        (folder, f"DB is not a plain file\n  hint: {SAVED}"),
        (lambda path: path.touch(), f"DB is empty: no tuning records were written to it yet\n  hint: {SAVED}"),
        (lambda path: path.write_bytes(b"#!/bin/sh\n" * 99), f"DB is no database of tuning records\n  hint: {SAVED}"),
        (others, f"DB is a database, but none of tuning records\n  hint: {SAVED}"),
        (
            later,
            "DB has version 2 of the tables of tuning records, and this Weft knows version 1\n"
            "  hint: use the version of Weft that wrote it, or a later one",
        ),
    ],
    ids=["missing", "folder", "empty", "script", "database", "later"],
)
def test_what_is_no_database(tmp_path: Path, make: Callable[[Path], object], told: str) -> None:
    path = tmp_path / "some.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(RecordsError) as caught:
        Store(path, read_only=True)
    assert str(caught.value).replace(str(path), "DB") == told
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize("make", [others, later, lambda path: path.write_bytes(b"#!/bin/sh\n" * 99)])
def test_files_of_others_are_not_written(tmp_path: Path, make: Callable[[Path], object]) -> None:
    path = tmp_path / "some.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(RecordsError):
        Store(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gone/tune.db", "DB can't be written: there is no folder GONE\n  hint: make it, or choose another"),
        ("x" * 300, "DB can't be used: File name too long\n  hint: give another path"),
        ("\0", "DB can't be used: embedded null byte\n  hint: give another path"),
    ],
)
def test_where_no_file_can_be(tmp_path: Path, name: str, told: str) -> None:
    path = tmp_path / name
    with pytest.raises(RecordsError) as caught:
        Store(path)
    shown = str(caught.value).replace("\\x00", "\0").replace(str(path), "DB").replace(str(tmp_path / "gone"), "GONE")
    assert shown == told


def test_a_name_with_characters_of_addresses(tmp_path: Path) -> None:
    path = tmp_path / "a?mode=ro&b=%20#c d.db"
    with Store(path) as store:
        store.add(HERE)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_file_that_was_cut_short(db: Path) -> None:
    data = db.read_bytes()
    db.write_bytes(data[: len(data) // 2])
    with pytest.raises(RecordsError) as told, Store(db, read_only=True) as store:
        store.measurements()
    assert str(told.value) == (
        f"{db} is damaged: database disk image is malformed\n"
        f"  hint: copy what can still be read: weft records salvage {db} NEW.db"
    )
    found = salvage(db, db.with_name("saved.db"))
    assert not found.complete
    assert 20 < found.copied["measurement"] < 400
    with Store(db.with_name("saved.db"), read_only=True) as store:
        assert {m.digest for m in store.measurements()} < {
            measured(0.5, f"plan {n}\n" * 20, time=float(n)).digest for n in range(400)
        }


def test_a_page_of_rubbish_takes_its_entries_and_no_others(db: Path) -> None:
    data = bytearray(db.read_bytes())
    page = data.index(b"plan 200\n") // 4096
    data[page * 4096 : page * 4096 + 4096] = random.Random(1).randbytes(4096)
    db.write_bytes(data)
    with pytest.raises(RecordsError, match="is damaged"), Store(db, read_only=True) as store:
        store.measurements()
    found = salvage(db, db.with_name("saved.db"))
    assert (found.copied["record"], found.copied["workload"], found.copied["hardware"]) == (1, 1, 1)
    assert 380 <= found.copied["measurement"] < 400
    with Store(db.with_name("saved.db"), read_only=True) as store:
        assert store.best(MATMUL.digest, HERE.digest) == record(0.5)


def test_a_changed_plan_is_noticed(db: Path) -> None:
    data = db.read_bytes()
    assert data.count(b"name='tiled'") == 1
    db.write_bytes(data.replace(b"name='tiled'", b"name='tilee'"))
    with Store(db, read_only=True) as store, pytest.raises(RecordsError) as told:
        store.best(MATMUL.digest, HERE.digest)
    assert str(told.value) == (
        f"{db} is damaged: the digest of a record is not that of its fields\n"
        f"  hint: copy what can still be read: weft records salvage {db} NEW.db"
    )
    found = salvage(db, db.with_name("saved.db"))
    assert (found.unfit, found.complete, found.copied["record"], found.copied["measurement"]) == (1, True, 0, 400)


def test_a_database_that_is_whole_is_salvaged_whole(db: Path) -> None:
    before = db.read_bytes()
    found = salvage(db, db.with_name("saved.db"))
    assert (found.unfit, found.complete) == (0, True)
    assert text_of(db.with_name("saved.db")) == text_of(db)
    assert db.read_bytes() == before


def digests(path: Path) -> set[str]:
    with Store(path, read_only=True) as store:
        return {m.digest for m in store.measurements()}


def test_damage_anywhere_is_an_error_in_words(db: Path) -> None:
    """Whatever bytes are changed, what is read is right, or it is said that the file is damaged."""
    data, rng = db.read_bytes(), random.Random(7)
    right = digests(db)
    for turn in range(10):
        broken = bytearray(data)
        at = rng.randrange(len(broken))
        broken[at : at + rng.choice([1, 16, 5000])] = rng.randbytes(rng.choice([1, 16, 5000]))
        db.write_bytes(broken)
        saved = db.with_name(f"saved{turn}.db")
        with suppress(RecordsError):
            assert digests(db) <= right
        with suppress(RecordsError):
            salvage(db, saved)
        assert not saved.exists() or digests(saved) <= right


def test_what_is_not_salvaged(db: Path, tmp_path: Path) -> None:
    for damaged, into, told in [
        (db, db, f"{db} is there already\n  hint: salvage to a new file, and merge that: weft records merge"),
        (
            tmp_path / "gone.db",
            tmp_path / "new.db",
            f"there is no file {tmp_path / 'gone.db'}\n  hint: give the path of the damaged database",
        ),
    ]:
        with pytest.raises(RecordsError) as caught:
            salvage(damaged, into)
        assert str(caught.value) == told
    db.write_bytes(random.Random(1).randbytes(9000))
    with pytest.raises(RecordsError) as caught:
        salvage(db, tmp_path / "new.db")
    assert str(caught.value) == (
        f"nothing can be read of {db}\n  hint: restore it from a copy, or from an export, or tune again"
    )
    assert not (tmp_path / "new.db").exists()
