"""Templates: an expert's schedule with knobs is a space, and its points are plans."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.replay.machines import MACHINES
from tests.schedule.running import same_results
from tests.tune import templates
from tests.tune.test_tuning_session import Machine

from weft.cost import Choosing, Following, parse_plan
from weft.loop import Program
from weft.ops import OPERATORS
from weft.schedule import Schedule
from weft.support.dtypes import f32
from weft.support.errors import InputError, ScheduleError
from weft.te import placeholder, to_program
from weft.tune import tune_template as tuning
from weft.tune.measure import build, measurer
from weft.tune.space import PlanSpace
from weft.tune.tasks import task_of_template
from weft.tune.template import Knobs, carry_out_template, name_of, splits
from weft.tune.tune_template import tune_template

SERVER = MACHINES["avx512"]


def product(m: int = 12, n: int = 32, k: int = 8) -> Program:
    inputs = (placeholder((m, k), f32, "a"), placeholder((k, n), f32, "b"))
    return to_program(inputs, OPERATORS["matmul"](inputs, {}))


def test_points_of_a_template_are_right_and_read_back() -> None:
    program = product()
    space = PlanSpace(program, SERVER, (), partial(carry_out_template, templates.tiled))
    assert space.count == 5 * 6 * 3 * 2 * 2 * 3 * 2
    for point in space.sample(np.random.default_rng(0), 8):
        scheduled, plan = space.schedule(point)
        same_results(program, scheduled.program)
        again = carry_out_template(templates.tiled, program, Following(parse_plan(str(plan))))
        assert str(again.program) == str(scheduled.program)
    assert len(space.features(space.sample(np.random.default_rng(1), 5))) == 5


def test_defaults_leave_loops_whole() -> None:
    planner = Choosing(SERVER)
    carry_out_template(templates.tiled, product(), planner)
    assert str(planner.plan).splitlines()[:2] == ["rows: Split(factors=(12, 1))", "columns: Split(factors=(32, 1))"]


@given(st.integers(1, 60), st.integers(1, 4), st.integers(1, 60))
def test_splits(extent: int, parts: int, most: int) -> None:
    found = list(splits(extent, parts, most))
    assert len(set(found)) == len(found)
    assert found[0] == (extent, *[1] * (parts - 1))
    assert all(prod(f) == extent and len(f) == parts and max(f[1:], default=1) <= most for f in found)


def test_what_is_tuned_is_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "local_executors", lambda **_: (ThreadPoolExecutor(1), ThreadPoolExecutor(1)))
    monkeypatch.setattr(measurer, "run", Machine(0.5))
    found = tune_template(product(), templates.tiled, trials=10, tuner="random")
    assert len(found.trials) == 10
    assert found.ratio is not None
    assert str(found.plan) != str(task_of_template(templates.tiled, product(), SERVER).plan)
    same_results(product(), found.schedule.program)
    monkeypatch.setattr(measurer, "run", Machine(1.5))
    kept = tune_template(product(), templates.tiled, trials=10, tuner="random")
    assert kept.ratio is None
    assert str(kept.plan) == str(task_of_template(templates.tiled, product(), SERVER).plan)


def test_a_point_that_is_refused_is_a_failure() -> None:
    task = task_of_template(templates.refusing, product(), SERVER)
    job = task.job
    failed = build(type(job)(job.program, "kind: Annotate(kind='vectorize')\n", SERVER, template=job.template))
    assert (type(failed).__name__, getattr(failed, "kind", "")) == ("Failed", "plan")
    with pytest.raises(ScheduleError, match="vectorize"):
        carry_out_template(templates.refusing, product(), Following(parse_plan("kind: Annotate(kind='vectorize')\n")))


def test_templates_that_nobody_can_import() -> None:
    def inner(s: Schedule, knobs: Knobs) -> None: ...

    with pytest.raises(InputError, match="can't be imported by the processes that build it"):
        name_of(inner)
    assert name_of(templates.tiled) == "tests.tune.templates:tiled"


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda k, s: k.define_split("a", None, 2), "the knob 'a' splits None into 2 loops"),
        (lambda k, s: k.define_reorder("a", range(7)), "the knob 'a' orders 7 loops"),
        (lambda k, s: k.define_annotate("a", s, s.loops(s.block("matmul"))[0], ["twist"]), "annotates by"),
        (lambda k, s: k.define_choice("a", []), "the knob 'a' has no alternatives"),
    ],
)
def test_wrong_knobs(use: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        use(Knobs(Choosing(SERVER)), Schedule(product()))
