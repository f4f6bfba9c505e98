"""Loads under the condition of a vector are made before it if they certainly lie in their buffer, and only then."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from tests.lower.running import before_and_after

from weft.loop import parse_program
from weft.lower.loops.unguard_loads import unguard_loads
from weft.targets import cpu

CHOSEN = """
def main(c: bool[32], a: u8[32], b: u8[1], out: u8[32]):
    for i in range(0, 4):
        out[ramp(i * 8, 1, 8)] = select(c[ramp(i * 8, 1, 8)], a[ramp(i * 8, 1, 8)], broadcast(b[0], 8))
"""


def test_unguard_loads(golden: Callable[[str], None]) -> None:
    golden(before_and_after(CHOSEN, partial(unguard_loads, target=cpu("avx2"))))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a[ramp(i * 8, 1, 8)]", "a[ramp(i * 8 + 1, 1, 8)]"),  # the last lane is behind the end
        ("a[ramp(i * 8, 1, 8)]", "a[ramp(i * 8 - 1, 1, 8)]"),
        ("a[ramp(i * 8, 1, 8)]", "out[ramp(i * 8, 1, 8)]"),  # of which parts may not be written yet
        ("c[ramp(i * 8, 1, 8)]", "unlikely(c[ramp(i * 8, 1, 8)])"),
    ],
)
def test_loads_that_stay(before: str, after: str) -> None:
    program = parse_program(CHOSEN.replace(before, after).replace("broadcast(b[0], 8)", "broadcast(u8(0), 8)"))
    assert unguard_loads(program, cpu("avx2")) is program


def test_conditions_of_scalars_stay_branches() -> None:
    program = parse_program(
        """
def main(c: bool[32], a: bool[32], out: bool[32]):
    for i in range(0, 32):
        out[i] = c[i] and a[i]
"""
    )
    assert unguard_loads(program, cpu("avx2")) is program


def test_symbolic_sizes_are_proved() -> None:
    program = parse_program(
        """
def main(n: i64, c: bool[n * 8], a: bool[n * 8], out: bool[n * 8]):
    for i in range(0, n):
        out[ramp(i * 8, 1, 8)] = c[ramp(i * 8, 1, 8)] and a[ramp(i * 8, 1, 8)]
"""
    )
    assert unguard_loads(program, cpu("avx2")) is not program


@pytest.mark.parametrize(
    ("target", "dtype", "stays"),
    [("avx2", "f32", True), ("avx2", "u8", False), ("avx512", "u8", True), ("sse4", "f32", False)],
)
def test_elements_or_zeros_are_loaded_under_masks_of_the_machine(target: str, dtype: str, stays: bool) -> None:
    program = parse_program(
        f"""
def main(c: bool[32], a: {dtype}[32], out: {dtype}[32]):
    for i in range(0, 4):
        out[ramp(i * 8, 1, 8)] = select(c[ramp(i * 8, 1, 8)], a[ramp(i * 8, 1, 8)], broadcast({dtype}(0), 8))
"""
    )
    assert (unguard_loads(program, cpu(target)) is program) is stays
