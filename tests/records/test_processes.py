"""Databases of tuning records outlive those who write them: killed writers, several at once, no room, no permission."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.records.entries import HERE, MATMUL, measured, record

from weft.records import Store
from weft.support.errors import RecordsError

WRITE = """
import sys
from weft.records import Measurement, Store
with Store(sys.argv[1]) as store:
    for n in range(int(sys.argv[3])):
        store.add(*[Measurement(sys.argv[2], "here", "0.1.0", f"plan {n} {part}", 0.5) for part in range(2)])
        print(n, flush=True)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITE, str(path), name, str(count)], stdout=subprocess.PIPE, text=True
    )


def test_a_writer_that_is_killed_loses_at_most_the_write_in_flight(tmp_path: Path) -> None:
    path, rng, expected = tmp_path / "tune.db", random.Random(1), 0
    for turn in range(4):
        with writer(path, f"writer {turn}", 100_000) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.random() * 0.05)
            process.send_signal(signal.SIGKILL)
            told = [0, *[int(line) for line in process.stdout.read().splitlines() if line]]
        with Store(path, read_only=turn % 2 == 0) as store:
            found = store.measurements(f"writer {turn}")
            assert len(found) in (2 * len(told), 2 * len(told) + 2)  # the last line may not have been printed
            expected += len(found)
            assert store.counts()["measurement"] == expected
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    processes = [writer(path, f"writer {n}", 60) for n in range(3)]
    assert [p.communicate()[0].split()[-1] for p in processes] == ["59"] * 3
    with Store(path, read_only=True) as store:
        assert [len(store.measurements(f"writer {n}")) for n in range(3)] == [120] * 3


def test_readers_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    with Store(tmp_path / "tune.db") as store:
        store.add(HERE)
        blocking = sqlite3.connect(store.path, isolation_level=None)
        blocking.execute("BEGIN IMMEDIATE")
        with Store(store.path, read_only=True) as reader:
            assert reader.hardware(HERE.digest) == HERE
        blocking.close()


def test_a_writer_that_waits_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.records.database.PATIENCE", 0.05)
    with Store(tmp_path / "tune.db") as store:
        blocking = sqlite3.connect(store.path, isolation_level=None)
        blocking.execute("BEGIN IMMEDIATE")
        with pytest.raises(RecordsError) as told:
            store.add(HERE)
        blocking.execute("ROLLBACK")
        blocking.close()
        assert str(told.value) == (
            f"{store.path} is in use: another process writes to it\n  hint: try again when that is done"
        )
        assert store.add(HERE) == 1


def test_a_transaction_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def entries() -> Iterator[object]:
        yield HERE
        raise KeyboardInterrupt

    with Store(tmp_path / "tune.db") as store, Store(tmp_path / "other.db") as other:
        other.entries = entries  # type: ignore[method-assign,assignment]
        with pytest.raises(KeyboardInterrupt):
            store.merge(other)
        assert store.counts()["hardware"] == 0
        assert store.add(HERE) == 1


def as_nobody(work: Callable[[], str]) -> str:
    """Returns what *work* returns, done by a user who owns nothing; errors as text."""
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        told = "crashed"
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setuid(65534)
            told = work()
        except RecordsError as error:
            told = str(error)
        finally:
            os.write(ends[1], told.encode())
            os._exit(0)
    os.close(ends[1])
    os.waitpid(child, 0)
    with os.fdopen(ends[0]) as answer:
        return answer.read()


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A database that others may read, in a folder in which they may not write."""
    opened = [p for p in (tmp_path, *tmp_path.parents) if p.stat().st_uid == os.geteuid() and p != Path("/")]
    modes = {p: stat.S_IMODE(p.stat().st_mode) for p in opened}
    with Store(tmp_path / "tune.db") as store:
        store.add(HERE, MATMUL, record(0.5))
    (tmp_path / "tune.db").chmod(0o444)
    for p in opened:
        p.chmod(modes[p] | 0o055)
    tmp_path.chmod(0o555)
    yield tmp_path / "tune.db"
    for p, mode in modes.items():
        p.chmod(mode)


def test_a_read_only_file_in_a_read_only_folder_is_read(shared: Path) -> None:
    def read() -> str:
        with Store(shared, read_only=True) as store:
            best = store.best(MATMUL.digest, HERE.digest)
            return str(best.seconds if best is not None else None)

    assert as_nobody(read) == "0.5"
    assert [p.name for p in shared.parent.iterdir()] == ["tune.db"]


def test_a_read_only_file_is_not_written(shared: Path) -> None:
    def write() -> str:
        with Store(shared) as store:
            return str(store.add(measured(0.5)))

    told = as_nobody(write)
    assert told in (
        f"{shared} can't be written: it is read-only\n"
        "  hint: make it and its folder writable, or merge it into a file of your own",
        f"{shared} can't be opened\n  hint: check that you may read it, and write in its folder",
    )


def test_a_read_only_store_is_not_written(tmp_path: Path) -> None:
    with Store(tmp_path / "tune.db") as store:
        store.add(HERE)
    with Store(tmp_path / "tune.db", read_only=True) as store, pytest.raises(RecordsError, match="it is read-only"):
        store.add(MATMUL)


def fill(store: Store) -> None:
    for n in range(10_000):
        store.add(measured(0.5, f"plan {n:04}" * 50, time=float(n)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=256k", "weft", str(disk)]
    if subprocess.run(mounted, check=False, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        with Store(disk / "tune.db") as store:
            with pytest.raises(RecordsError) as told:
                fill(store)
            kept = [m.plan for m in store.measurements()]
            assert kept == [f"plan {n:04}" * 50 for n in range(len(kept))]
    finally:
        subprocess.run(["umount", disk], check=True)
    assert "can't be" in str(told.value)


def test_no_room_is_told(tmp_path: Path) -> None:
    with Store(tmp_path / "tune.db") as store:
        store.add(HERE)
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(RecordsError) as told:
            store.add(*[measured(0.5, "plan" * 9000, time=float(n)) for n in range(20)])
        assert str(told.value) == (
            f"{store.path} can't be written: the disk is full\n  hint: make room; what was written before is kept"
        )
        assert store.counts() == {"hardware": 1, "workload": 0, "record": 0, "measurement": 0}
