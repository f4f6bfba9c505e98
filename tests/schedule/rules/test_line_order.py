"""Loops around vectors that are gathered."""

from __future__ import annotations

import re

import pytest
from tests.schedule.running import same_results

from weft.loop import Program
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.support.dtypes import f32
from weft.targets import cpu
from weft.te import compute, placeholder, to_program


def packed_weights(inputs: int, outputs: int) -> Program:
    w = placeholder((inputs, outputs, 4, 4), f32, "w")
    attributes = {"in_block": 16, "out_block": 16, "strides": (2, 2)}
    return to_program([w], OPERATORS["pack_conv_transpose_weight"]([w], attributes))


def loops_of(program: Program) -> list[str]:
    return re.findall(r"for (\w+) in", str(program))


def test_the_taps_of_a_line_are_taken_before_other_channels() -> None:
    program = packed_weights(32, 32)
    made = schedule_program(program, cpu("avx512").having(fork_cycles=1 << 40)).program
    before, after = loops_of(program), loops_of(made)
    assert after != before
    assert sorted(after) == sorted(before)
    taps = [before[n] for n in (1, 2, 4, 5)]
    assert set(after[-5:-1]) == set(taps)
    same_results(program, made)


@pytest.mark.parametrize("width", [8, 20])
def test_lines_that_would_be_written_in_parts_are_written_in_order(width: int) -> None:
    x = placeholder((6, width, 2, 3), f32, "x")
    program = to_program([x], [compute((2, 3, 6, width), lambda a, b, i, j: x[i, j, a, b], "y")])
    made = schedule_program(program, cpu("avx512").having(fork_cycles=1 << 40)).program
    assert loops_of(made)[:3] == loops_of(program)[:3]
    same_results(program, made)
