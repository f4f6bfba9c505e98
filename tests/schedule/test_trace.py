"""Traces: schedules as scripts and as text, run again."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.schedule.programs import CASES, Case, bias_relu, conv2d, matmul
from tests.schedule.random_steps import step
from tests.schedule.running import check, loop

from weft.loop.alpha_equivalence import check_same
from weft.schedule import BlockRef, Schedule, Trace, replay
from weft.support.errors import ParseError, ScheduleError


def tiled(case: Case) -> Schedule:
    """A schedule with every kind of argument and result."""
    s = Schedule(case.program)
    s.reverse_compute_inline(s.block("E"))
    c, d = s.block("C"), s.block("D")
    i, j = s.loops(d)
    io, ii = s.split(i, factors=[None, 2])
    jo, ji = s.split(j, (None, 3))
    s.reorder([io, jo, ii, ji])
    s.compute_at(c, jo)
    *_, ci, cj, k = s.loops(c)
    s.reorder([k, ci, cj])
    s.decompose_reduction(c, k)
    s.set_scope(c, scope="register")
    s.vectorize(ji)
    s.parallel(s.fuse([io, jo]))
    return s


def test_prints_as_a_script(golden: Callable[[str], None]) -> None:
    golden(f"{tiled(bias_relu()).trace}\n")


def test_the_script_makes_the_schedule_again() -> None:
    case = bias_relu()
    s = tiled(case)
    again = Schedule(case.program)
    exec(str(s.trace), {"s": again})
    check_same(again.program, s.program)
    assert str(again.trace) == str(s.trace)
    check(case, again.program)


@pytest.mark.parametrize("sizes", [(4, 6, 8), (9, 2, 2), (2, 11, 3)], ids=str)
def test_replays_on_other_sizes(sizes: tuple[int, int, int]) -> None:
    other = bias_relu(*sizes)
    s = Schedule(other.program)
    replay(tiled(bias_relu()).trace, s)
    check(other, s.program)


def test_survives_json() -> None:
    case = bias_relu()
    s = tiled(case)
    text = s.trace.to_json()
    read = Trace.from_json(text)
    assert str(read) == str(s.trace)
    assert read.to_json() == text
    again = Schedule(case.program)
    replay(read, again)
    check_same(again.program, s.program)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CASES)
def test_random_schedules_replay(name: str) -> None:
    case = CASES[name]()
    for seed in range(3):
        s, made = Schedule(case.program), random.Random(f"{name} {seed}")
        for _ in range(12):
            step(s, made)
        again = Schedule(case.program)
        exec(str(s.trace), {"s": again})
        check_same(again.program, s.program)
        again = Schedule(case.program)
        replay(Trace.from_json(s.trace.to_json()), again)
        check_same(again.program, s.program)


def test_references_from_elsewhere_are_introduced() -> None:
    s = Schedule(matmul().program)
    s.reorder([loop(s, "j"), loop(s, "i")])
    s.cache_write(BlockRef("C"), "local")
    assert str(s.trace).splitlines() == [
        "C_block = s.block('C')",
        "i, j, k = s.loops(C_block)",
        "s.reorder([j, i])",
        "C_write_block = s.cache_write(C_block, 'local')",
    ]


def test_a_reference_to_a_loop_that_became_another() -> None:
    s = Schedule(matmul().program)
    i, j, _ = s.loops(s.block("C"))
    s.fuse([i, j])
    s.parallel(j)
    again = Schedule(matmul().program)
    exec(str(s.trace), {"s": again})
    check_same(again.program, s.program)


def test_what_was_refused_leaves_no_trace() -> None:
    s = Schedule(matmul().program)
    i, _, k = s.loops(s.block("C"))
    before = str(s.trace)
    with pytest.raises(ScheduleError):
        s.parallel(k)
    assert str(s.trace) == before
    s.parallel(i)
    assert str(s.trace) == f"{before}\ns.parallel(i)"


def test_a_list_changed_later_does_not_change_the_trace() -> None:
    s = Schedule(matmul().program)
    i, *_ = s.loops(s.block("C"))
    factors: list[int | None] = [None, 2]
    s.split(i, factors)
    factors.append(4)
    assert str(s.trace).endswith("i_0, i_1 = s.split(i, [None, 2])")


def test_refused_on_another_computation() -> None:
    trace = tiled(bias_relu()).trace
    with pytest.raises(ScheduleError, match=r"there is no block E in the program.*\n.*(\n.*)*its blocks are: P, Y, Z"):
        replay(trace, Schedule(conv2d().program))
    s = Schedule(matmul().program)
    s.loops(s.block("C"))
    other = Schedule(CASES["stencil"]().program)
    with pytest.raises(ScheduleError, match="loops gives 1 references here, not 3"):
        replay(s.trace, other)


@pytest.mark.parametrize(
    "text",
    ["", "3", "[3]", '[["__init__",[],{},[],false]]', '[["split",[{"var":1}],{},[],false]]', '[["split",[],{},[]]]'],
)
def test_other_text_is_no_trace(text: str) -> None:
    with pytest.raises(ParseError, match="this is not a trace"):
        Trace.from_json(text)
