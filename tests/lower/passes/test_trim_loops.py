"""Loops over taps run from the first that reads an element to the last, where a whole register tile agrees on these."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lower.running import before_and_after

from weft.loop import parse_program
from weft.lower.loops.trim_loops import trim_loops

Golden = Callable[[str], None]

WINDOW = """
def main(A: f32[64], W: f32[3], C: f32[32]):
    for y in range(0, 8):
        T = alloc("register", f32[4])
        for j in unrolled(0, 4):
            T[j] = 0.0
        for k in range(0, 3):
            call("weft.prefetch", W.at(k), 1)
            for j in unrolled(0, 4):
                T[j] = select({inside}, T[j] + A[{row} * 8 + j + 4] * W[k], T[j])
        for j in unrolled(0, 4):
            C[y * 4 + j] = T[j]
"""


def test_a_window_with_a_border_at_either_end(golden: Golden) -> None:
    text = WINDOW.format(inside="1 <= y + k and y + k - 1 < 8", row="(y + k - 1)")
    golden(before_and_after(text, trim_loops))


def test_taps_and_places_apart_from_one_another(golden: Golden) -> None:
    text = WINDOW.format(inside="3 <= y * 2 + k * 3 and y * 2 + k * 3 - 3 < 8", row="(y * 2 + k * 3 - 3)")
    golden(before_and_after(text, trim_loops))


def test_conditions_of_single_sums_stay(golden: Golden) -> None:
    text = WINDOW.format(inside="1 <= y + k and y + k - 1 < 8 and 2 <= k + j", row="(y + k - 1)")
    golden(before_and_after(text, trim_loops))


MEMORY = """
def main(A: f32[8], C: f32[8]):
    for i in range(0, 8):
        for k in range(0, 3):
            C[i] = select(1 <= i + k and i + k - 1 < 8, C[i] + A[i + k - 1], C[i])
"""

UNEQUAL = """
def main(A: f32[8], C: f32[8]):
    T = alloc("register", f32[1])
    for k in range(0, 8):
        T[0] = select(1 <= k, T[0] + A[k - 1], T[0])
        T[0] = T[0] + A[k]
    C[0] = T[0]
"""

CHECKED = """
def main(A: f32[8], C: f32[8]):
    T = alloc("register", f32[1])
    for k in range(0, 8):
        check(k < 9, "each is looked at")
        T[0] = select(1 <= k, T[0] + A[k - 1], T[0])
    C[0] = T[0]
"""


@pytest.mark.parametrize("text", [MEMORY, UNEQUAL, CHECKED])
def test_iterations_that_do_anything_else_stay(text: str) -> None:
    program = parse_program(text)
    assert trim_loops(program) is program
