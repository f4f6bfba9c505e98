"""What is kept in a database of tuning records, and how it is found again."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.records.entries import ENTRIES, HERE, MATMUL, PLAN, THERE, matmul, measured, record, text_of

from weft.records import Entry, Hardware, Measurement, Record, Store, Workload, add_lines, distance, lines_of
from weft.support.errors import RecordsError


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "tune.db"


def test_what_is_added_is_read_back(db: Path) -> None:
    entries: list[Entry] = [HERE, MATMUL, record(0.5, time=1.5, origin="xgb"), measured(None, failure="timeout")]
    with Store(db) as store:
        assert store.add(*entries) == 4
        assert store.add(*entries) == 0
    with Store(db, read_only=True) as store:
        assert list(store.entries()) == entries
        assert store.counts() == {"hardware": 1, "workload": 1, "record": 1, "measurement": 1}
        assert store.workload(MATMUL.digest) == MATMUL
        assert store.hardware(HERE.digest) == HERE
        assert store.workload("unknown") is None


def test_nothing_is_left_beside_the_file(db: Path) -> None:
    with Store(db) as store:
        store.add(HERE)
        with Store(db, read_only=True) as reader:
            assert reader.counts()["hardware"] == 1
    assert list(db.parent.iterdir()) == [db]


@pytest.mark.parametrize("field", [f.name for f in fields(Record)])
def test_the_digest_covers_every_field(field: str) -> None:
    made = record(0.5)
    now = getattr(made, field)
    other: Any = not now if isinstance(now, bool) else now + 1 if isinstance(now, int | float) else f"{now}!"
    assert replace(made, **{field: other}).digest != made.digest


def test_numbers_of_numpy_are_kept_as_pythons(db: Path) -> None:
    times: Any = np.array([0.5, 1], np.float64)
    with Store(db) as store:
        given_sizes: Any = (np.int64(3), 4)
        w = Workload("kernel", "text", sizes=given_sizes)
        assert store.add(w, record(times[0], baseline=times[1], samples=np.int64(20)), record(0.5)) == 2
        assert store.workload(w.digest) == Workload("kernel", "text", sizes=(3, 4))
        assert store.records() == [record(0.5)]


def test_the_best_is_verified_and_no_loss(db: Path) -> None:
    slow, fast = record(0.5), record(0.4, baseline=None)
    with Store(db) as store:
        store.add(record(0.1, verified=False), record(0.3, baseline=0.29), record(0.2, hardware=THERE), slow)
        assert store.best(MATMUL.digest, HERE.digest) == slow
        store.add(fast)
        assert store.best(MATMUL.digest, HERE.digest) == fast
        assert store.best(matmul(1).digest, HERE.digest) is None
        assert [r.seconds for r in store.for_workload(MATMUL.digest)] == [0.2, 0.3, 0.4, 0.5, 0.1]


def test_of_equal_records_the_latest_is_the_best(db: Path) -> None:
    with Store(db) as store:
        store.add(*[record(0.5, time=t) for t in (1.0, 3.0, 2.0)])
        best = store.best(MATMUL.digest, HERE.digest)
    assert best is not None
    assert best.time == 3.0


def test_the_nearest_workloads(db: Path) -> None:
    sizes = [(64, 64, 128), (32, 64, 128), (512, 64, 128), (64, 64)]
    shapes = [matmul(*s) for s in sizes]
    with Store(db) as store:
        store.add(*shapes, *[record(0.5, w) for w in shapes[1:]], record(0.1, shapes[0], THERE))
        store.add(replace(matmul(64, 64, 128), structure="a sum", text="sum"))
        asked = store.nearest("a matrix product", (64, 64, 128), HERE.digest, 2)
        assert [(n.workload.sizes, round(n.distance, 3)) for n in asked] == [(sizes[1], 0.693), (sizes[2], 2.079)]
        hints = store.nearest("a matrix product", (64, 64, 128), HERE.digest, 9, others=True)
    assert [n.workload.sizes for n in hints] == [*sizes[1:], sizes[0]]
    assert hints[-1].record.hardware == THERE.digest


SIZES = st.lists(st.integers(-(1 << 40), 1 << 40), min_size=3, max_size=3)


@given(SIZES, SIZES, SIZES)
def test_distances_are_those_of_a_metric(a: list[int], b: list[int], c: list[int]) -> None:
    assert distance(a, a) == 0.0
    assert distance(a, b) == pytest.approx(distance(b, a))
    assert distance(a, c) <= distance(a, b) + distance(b, c) + 1e-9


def test_distances() -> None:
    assert distance((2, 8), (4, 4)) == pytest.approx(2 * math.log(2))
    assert distance((0,), (1,)) == distance((-1,), (0,)) == 1.0
    assert distance((1,), (1, 1)) == math.inf


def test_measurements_are_in_the_order_of_their_times(db: Path) -> None:
    found = [measured(0.1, "b", time=2.0), measured(None, "c", "crash", 3.0), measured(0.2, "a", time=1.0)]
    with Store(db) as store:
        store.add(*found)
        assert [m.plan for m in store.measurements()] == ["a", "b", "c"]
        assert store.measurements(MATMUL.digest, THERE.digest) == []
        assert {m.plan_digest for m in store.measurements(MATMUL.digest, HERE.digest)} == {m.plan_digest for m in found}


@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(ENTRIES, min_size=2, max_size=3))
def test_merging_does_not_depend_on_order_or_repetition(parts: list[list[Entry]], db: Path) -> None:
    for path in db.parent.iterdir():
        path.unlink()
    paths = [db.with_name(f"{n}.db") for n in range(len(parts))]
    ways = [list(range(len(parts))), [*reversed(range(len(parts))), len(parts) - 1, 0]]
    made = [db.with_name(f"merged{n}.db") for n in range(len(ways))]
    for path, part in zip(paths, parts, strict=True):
        with Store(path) as store:
            store.add(*part)
    for into, way in zip(made, ways, strict=True):
        with Store(into) as store:
            for n in way:
                with Store(paths[n], read_only=True) as other:
                    store.merge(other)
    assert len({text_of(path) for path in made}) == 1
    with Store(made[0], read_only=True) as merged, Store(db) as again:
        assert {e.digest for e in merged.entries()} == {e.digest for part in parts for e in part}
        add_lines(again, list(lines_of(merged)), "export")
    assert text_of(db) == text_of(made[0])


def test_pruning(db: Path) -> None:
    old = matmul(1, 1)
    with Store(db) as store:
        store.add(HERE, THERE, MATMUL, old)
        store.add(*[record(s, time=100.0) for s in (0.1, 0.2, 0.3)], record(0.05, verified=False, time=100.0))
        store.add(record(0.5, hardware=THERE, time=100.0), record(0.1, old, time=10.0))
        store.add(measured(0.1, time=10.0), replace(measured(0.1, time=100.0), weft="0.0.1"), measured(0.1, time=100.0))
        nothing = {"hardware": 0, "workload": 0, "record": 0, "measurement": 0}
        assert store.prune() == nothing
        assert store.prune(keep=2) == {**nothing, "record": 2}
        assert [r.seconds for r in store.for_workload(MATMUL.digest)] == [0.1, 0.2, 0.5]
        assert store.prune(before=50.0) == {**nothing, "workload": 1, "record": 1, "measurement": 1}
        assert store.prune(weft="0.1.0") == {**nothing, "measurement": 1}
        assert store.prune(weft="0.2.0") == {"hardware": 2, "workload": 1, "record": 3, "measurement": 1}


def test_an_entry_that_would_not_be_read_back_is_refused_and_the_rest_with_it(db: Path) -> None:
    with Store(db) as store:
        with pytest.raises(RecordsError) as told:
            store.add(HERE, record(math.nan))
        assert str(told.value) == (
            "a record can't be kept: seconds is nan, which is no number, 0 or more\n"
            "  hint: measure again, and record finite times"
        )
        assert store.counts()["hardware"] == 0


def lines(*objects: str) -> list[str]:
    return ['{"weft_records": 1}', *objects]


FACTS = '"digest": "a", "facts": "{}"'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ([], "tune.jsonl is empty"),
        (["[1]"], "line 1 of tune.jsonl is none of tuning records: it is no object"),
        (
            ['{"weft_records": 2}'],
            'line 1 of tune.jsonl is none of tuning records: the first line is {"weft_records": 1}',
        ),
        (
            lines('{"table": "plan"}'),
            "line 2 of tune.jsonl is none of tuning records: its table is none of hardware, workload, record, measurement",
        ),
        (
            lines('{"table": "hardware"}'),
            "line 2 of tune.jsonl is none of tuning records: a hardware has the fields digest, facts",
        ),
        (
            lines(f'{{"table": "hardware", {FACTS}}}', '{"table": "hardware", "digest": "a", "facts": 1}'),
            "line 3 of tune.jsonl is none of tuning records: facts is 1, which is no text",
        ),
    ],
)
def test_text_that_is_no_export(db: Path, text: list[str], told: str) -> None:
    with Store(db) as store:
        with pytest.raises(RecordsError) as caught:
            add_lines(store, text, "tune.jsonl")
        assert store.counts()["hardware"] == 0
    assert str(caught.value) == f"{told}\n  hint: give a file that `weft records export` wrote"


def test_a_line_that_was_changed_is_refused(db: Path) -> None:
    with Store(db) as store:
        store.add(HERE, MATMUL, record(0.5))
        changed = [line.replace("tiled", "wild") for line in lines_of(store)]
        with pytest.raises(RecordsError, match="line 4 of x is none of tuning records: the digest of a record is not"):
            add_lines(store, changed, "x")


def test_every_field_has_a_column() -> None:
    for kind in (Hardware, Workload, Record, Measurement):
        assert {f.type for f in fields(kind)} <= {"str", "int", "float", "bool", "float | None", "tuple[int, ...]"}
    assert PLAN.endswith("\n")
