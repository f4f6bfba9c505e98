"""A slice of the fuzzing, and that the fuzzing itself would notice what is wrong."""

from __future__ import annotations

import pkgutil

import numpy as np
import pytest
from tests.schedule.fuzz.cases import Outcome, Tally, Watched, run_case
from tests.schedule.fuzz.checking import check_everything
from tests.schedule.fuzz.computations import FAMILIES, computation
from tests.schedule.fuzz.shrink import shrunk
from tests.schedule.fuzz.steps import STEPS
from tests.schedule.fuzz.table import SHARE, shortcomings, table
from tests.schedule.programs import Case, matmul

from weft.loop import For, LoopKind, Program, statements
from weft.schedule import primitives

PARTS, CASES = 8, 30


OF_WHOLE_PROGRAMS = {"stream_attention"}
"""Primitives that take a program of one kind as a whole, which no random one is: their own tests draw its sizes."""


def test_every_primitive_has_a_step() -> None:
    assert STEPS.keys() | OF_WHOLE_PROGRAMS == {
        m.name.rpartition(".")[2]
        for m in pkgutil.walk_packages(primitives.__path__, "weft.schedule.primitives.")
        if not m.ispkg
    }


@pytest.mark.sampled(7)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_right_before_it_is_scheduled(family: str) -> None:
    for seed in range(4):
        case = computation(family, seed)
        check_everything(case, case.program)


def test_computations_are_repeatable() -> None:
    first, second = (str(computation("pipeline", 3).program) for _ in range(2))
    assert first == second


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_slice(part: int) -> None:
    total = Tally()
    for number in range(part * CASES, (part + 1) * CASES):
        outcome = run_case(1, number)
        total.add(outcome.tally)
        if outcome.failure:
            pytest.fail(f"{outcome.failure.error}\n\n{outcome.failure.script()}")
    assert total.accepted.total() > SHARE * total.tried.total()


def _no_parallel_loops(case: Case, program: Program) -> None:
    """A check that parallel loops fail."""
    for s in statements(program.entry.body):
        if isinstance(s, For) and s.kind is LoopKind.PARALLEL:
            raise AssertionError(f"the loop over {s.var} is parallel")


def test_a_failure_shrinks_to_the_step_that_causes_it() -> None:
    found = [run_case(2, n, _no_parallel_loops).failure for n in range(40)]
    failures = [f for f in found if f is not None]
    assert failures
    made = [shrunk(f, _no_parallel_loops) for f in failures]
    assert [c.name for c in made[0].calls] == ["parallel"]
    for failure, small in zip(failures, made, strict=True):
        assert len(small.calls) <= len(failure.calls)
        with pytest.raises(AssertionError, match="is parallel"):
            exec(small.script().replace("check_everything(", "check("), {"check": _no_parallel_loops})


def test_an_error_of_another_kind_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise IndexError("out of range")

    monkeypatch.setattr("weft.schedule.schedule.check_scopes", broken)
    outcome: Outcome = run_case(3, 0)
    assert outcome.failure is not None
    assert outcome.failure.error == "IndexError: out of range"
    assert outcome.tally.broken.total() == 1
    assert "s." in outcome.failure.script()


def test_wrong_results_are_a_failure() -> None:
    case = matmul()
    wrong = Case(case.program, lambda a, b: [a @ b + np.float32(1)], 2)
    with pytest.raises(AssertionError, match="C differs"):
        check_everything(wrong, case.program)


def test_the_table_and_what_falls_short() -> None:
    tally = Tally()
    s = Watched(matmul().program)
    s.parallel(s.loops(s.block("C"))[0])
    tally.add(s.tally)
    assert "parallel                       1         1        0       0   100%" in table(tally)
    short = shortcomings(tally, 100)
    assert "split was accepted 0 times, not 1" in short
    assert not any(line.startswith("parallel") for line in short)


def test_sequences_have_an_end() -> None:
    assert all(run_case(4, n, lambda case, program: None).tally.tried.total() <= 12 for n in range(20))
