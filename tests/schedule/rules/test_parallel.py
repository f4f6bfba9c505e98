"""Loops are shared among threads where they may be, such as those of tiles that turn rows into columns, whatever the sizes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.schedule.programs import matmul

from weft.cost import Choosing, Parallel
from weft.driver.function import build_function
from weft.ops import OPERATORS
from weft.schedule import Schedule, schedule_program
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.rules.cpu.parallel import parallelize
from weft.support.dtypes import f32
from weft.targets import cpu, parse_target
from weft.te import placeholder, to_program

THREADS = cpu("avx512").having(cores=2, fork_cycles=1, wake_cycles=1)
"""A machine whose loops are always worth sharing among threads."""


@pytest.mark.parametrize("shape", [(1, 56, 56, 64), (1, 33, 33, 48), (2, 30, 30, 21), (3, 17, 19, 40)], ids=str)
def test_tiles_are_shared_among_threads(shape: tuple[int, ...]) -> None:
    """Where images are whole vectors though their rows are not, and where images end within a vector."""
    x = placeholder(shape, f32, "x")
    (y,) = OPERATORS["transpose"]([x], {"perm": (0, 3, 1, 2)})
    program = to_program([x], [y])
    assert "parallel(" in str(schedule_program(program, THREADS).program)
    given = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    found = np.empty([shape[n] for n in (0, 3, 1, 2)], np.float32)
    build_function(schedule_program(program, parse_target("cpu").having(fork_cycles=1, wake_cycles=1)).program)(
        given, found
    )
    np.testing.assert_array_equal(found, given.transpose(0, 3, 1, 2))


def shares_two(s: Schedule, loops: list[LoopRef]) -> None:
    two = Choosing(THREADS, lambda found: next(c for c in found if c.decision == Parallel(2)))
    parallelize(s, BlockRef("C"), loops, two)
    assert str(two.plan) == "C: Parallel(loops=2)\n"


def test_loops_that_may_not_be_shared_stay_as_they_are() -> None:
    """The outer one of two loops that may be fused is that of the sum."""
    s = Schedule(matmul().program)
    i, j, k = s.loops(s.block("C"))
    s.reorder([k, i, j])
    before, steps = s.program, str(s.trace)
    shares_two(s, [k, i])
    assert (s.program, str(s.trace)) == (before, steps)
    assert s.extent(k) == 3  # references are those of before


def test_fewer_loops_are_shared_where_not_all_may_be() -> None:
    """The inner one of two loops that may be fused is that of the sum."""
    s = Schedule(matmul().program)
    i, j, k = s.loops(s.block("C"))
    s.reorder([i, k, j])
    shares_two(s, [i, k])
    assert "for i in parallel(0, 5):\n        for k in range(0, 3):" in str(s.program)
