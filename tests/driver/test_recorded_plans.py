"""Compilations follow tuning records: those of this machine, as long as they apply, and they notice new ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.driver.tuned import dearest, plan_of, record_of, tune, tune_graph
from tests.models import conv_bn_relu, matmul, mlp, random_inputs

import weft
from weft.cost import parse_plan
from weft.driver import build as build_module
from weft.driver.build import Compilation
from weft.driver.cache.code_cache import default_cache
from weft.driver.hardware import hardware_of
from weft.driver.kernel_request import KernelRequest
from weft.driver.options import CompileOptions
from weft.driver.recorded.recorded_plans import RecordWarning
from weft.driver.recorded.workloads import kernel_workload
from weft.graph import print_graph
from weft.records import Store
from weft.runtime.model import Model
from weft.targets import Target


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "tune.db"


def built(model: object, db: Path, **options: Any) -> Compilation:
    return weft.build(model, "cpu", CompileOptions(records=str(db)), cache=default_cache(), **options)


def told(made: pytest.WarningsRecorder) -> list[str]:
    return [str(w.message) for w in made]


def test_kernels_are_made_by_the_plans_of_records(db: Path) -> None:
    rules = tune(db, mlp())
    made = built(mlp(), db)
    assert [str(r.plan) for r in made.requests.values()] == [plan_of(r, rules.target) for r in rules.requests.values()]
    assert all(r.record is not None for r in made.requests.values())
    assert [k.scheduled for k in made.kernels.values()] != [k.scheduled for k in rules.kernels.values()]
    assert made.package.notes["records"] == "{0} of {0} kernels".format(len(rules.kernels))
    inputs = random_inputs(mlp())
    np.testing.assert_allclose(Model(made.package)(**inputs), Model(rules.package)(**inputs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("facts", [{"verified": False}, {"hardware": "another"}, {"baseline": 1e-6}])
def test_records_that_are_not_followed(db: Path, facts: dict[str, Any]) -> None:
    rules = tune(db, mlp(), **facts)
    made = built(mlp(), db)
    assert all(r.record is None and r.plan is None for r in made.requests.values())
    assert [k.scheduled for k in made.kernels.values()] == [k.scheduled for k in rules.kernels.values()]
    assert made.package.notes["records"] == "none"


def test_workloads_are_those_of_kernels_whatever_their_names(db: Path) -> None:
    tune(db, mlp())
    other = mlp()
    for node in other.graph.node:
        node.name = f"another_{node.name}"
    assert all(r.record is not None for r in built(other, db).requests.values())


def test_a_plan_of_another_kernel_is_left_out(db: Path) -> None:
    rules = tune(db, mlp(), lambda request, target: plan_of(request, target) + "more: Parallel(loops=0)\n")
    with pytest.warns(RecordWarning) as warned:
        made = built(mlp(), db)
    assert [k.scheduled for k in made.kernels.values()] == [k.scheduled for k in rules.kernels.values()]
    assert all(r.record is None for r in made.requests.values())
    steps = [len(plan_of(r, rules.target).splitlines()) + 1 for r in rules.requests.values()]
    assert told(warned) == [
        f"the tuning record of kernel {r.name} no longer applies and is left out: the plan is of another program:"
        f" nothing asks for its step {n}, `more: Parallel(loops=0)`"
        for r, n in zip(rules.requests.values(), steps, strict=True)
    ]


def test_a_plan_of_another_version_is_left_out(db: Path) -> None:
    rules = tune(db, mlp(), lambda request, target: "matmul: Magic()\n")
    with pytest.warns(RecordWarning) as warned:
        made = built(mlp(), db)
    assert [k.scheduled for k in made.kernels.values()] == [k.scheduled for k in rules.kernels.values()]
    assert len(warned) == len(rules.kernels)
    assert told(warned)[0].startswith(
        "the tuning record of kernel matmul_packed_relu no longer applies and is left out: "
        "line 1 of a plan is no decision: 'matmul: Magic()' (there is no decision Magic; there are "
    )


def test_a_plan_that_breaks_the_compiler_is_left_out(db: Path) -> None:
    def broken(request: KernelRequest, target: Target) -> str:
        return re.sub(r"(rows=|sizes=\()\d+", r"\1'many'", plan_of(request, target))

    rules = tune(db, mlp(), broken)
    with pytest.warns(RecordWarning) as warned:
        made = built(mlp(), db)
    assert all(r.record is None for r in made.requests.values())
    assert [k.scheduled for k in made.kernels.values()] == [k.scheduled for k in rules.kernels.values()]
    assert told(warned)[0].startswith(
        "the tuning record of kernel matmul_packed_relu no longer applies and is left out:"
        " no code could be made for it: TypeError: "
    )


def test_graphs_are_made_by_the_plans_of_records(db: Path) -> None:
    dear = weft.build(conv_bn_relu(), "cpu", choose=dearest)
    rules = tune_graph(db, conv_bn_relu(), str(dear.graph_plan))
    made = built(conv_bn_relu(), db)
    assert made.graph_record is not None
    assert made.package.notes["records"] == "the graph"
    assert print_graph(made.fused.graph) == print_graph(dear.fused.graph) != print_graph(rules.fused.graph)
    given = built(conv_bn_relu(), db, graph_plan=rules.graph_plan)
    assert given.graph_record is None
    assert print_graph(given.fused.graph) == print_graph(rules.fused.graph)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            "weight: Panel(columns=16)\n",
            "the tuning record of graph conv_bn_relu no longer applies and is left out: the plan is of another program: ",
        ),
        (
            "weight: Magic()\n",
            "the tuning record of graph conv_bn_relu no longer applies and is left out: line 1 of a plan is no decision: ",
        ),
    ],
)
def test_a_plan_of_another_graph_is_left_out(db: Path, plan: str, message: str) -> None:
    rules = tune_graph(db, conv_bn_relu(), plan)
    with pytest.warns(RecordWarning) as warned:
        made = built(conv_bn_relu(), db)
    assert made.graph_record is None
    assert made.graph_plan == rules.graph_plan
    assert [text[: len(message)] for text in told(warned)] == [message]


DENSE, CONV = mlp(widths=(24, 10)), conv_bn_relu()


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """The models that were built while the test ran, in an empty cache."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    made: list[object] = []
    real = weft.build

    def build(model: object, *args: Any, **named: Any) -> Any:
        made.append(model)
        return real(model, *args, **named)

    monkeypatch.setattr(build_module, "build", build)
    return made


def test_a_model_is_compiled_again_when_a_record_of_its_own_is_new(
    db: Path, builds: list[object], tmp_path: Path
) -> None:
    path = tmp_path / "dense.onnx"
    path.write_bytes(DENSE.SerializeToString())
    rules = tune(db, DENSE)

    def compiled(times: int, records: Path | None = db) -> None:
        weft.compile(path, records=records)
        assert len(builds) == times

    compiled(1)
    compiled(1)
    tune(db, matmul())  # of another model
    compiled(1)
    tune(db, DENSE, seconds=1.5e-5, origin="slower")
    compiled(1)
    tune(db, DENSE, seconds=0.9e-5, origin="the same plans, measured again")
    compiled(1)
    moved = db.rename(tmp_path / "moved.db")
    compiled(1, moved)
    compiled(2, None)
    request = next(iter(rules.requests.values()))
    workload, plan = kernel_workload(request), plan_of(request, rules.target, lambda some: some[0])
    with Store(moved) as store:
        store.add(record_of(workload, rules.target, plan, seconds=1e-6))
    compiled(3, moved)
    compiled(3, moved)
    with Store(moved) as store:
        store.prune(before=1.9e9)
    compiled(4, moved)
    with pytest.raises(weft.RecordsError) as caught:
        compiled(4, db)
    assert str(caught.value) == (
        f"there are no tuning records at {db}\n  hint: give a file that `weft tune` or `weft records import` wrote"
    )


def test_a_plan_of_a_graph_counts_too(db: Path, builds: list[object]) -> None:
    data = CONV.SerializeToString()
    dear = weft.build(CONV, "cpu", choose=dearest)
    Store(db).close()
    first = weft.compile(data, records=str(db))
    tune_graph(db, CONV, str(dear.graph_plan))
    tuned = [weft.compile(data, records=str(db)) for _ in range(2)]
    assert len(builds) == 2
    inputs = random_inputs(CONV)
    for model in tuned:
        np.testing.assert_allclose(model(**inputs), first(**inputs), rtol=1e-3, atol=1e-4)


def test_a_path_that_is_none() -> None:
    with pytest.raises(weft.InputError) as caught:
        weft.compile(mlp(), records=3)  # type: ignore[arg-type]
    assert str(caught.value) == (
        'records is 3\n  hint: give the path of a database of tuning records, such as "tune.db"'
    )


def test_workloads_have_labels_for_people() -> None:
    made = weft.build(mlp(), "cpu")
    labels = [kernel_workload(r).label for r in made.requests.values()]
    panels = r"f32\[\d, 24, \d+\]"  # by the vectors that the machine has
    assert re.fullmatch(rf"matmul_packed_relu f32\[batch, 24\] {panels} f32\[32\] f32\[batch, 32\]", labels[0])
    assert parse_plan(str(made.graph_plan)) == made.graph_plan
    assert hardware_of(made.target) == hardware_of(made.target)
