"""Lanes that repeat neighbours are loaded once and shuffled; others are left as they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lower.running import before_and_after

from weft.loop import parse_program
from weft.lower.loops.shuffle_repeated_loads import shuffle_repeated_loads

REPEATED = """
def main(A: f32[32], C: f32[64]):
    for i in range(0, 8):
        C[ramp(i * 8, 1, 8)] = A[ramp(i * 8, 1, 8) // broadcast(2, 8)]
"""


def test_shuffle_repeated_loads(golden: Callable[[str], None]) -> None:
    golden(before_and_after(REPEATED, shuffle_repeated_loads))


LOAD = "A[ramp(i * 8, 1, 8) // broadcast(2, 8)]"


@pytest.mark.parametrize(
    "written",
    [
        "A[ramp(i * 8 + 1, 1, 8) // broadcast(2, 8)]",  # five elements of eight lanes
        "A[ramp(i * 8, 1, 8) // broadcast(3, 8)]",  # not the same in each iteration
        "A[ramp(i * 8, 4, 8) // broadcast(2, 8) % broadcast(31, 8)]",
        f"select(ramp(i, 1, 8) < broadcast(4, 8), {LOAD}, broadcast(0.0, 8))",  # lanes are left out
    ],
)
def test_left_alone(written: str) -> None:
    program = parse_program(REPEATED.replace(LOAD, written))
    assert shuffle_repeated_loads(program) is program
