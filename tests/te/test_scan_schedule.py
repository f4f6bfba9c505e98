"""Schedules of recurrences: what may be done within a step, and what would break the order of time."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from tests.schedule.random_steps import step
from tests.schedule.running import disordered
from tests.te.recurrences import Array, lstm, lstm_arrays, lstm_in_numpy

from weft import te
from weft.codegen.interp import run
from weft.driver.function import build_function
from weft.ir import Expr
from weft.loop import Program, verify
from weft.schedule import LoopRef, Schedule, schedule_program
from weft.support.dtypes import f32, f64
from weft.support.errors import ScheduleError
from weft.targets import parse_target

STEPS, N, M = 5, 6, 4


def an_lstm() -> Program:
    cell = lstm(STEPS, N, M)
    return te.to_program(cell.inputs, cell.outputs)


def check(program: Program, compiled: bool = False) -> None:
    """Fails unless *program*, a scheduled LSTM, computes what NumPy does."""
    verify(program)
    arrays = lstm_arrays(STEPS, N, M)
    found = [np.full((STEPS, N), np.nan, np.float32) for _ in range(2)]
    if compiled:
        build_function(program)(*arrays, *found)
    else:
        run(disordered(program), [*arrays, *found])
    for a, b in zip(found, lstm_in_numpy(*arrays), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)


def loops(s: Schedule, block: str) -> tuple[LoopRef, ...]:
    return s.loops(s.block(block))


def test_within_a_step() -> None:
    s = Schedule(an_lstm())
    for name in ("h", "c"):
        _, j = loops(s, name)
        j0, j1 = s.split(j, [None, 4])
        s.parallel(j0)
        s.vectorize(j1)
    _, g, j, q = loops(s, "from_h")
    s.reorder([g, q, j])
    s.vectorize(j)
    check(s.program)
    check(s.program, compiled=True)


def test_the_input_of_a_step_can_be_computed_in_it() -> None:
    s = Schedule(an_lstm())
    s.compute_at(s.block("from_x"), loops(s, "c")[0])
    check(s.program)
    check(s.program, compiled=True)


def test_time_can_be_split_and_unrolled() -> None:
    s = Schedule(an_lstm())
    _, inner = s.split(loops(s, "h")[0], [None, 2])
    s.unroll(inner)
    check(s.program)
    check(s.program, compiled=True)


@pytest.mark.parametrize("choose", [Schedule.parallel, Schedule.vectorize], ids=lambda f: str(f.__name__))
def test_time_keeps_its_order(choose: Callable[[Schedule, LoopRef], None]) -> None:
    s = Schedule(an_lstm())
    with pytest.raises(ScheduleError, match=r"its axis vt\w* is of kind ordered"):
        choose(s, loops(s, "h")[0])


def recurrence(read: Callable[[Expr, Expr], Expr]) -> tuple[Program, Callable[[], Array]]:
    """S[t, i] from one other element of the step before; and S by the unscheduled program."""
    i, s = te.placeholder((1, 6), f32, "I"), te.placeholder((4, 6), f32, "S")
    update = te.compute((4, 6), lambda t, k: s[t - 1, read(t, k)] * 2.0 + 1.0, "U")
    (out,) = te.scan([i], [update], [s])
    program = te.to_program([i], [out])
    return program, lambda: results_of(program)


def results_of(program: Program) -> Array:
    start, out = np.arange(6, dtype=np.float32).reshape(1, 6), np.full((4, 6), np.nan, np.float32)
    run(disordered(program), [start, out])
    return out


SHIFTS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "the same": lambda t, k: k,
    "the next": lambda t, k: (k + 1) % 6,
    "one that depends on time": lambda t, k: (k + t) % 6,
    "the mirrored": lambda t, k: 5 - k,
    "one for two": lambda t, k: k // 2,
}


@pytest.mark.parametrize("shift", SHIFTS)
def test_the_elements_of_a_step_are_independent(shift: str) -> None:
    for choose in (Schedule.parallel, Schedule.vectorize):
        program, wanted = recurrence(SHIFTS[shift])
        s = Schedule(program)
        choose(s, loops(s, "S")[1])
        np.testing.assert_array_equal(results_of(s.program), wanted())


@pytest.mark.parametrize("shift", SHIFTS)
def test_elements_go_first_where_they_need_no_others(shift: str) -> None:
    """All of time for one element, then for the next: only if it depends on its own past alone."""
    program, wanted = recurrence(SHIFTS[shift])
    s = Schedule(program)
    t, i = loops(s, "S")
    if shift != "the same":
        with pytest.raises(ScheduleError, match="S may read S before the instance that writes it"):
            s.reorder([i, t])
        return
    i0, i1 = s.split(i, [None, 4])
    s.reorder([i0, t, i1])
    s.parallel(i0)
    s.vectorize(i1)
    np.testing.assert_array_equal(results_of(s.program), wanted())


def test_loops_inside_a_step_may_change_places() -> None:
    i, s = te.placeholder((1, 3, 5), f32, "I"), te.placeholder((4, 3, 5), f32, "S")
    update = te.compute((4, 3, 5), lambda t, a, b: s[t - 1, (a + 1) % 3, 4 - b] + 1.0, "U")
    (out,) = te.scan([i], [update], [s])
    schedule = Schedule(te.to_program([i], [out]))
    t, a, b = loops(schedule, "S")
    schedule.reorder([t, b, a])
    start, found = np.arange(15, dtype=np.float32).reshape(1, 3, 5), np.full((4, 3, 5), np.nan, np.float32)
    wanted = found.copy()
    run(te.to_program([i], [out]), [start, wanted])
    run(schedule.program, [start, found])
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(ScheduleError, match="S may read S before the instance that writes it"):
        schedule.reorder([b, t])


def test_a_reduction_in_a_step_is_scheduled_like_any_other() -> None:
    a, v, s = te.placeholder((8, 8), f64, "A"), te.placeholder((1, 8), f64, "v"), te.placeholder((5, 8), f64, "s")
    k = te.reduce_axis(8, "k")
    update = te.compute((5, 8), lambda t, i: te.sum_(a[i, k] * s[t - 1, k], [k]), "product")
    (out,) = te.scan([v], [update], [s])
    schedule = Schedule(te.to_program([a, v], [out]))
    block = schedule.block("product")
    _, _, k_ = schedule.loops(block)
    _, k1 = schedule.split(k_, [None, 4])
    partial = schedule.rfactor(block, k1)
    schedule.vectorize(schedule.loops(partial)[-1])
    schedule.parallel(schedule.loops(schedule.block("s"))[1])
    verify(schedule.program)
    made = np.random.default_rng(0)
    x, y = made.standard_normal((8, 8)), made.standard_normal((1, 8))
    wanted = np.array([np.linalg.matrix_power(x, t) @ y[0] for t in range(5)])
    for build in (lambda p: lambda *given: run(disordered(p), list(given)), build_function):
        found = np.full((5, 8), np.nan)
        build(schedule.program)(x, y, found)
        np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("seed", range(8))
def test_random_steps_keep_the_result(seed: int) -> None:
    s, r = Schedule(an_lstm()), random.Random(seed)
    done = sum(step(s, r) for _ in range(25))
    assert done > 2
    check(s.program)


@pytest.mark.parametrize("seed", range(8))
def test_random_steps_of_a_small_recurrence(seed: int) -> None:
    program, wanted = recurrence(SHIFTS[list(SHIFTS)[seed % len(SHIFTS)]])
    s, r = Schedule(program), random.Random(seed)
    for _ in range(25):
        step(s, r)
    np.testing.assert_array_equal(results_of(s.program), wanted())


def test_scheduled_by_rule() -> None:
    check(schedule_program(an_lstm(), parse_target("cpu")).program, compiled=True)
