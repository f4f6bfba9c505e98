"""Kernels for cases of open sizes: a single row or column, few terms, whole vectors; each form of a model calls the same ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto
from tests.driver.host.ways import Ways
from tests.frontends.onnx.nodes import float_inputs, floats, int64s, model_of, node

import weft
from weft.cost import Choose, Plan, Step, Takes, Versions
from weft.driver import kernel_request
from weft.driver.build import Compilation, build
from weft.driver.host_model import replay_model
from weft.driver.options import CompileOptions
from weft.loop import Program, canonical_text
from weft.runtime import Model
from weft.schedule import Schedule, schedule_program
from weft.targets import Target


def quarters(*shape: int) -> np.ndarray:
    """Numbers whose sums of products are exact in any order."""
    return np.asarray(np.rint(4 * floats(*shape)) / 4, np.float32)


def product() -> ModelProto:
    """A row or more by a matrix, with something done to the result in the memory of it."""
    weights = {"w": quarters(64, 128), "b": quarters(128)}
    nodes = [node("MatMul", "x w", "y0"), node("Add", "y0 b", "y1"), node("Relu", "y1", "y")]
    return model_of(nodes, float_inputs(x=("n", 64)), weights=weights)


def softmax() -> ModelProto:
    return model_of([node("Softmax", "x", "y", axis=-1)], float_inputs(x=(5, "n")))


def columns() -> ModelProto:
    return model_of([node("MatMul", "x y", "z")], float_inputs(x=(7, 32), y=(32, "n")), outputs=("z",))


def cases(made: Compilation) -> list[tuple[tuple[int, str, int], ...]]:
    """The cases that were chosen, of each kernel that there was a choice for."""
    return [s.decision.cases for s in made.graph_plan.steps if isinstance(s.decision, Versions)]


def with_cases(made: Compilation, *chosen: tuple[int, str, int]) -> Plan:
    """The plan of a graph with other versions."""
    steps = [
        Step(s.subject, Versions(chosen)) if isinstance(s.decision, Versions) else s for s in made.graph_plan.steps
    ]
    return replace(made.graph_plan, steps=tuple(steps))


@pytest.mark.parametrize(
    ("model", "relation", "names"), [(product(), "==", "x"), (columns(), "==", "xy"), (softmax(), "<=", "x")]
)
def test_all_forms_of_a_model_agree_at_each_size(model: ModelProto, relation: str, names: str) -> None:
    ways = Ways(model, rtol=1e-5)
    (made,) = cases(ways.made)
    assert made
    assert {case[1] for case in made} == {relation}
    for n in (1, 2, 7, 8, 9, 16, 17, 40):
        shapes = {s.name: [n if isinstance(d, str) else d for d in s.shape] for s in ways.models[0].inputs}
        ways.check({name: quarters(*shapes[name]) for name in names})


@pytest.mark.parametrize("case", [(0, "%", 8), (0, "<=", 8), (0, "==", 3)])
def test_any_case_can_be_asked_for(case: tuple[int, str, int]) -> None:
    model = softmax()
    plain = build(model, options=CompileOptions(without=("versions",)))
    assert not cases(plain)
    made = build(model, graph_plan=with_cases(build(model), case), options=CompileOptions(verify=True))
    assert len(made.kernels) == 2
    compiled, replayed, other = Model(made.package), Model(replay_model(made)), Model(plain.package)
    for n in (1, 3, 7, 8, 9, 16, 40):
        x = floats(5, n)
        found = np.asarray(compiled(x))
        np.testing.assert_array_equal(found, np.asarray(replayed(x)))
        np.testing.assert_allclose(found, np.asarray(other(x)), rtol=1e-6)


def test_versions_are_in_a_saved_model(tmp_path: Path) -> None:
    compiled = weft.compile(columns())
    compiled.save(tmp_path / "columns.weft")
    loaded = weft.load(tmp_path / "columns.weft")
    for n in (1, 5):
        x, y = floats(7, 32), floats(32, n)
        np.testing.assert_array_equal(np.asarray(loaded(x, y)), np.asarray(compiled(x, y)))


def test_sizes_outside_of_a_case_have_no_version_for_it() -> None:
    shapes: dict[str, weft.Dim | int] = {"n": weft.Dim(2, 64)}
    assert cases(build(columns(), shapes=shapes)) == [()]
    assert cases(build(softmax(), shapes={"n": weft.Dim(100, 200)})) == [()]


def test_a_size_that_may_be_zero_or_late() -> None:
    model = columns()
    compiled = weft.compile(model, shapes={"n": weft.Dim(0)}, verify=True)
    for n in (0, 1, 2, 9):
        x, y = floats(7, 32), floats(32, n)
        np.testing.assert_allclose(np.asarray(compiled(x, y)), x @ y, rtol=1e-4, atol=1e-5)
    nodes = [
        node("NonZero", "x", "found"),
        node("Transpose", "found", "rows", perm=[1, 0]),
        node("Cast", "rows", "given", to=1),
        node("MatMul", "given w", "y"),
    ]
    late = model_of(nodes, float_inputs(x=(9,)), weights={"w": floats(1, 40)})
    made = Ways(late)
    for count in (0, 1, 2, 9):
        x = np.zeros(9, np.float32)
        x[9 - count :] = 1
        made.check({"x": x})


def test_kernels_of_other_limits_are_other_kernels() -> None:
    """Their code may rest on the limits, which their loops do not show."""
    requests = [build(softmax(), shapes={"n": weft.Dim(1, high)}).requests for high in (8, 16)]
    few, more = (next(iter(r.values())) for r in requests)
    assert few.text == more.text
    assert few.workload != more.workload


def test_a_sum_of_nothing_beside_versions() -> None:
    model = model_of(
        [node("ReduceSum", "x axes", "y", keepdims=0)], float_inputs(x=(3, "n")), weights={"axes": int64s(1)}
    )
    compiled = weft.compile(model, shapes={"n": weft.Dim(0)}, verify=True)
    for n in (0, 1, 8, 16, 17):
        x = floats(3, n)
        np.testing.assert_allclose(np.asarray(compiled(x)), x.sum(1), rtol=1e-4, atol=1e-5)


def test_loops_that_were_scheduled_to_be_weighed_are_not_scheduled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduled: list[str] = []

    def noted(program: Program, target: Target, choose: Choose, takes: Takes | None = None) -> Schedule:
        scheduled.append(canonical_text(program))
        return schedule_program(program, target, choose, takes)

    monkeypatch.setattr(kernel_request, "schedule_program", noted)
    made = build(softmax())
    assert len(made.kernels) == 2  # for any size, and for few terms
    assert len(scheduled) == 2
    again = build(softmax(), graph_plan=made.graph_plan)  # which weighs nothing
    assert len(scheduled) == 4
    assert {k.flat for k in again.kernels.values()} == {k.flat for k in made.kernels.values()}
