"""Packs have the winners of a database alone, in the same order always, and read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.records.entries import HERE, MATMUL, THERE, matmul, record

from weft.records import Pack, Record, Store, is_clear_win, machines_with_winners, pack_lines, winners_of

SMALL = matmul(8, 8, 8)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "tune.db")
    store.add(HERE, THERE, MATMUL, SMALL)
    return store


def packed(store: Store, folder: Path) -> Pack:
    (folder / f"{HERE.digest}.jsonl").write_text(
        "".join(pack_lines(store, HERE, winners_of(store, HERE.digest))), encoding="utf-8"
    )
    return Pack(HERE.digest, folder)


@pytest.mark.parametrize(
    ("facts", "is_kept"),
    [
        ({}, True),
        ({"verified": False}, False),
        ({"baseline": None}, False),
        ({"baseline": 0.54}, False),  # its interval ends at 0.55
        ({"baseline": 0.551}, False),  # by less than machines of a kind differ
        ({"baseline": 0.56}, True),
        ({"hardware": THERE.digest}, False),
    ],
)
def test_winners_beyond_noise_are_kept(store: Store, facts: dict[str, object], is_kept: bool) -> None:
    store.add(replace(record(0.5), **facts))  # type: ignore[arg-type]
    assert bool(winners_of(store, HERE.digest)) == is_kept


def test_the_best_of_each_workload_is_kept(store: Store, tmp_path: Path) -> None:
    slow, fast, noisy, other = record(0.7), record(0.5), replace(record(0.4), high=2.0), record(0.25, SMALL)
    store.add(slow, noisy, fast, other, record(0.5, hardware=THERE))
    assert winners_of(store, HERE.digest) == sorted([fast, other], key=lambda r: r.workload)
    assert machines_with_winners(store) == [HERE, THERE]
    pack = packed(store, tmp_path)
    assert (len(pack), pack.unusable()) == (2, [])
    assert [pack.best(w.digest) for w in (MATMUL, SMALL)] == [fast, other]
    assert pack.best("another") is None
    assert Pack(THERE.digest, tmp_path).best(MATMUL.digest) is None
    assert not Pack(HERE.digest, None)


def test_lines_are_to_be_reviewed(store: Store, tmp_path: Path) -> None:
    store.add(replace(record(0.123456789), plan="a: Rule(name='x')\nb: Parallel(loops=0)\n", trace="long " * 100))
    packed(store, tmp_path)
    head, line = map(json.loads, (tmp_path / f"{HERE.digest}.jsonl").read_text().splitlines())
    assert head == {"weft_pack": 1, "hardware": HERE.digest, "facts": json.loads(HERE.facts)}
    assert (line["for"], line["seconds"], line["plan"]) == (
        "matmul",
        0.1235,
        ["a: Rule(name='x')", "b: Parallel(loops=0)"],
    )
    assert "long" not in str(line)


@pytest.mark.parametrize(
    ("field", "value"),
    [("samples", "many"), ("weft", 3), ("backend", None), ("seconds", True), ("low", -1.0), ("baseline", float("inf"))],
)
def test_a_line_with_a_value_of_another_type_is_passed_over(
    store: Store, tmp_path: Path, field: str, value: object
) -> None:
    store.add(record(0.5))
    pack = packed(store, tmp_path)
    assert pack.best(MATMUL.digest) is not None
    assert pack.path is not None
    head, line = pack.path.read_text().splitlines()
    pack.path.write_text(f"{head}\n{json.dumps({**json.loads(line), field: value})}\n")
    assert Pack(HERE.digest, tmp_path).unusable() == [MATMUL.digest]


def test_a_clear_win() -> None:
    made: Record = record(0.5)
    assert is_clear_win(made)
    assert not is_clear_win(made, least_gain=0.5)
