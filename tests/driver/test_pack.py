"""The pack of records that comes with Weft is followed on the machine that it is of, unless it is switched off."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.driver.test_recorded_plans import builds as builds
from tests.driver.tuned import plan_of, record_of, tune
from tests.models import mlp

import weft
from weft.cli.records.export_pack import export_packs
from weft.cost import parse_plan
from weft.driver.build import Compilation
from weft.driver.hardware import hardware_of
from weft.driver.options import CompileOptions
from weft.driver.recorded.recorded_plans import RecordWarning
from weft.driver.recorded.workloads import graph_workload, kernel_workload
from weft.records import SHIPPED, Pack, Store
from weft.targets import host

OFF = CompileOptions(without=("pretuned",))


@pytest.fixture
def packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of packs that this process uses."""
    monkeypatch.setenv("WEFT_PACK_DIR", str(tmp_path / "packs"))
    return tmp_path / "packs"


def ship(packs: Path, plan: Callable[..., str] = plan_of, **facts: Any) -> Compilation:
    """Packs a plan for each kernel of a model; returns the model as the rules compile it."""
    db = packs.with_name("tuned.db")
    rules = tune(db, mlp(), plan, **facts)
    with Store(db, read_only=True) as store:
        export_packs(store, packs)
    return rules


def pack_path(packs: Path) -> Path:
    return packs / f"{hardware_of(host()).digest}.jsonl"


def schedules(made: Compilation) -> list[str]:
    return [k.scheduled for k in made.kernels.values()]


def test_it_is_followed_unless_switched_off(packs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = ship(packs)
    made = weft.build(mlp(), "cpu")
    assert [str(r.plan) for r in made.requests.values()] == [plan_of(r, rules.target) for r in rules.requests.values()]
    assert made.package.notes["records"] == "{0} of {0} kernels ({0} from the pack)".format(len(rules.kernels))
    assert schedules(made) != schedules(rules)
    for off in (OFF, CompileOptions(0, without=("pretuned",))):
        assert all(r.record is None for r in weft.build(mlp(), "cpu", off).requests.values())
    monkeypatch.setenv("WEFT_PACK_DIR", "")
    assert schedules(weft.build(mlp(), "cpu")) == schedules(rules)


def test_a_choice_of_ones_own_is_not_overruled(packs: Path) -> None:
    ship(packs)
    made = weft.build(mlp(), "cpu", choose=lambda candidates: candidates[0])
    assert all(r.record is None for r in made.requests.values())


def test_another_machine_has_none(packs: Path) -> None:
    rules = ship(packs)
    pack_path(packs).rename(packs / f"{'0' * 40}.jsonl")
    assert schedules(weft.build(mlp(), "cpu")) == schedules(rules)
    (packs / f"{'0' * 40}.jsonl").rename(pack_path(packs))  # a file of another machine, under this one's name
    text = pack_path(packs).read_text().replace(hardware_of(host()).digest, "0" * 40, 1)
    pack_path(packs).write_text(text)
    assert schedules(weft.build(mlp(), "cpu")) == schedules(rules)


@pytest.mark.parametrize("target", ["cpu -mattr=sse4", "cpu"])
def test_a_target_with_other_vectors_is_another_machine(packs: Path, target: str) -> None:
    ship(packs)
    is_this = hardware_of(weft.build(mlp(), target).target) == hardware_of(host())
    assert (weft.build(mlp(), target).package.notes["records"] != "none") == is_this


def test_records_of_ones_own_come_first(packs: Path, tmp_path: Path) -> None:
    rules = ship(packs)
    request = next(iter(rules.requests.values()))
    own = plan_of(request, rules.target, lambda some: some[0])
    with Store(tmp_path / "own.db") as store:
        store.add(record_of(kernel_workload(request), rules.target, own, seconds=1.9e-5))
    made = weft.build(mlp(), "cpu", CompileOptions(records=str(tmp_path / "own.db")))
    plans = [str(r.plan) for r in made.requests.values()]
    assert plans[0] == own
    assert plans[1:] == [plan_of(r, rules.target) for r in rules.requests.values()][1:]
    count = len(rules.kernels)
    assert made.package.notes["records"] == f"{count} of {count} kernels ({count - 1} from the pack)"


def test_a_plan_that_no_longer_applies_is_one_line(packs: Path) -> None:
    rules = ship(packs, lambda request, target: plan_of(request, target) + "more: Parallel(loops=0)\n")
    with pytest.warns(RecordWarning) as warned:
        made = weft.build(mlp(), "cpu")
    assert schedules(made) == schedules(rules)
    told = [str(w.message) for w in warned]
    assert len(told) == len(rules.kernels)
    assert all("no longer applies and is left out: " in t and "\n" not in t for t in told)


BROKEN: list[Callable[[str], str]] = [
    lambda line: line[: len(line) // 2],
    lambda line: line.replace('"seconds": 1e-05', '"seconds": "fast"'),
    lambda line: line.replace('"high": 1e-05', '"high": 3e-05'),
    lambda line: line.replace('"baseline": 2e-05', '"baseline": null'),
    lambda line: line.replace('"time"', '"day"'),
    lambda line: "[" * 10_000,
    lambda line: json.dumps({**json.loads(line), "plan": 7}),
    lambda line: json.dumps({**json.loads(line), "plan": ["matmul: Rule(name=3"]}).replace("}", ""),
]


@pytest.mark.parametrize("harm", BROKEN)
def test_a_broken_line_breaks_nothing(packs: Path, harm: Callable[[str], str]) -> None:
    rules = ship(packs)
    head, first, *others = pack_path(packs).read_text().splitlines()
    assert harm(first) != first
    pack_path(packs).write_text("\n".join([head, harm(first), *others]) + "\n")
    broken = json.loads(first)["workload"]
    for request in weft.build(mlp(), "cpu").requests.values():
        assert (request.record is None) == (request.workload == broken)
    assert len(Pack(hardware_of(rules.target).digest, packs).unusable()) == 1


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"{}\n", b'{"weft_pack": 2}\n', b"[1]\n", b"null\n", b"[" * 10_000])
def test_a_broken_file_breaks_nothing(packs: Path, text: bytes) -> None:
    rules = ship(packs)
    pack_path(packs).write_bytes(text)
    assert schedules(weft.build(mlp(), "cpu")) == schedules(rules)


def test_a_model_is_compiled_again_for_another_pack(packs: Path, builds: list[object]) -> None:
    data = mlp().SerializeToString()

    def compiled(times: int, **options: Any) -> None:
        weft.compile(data, **options)
        assert len(builds) == times

    compiled(1)
    ship(packs)
    compiled(2)
    compiled(2)
    compiled(3, without=["pretuned"])
    head, _, *others = pack_path(packs).read_text().splitlines()
    pack_path(packs).write_text("\n".join([head, *others]) + "\n")
    compiled(4)
    pack_path(packs).write_text("\n".join([head, *others, '{"workload": "of another model"}']) + "\n")
    compiled(4)
    pack_path(packs).unlink()
    compiled(4)


def test_the_switch_is_no_part_of_a_workload() -> None:
    graph = weft.build(mlp(), "cpu").source
    assert graph_workload(graph, OFF) == graph_workload(graph, CompileOptions())


MOST_BYTES = 300_000


def test_the_plans_that_are_shipped_are_understood() -> None:
    """A plan of decisions that there are no more is to be tuned anew, or its line removed."""
    files = sorted(SHIPPED.glob("*.jsonl"))
    assert 0 < sum(f.stat().st_size for f in files) <= MOST_BYTES
    for file in files:
        pack = Pack(file.stem, SHIPPED)
        assert pack
        assert not pack.unusable()
        for line in file.read_text("utf-8").splitlines()[1:]:
            record = pack.best(json.loads(line)["workload"])
            assert record is not None
            assert parse_plan(record.plan).steps
