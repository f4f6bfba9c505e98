"""`blockize`: loops become one block around a block."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from tests.schedule.products import product, tiled
from tests.schedule.programs import CASES, matmul, symbolic_matmul
from tests.schedule.random_steps import step
from tests.schedule.running import check, refusal, transition

from weft.loop import For, parse_program, statements
from weft.schedule import LoopRef, Schedule
from weft.support.errors import ScheduleError


def test_a_tile_of_a_reduction(golden: Callable[[str], None]) -> None:
    case = product(4, 32, 8)
    s = Schedule(case.program)
    _, j1 = tiled(s, 16, 4)
    before = s.program
    assert s.blockize(j1) == s.block("C_o")
    check(case, s.program)
    golden(transition(before, s.program))


def test_a_whole_axis_inside_is_no_axis_outside() -> None:
    case = matmul(4, 6, 3)
    s = Schedule(case.program)
    outer = s.blockize(s.loops(s.block("C"))[1])
    check(case, s.program)
    assert [len(s.loops(b)) for b in (outer, s.block("C"), s.block("C_init"))] == [1, 2, 1]


def test_everything_in_one_block() -> None:
    case = matmul()
    s = Schedule(case.program)
    outer = s.blockize(s.loops(s.block("C"))[0])
    assert s.loops(outer) == ()
    check(case, s.program)


def test_a_guard_stays_outside() -> None:
    case = product(5, 32, 8)
    s = Schedule(case.program)
    block, j1 = tiled(s, 16, 4)
    s.split(s.loops(block)[0], [None, 2])
    s.blockize(j1)
    check(case, s.program)
    assert "where=(i_0 * 2 + i_1 < 5)" in str(s)


def test_symbolic_rows() -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    s.blockize(s.loops(s.block("C"))[1])
    s.blockize(s.loops(s.block("D"))[1])
    check(case, s.program)


def test_the_block_is_scheduled_as_a_whole_and_its_inside_by_itself() -> None:
    case = product(4, 32, 8)
    s = Schedule(case.program)
    block, j1 = tiled(s, 16, 4)
    outer = s.blockize(j1)
    i, j0, _ = s.loops(outer)
    s.fuse([i, j0])
    s.unroll(s.loops(block)[1])
    s.vectorize(s.loops(s.block("C_init"))[0])
    check(case, s.program)


def test_blocks_in_blocks() -> None:
    case = product(4, 32, 8)
    s = Schedule(case.program)
    _, j1 = tiled(s, 16, 4)
    inner = s.blockize(j1)
    s.blockize(s.loops(inner)[1])
    check(case, s.program)


def test_refused_for_a_guard_inside(golden: Callable[[str], None]) -> None:
    s = Schedule(product(4, 30, 8).program)
    _, j1 = tiled(s, 16, 4)
    golden(refusal(lambda: s.blockize(j1)))


def test_refused_for_a_position_outside(golden: Callable[[str], None]) -> None:
    s = Schedule(product(4, 32, 8).program)
    block, j1 = tiled(s, 16, 4)
    i, j0, k0, _, k1 = s.loops(block)
    s.reorder([i, k0, j1, j0, k1])
    golden(refusal(lambda: s.blockize(j0)))


def test_refused_for_two_blocks(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[2])
    golden(refusal(lambda: s.blockize(s.loops(s.block("C"))[1])))


REVERSED = """
def main(A: f32[4, 8], C: f32[4]):
    for i in range(0, 4):
        for k in range({begin}, 8):
            with block("C", vi=spatial(4, i), vk=reduce(8, {k})):
                with init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]
"""


@pytest.mark.parametrize(
    ("begin", "k", "message"),
    [
        (0, "7 - k", "C does not start in the first iteration of loops of its own"),
        (0, "(k + i) % 8", "the axis vk of C, bound to (k + i) % 8, is not a whole number of steps"),
        (1, "k - 1", "the range of k does not begin at 0, or depends on another loop inside"),
    ],
)
def test_refused_for_loops_of_another_form(begin: int, k: str, message: str) -> None:
    s = Schedule(parse_program(REVERSED.format(begin=begin, k=k)))
    with pytest.raises(ScheduleError, match=re.escape(message)):
        s.blockize(s.loops(s.block("C"))[1])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", CASES)
def test_after_random_steps(name: str) -> None:
    """Whatever loop of a random schedule becomes a block, the results stay the same."""
    made = 0
    for seed in range(12):
        case, r = CASES[name](), random.Random(f"blockize {name} {seed}")
        s = Schedule(case.program)
        for _ in range(6):
            step(s, r)
        for loop in [LoopRef(f.var) for f in statements(s.function.body) if isinstance(f, For)]:
            try:
                s.blockize(loop)
            except ScheduleError:
                continue
            made += 1
            check(case, s.program, seed)
    assert made > 8
