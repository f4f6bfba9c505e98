"""What is known or of no use goes: conditions, short loops, values, and stores that nothing reads."""

from __future__ import annotations

from collections.abc import Callable

from tests.lower.running import before_and_after

from weft.loop import parse_program, print_stmt
from weft.lower.cleanup.remove_noops import remove_noops
from weft.lower.cleanup.simplify_program import simplify_program

Golden = Callable[[str], None]

SIMPLE = """
def main(A: f32[16], C: f32[16], n: i64):
    for i in range(0, 4):
        for j in range(2, 3):
            x = let(i * 4)
            if i * 4 + j < 16:
                C[(i * 8 + j) // 2 - 1 + x - i * 4] = A[x + j]
            if i < 2:
                if i < 3:
                    C[i] = 1.0
    for k in range(0, 0):
        C[k] = 0.0
"""


def test_simplify_program(golden: Golden) -> None:
    golden(before_and_after(SIMPLE, simplify_program, {"n": 1}))


WRITTEN_LATER = """
def main(A: i64[4], C: i64[4]):
    x = let(A[0] + 1)
    A[0] = 9
    C[x] = x
"""


def test_a_value_that_was_read_stays_a_value() -> None:
    """What it was read from is written before it is used."""
    (main,) = simplify_program(parse_program(WRITTEN_LATER)).functions
    assert "C[x] = x" in print_stmt(main.body)


NOOPS = """
def main(A: f32[8], C: f32[8]):
    T = alloc("local", f32[8])
    S = alloc("local", f32[8])
    for i in range(0, 8):
        x = let(A[i])
        y = let(A[i] + 1.0)
        T[i] = x
        S[i] = T[i]
        C[i] = y
        C[i] = C[i]
        eval_(A[i])
"""


def test_remove_noops(golden: Golden) -> None:
    golden(before_and_after(NOOPS, remove_noops))


READ_LATER = """
def main(A: f32[8], C: f32[8]):
    T = alloc("local", f32[8])
    for i in range(0, 8):
        T[i] = A[i] + 1.0
    for j in range(0, 8):
        C[j] = T[7 - j]
"""


def test_remove_noops_keeps_what_is_read() -> None:
    before, after = before_and_after(READ_LATER, remove_noops).split("\n->\n\n")
    assert before == after
