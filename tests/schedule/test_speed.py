"""How long scheduling and lowering take: they are part of every compilation.

python -m pytest tests/schedule/test_speed.py -s        prints the times
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.programs import conv2d
from tests.support.yardstick import share

from weft.loop import Program
from weft.lower import lower
from weft.schedule import Schedule
from weft.targets import cpu

pytestmark = pytest.mark.timed
APPLIED_S, LOWERED_S = 0.030, 0.060
"""Seconds on the machine of `tests.support.yardstick`, about twice the need; a slower one gets more time."""
ROUNDS = 8


def test_twelve_steps_are_applied() -> None:
    programs = iter([conv2d(64, 56, 56, 64).program for _ in range(ROUNDS)])
    compare("12 steps applied", lambda: tiled(next(programs)), APPLIED_S)


def test_the_program_is_lowered() -> None:
    schedules = iter([tiled(conv2d(64, 56, 56, 64).program) for _ in range(ROUNDS)])
    target = cpu("avx512")
    compare("lowered", lambda: lower(next(schedules).program, target), LOWERED_S)


def test_there_are_twelve_steps() -> None:
    s = tiled(conv2d(8, 14, 14, 16).program)
    assert len([step for step in s.trace.steps if step.method not in ("block", "loops")]) == 12


def tiled(program: Program) -> Schedule:
    """Tiles a padded convolution and what follows it, and places both there, in registers and in lanes."""
    s = Schedule(program)
    pad, conv, relu = s.blocks()
    o, i, j = s.loops(relu)
    oo, oi = s.split(o, [None, 16])
    jo, ji = s.split(j, [None, 14])
    s.reorder([oo, i, jo, oi, ji])
    s.compute_at(conv, jo)
    s.compute_at(pad, i)
    *tile, rc, ri, rj = s.loops(conv)[3:]
    rco, rci = s.split(rc, [None, 8])
    s.reorder([rco, ri, rj, rci, *tile])
    s.decompose_reduction(conv, rco)
    s.set_scope(conv, "register")
    s.vectorize(ji)
    s.unroll(oi)
    s.parallel(oo)
    return s


def compare(what: str, run: Callable[[], object], limit: float) -> None:
    """Fails if the quickest of some rounds takes longer than *limit*, in seconds of processor time."""
    taken = share(limit, run, ROUNDS)
    print(f"{what}: {taken:.0%} of {limit * 1e3:.0f} ms")
    assert taken < 1
