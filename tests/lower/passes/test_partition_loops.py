"""Loops are cut where a condition changes, so that their long parts test nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lower.running import before_and_after
from tests.lower.simplified import partitioned

Golden = Callable[[str], None]

TAIL = """
def main(A: f32[27], C: f32[27]):
    for io in range(0, 4):
        for ii in range(0, 8):
            if io * 8 + ii < 27:
                C[io * 8 + ii] = A[io * 8 + ii] + 1.0
"""


def test_partition_loops_cuts_off_a_tail(golden: Golden) -> None:
    golden(before_and_after(TAIL, partitioned))


def test_partition_loops_of_a_symbolic_size(golden: Golden) -> None:
    text = """
def main(A: f32[n], C: f32[n], n: i64):
    for io in range(0, (n + 7) // 8):
        for ii in range(0, 8):
            if io * 8 + ii < n:
                C[io * 8 + ii] = A[io * 8 + ii] + 1.0
"""
    golden(before_and_after(text, partitioned, {"n": 27}))


PADDED = """
def main(A: f32[20], C: f32[20]):
    for i in range(0, 20):
        C[i] = 0.0
        for k in range(0, 5):
            C[i] = C[i] + select(2 <= i + k and i + k < 22, A[i + k - 2], 0.0)
"""


def test_partition_loops_peels_the_borders_of_a_window(golden: Golden) -> None:
    golden(before_and_after(PADDED, partitioned))


def test_partition_loops_tests_the_digits_of_a_fused_loop(golden: Golden) -> None:
    text = """
def main(A: f32[3, 10], C: f32[3, 10]):
    for cy in parallel(0, 30):
        C[cy // 10, cy % 10] = select(1 <= cy % 10 and cy % 10 < 9, A[cy // 10, cy % 10 - 1], 0.0)
"""
    golden(before_and_after(text, partitioned))


def test_partition_loops_tells_the_ends_of_registers_apart(golden: Golden) -> None:
    """A branch for each vector in a register takes longer than a tile, so that either end has a tile of its own."""
    text = """
def main(A: f32[3, 10], C: f32[3, 10]):
    for cy in parallel(0, 30):
        S = alloc("register", f32[1])
        S[0] = select(1 <= cy % 10 and cy % 10 < 9, A[cy // 10, cy % 10 - 1], 0.0)
        C[cy // 10, cy % 10] = S[0] * 2.0
"""
    golden(before_and_after(text, partitioned))


def test_partition_loops_cuts_borders_of_registers_again(golden: Golden) -> None:
    text = """
def main(A: f32[40, 10], C: f32[40, 10]):
    for y in range(0, 40):
        for x in range(0, 10):
            S = alloc("register", f32[1])
            S[0] = select(1 <= y and 1 <= x, A[y - 1, x - 1], 0.0)
            C[y, x] = S[0] * 2.0
"""
    golden(before_and_after(text, partitioned))


def test_partition_loops_leaves_remainders_of_data(golden: Golden) -> None:
    text = """
def main(Y: i32[8], C: i32[8]):
    for i in parallel(0, 8):
        Y[i] = Y[i] + i32(1)
        C[i] = select(i32(1) <= Y[i] % i32(12), Y[i], i32(0))
"""
    golden(before_and_after(text, partitioned))


def test_partition_loops_of_a_parallel_loop_tests_it(golden: Golden) -> None:
    golden(before_and_after(PADDED.replace("for i in range", "for i in parallel"), partitioned))


def test_partition_loops_copies_nothing_for_a_small_part(golden: Golden) -> None:
    text = """
def main(A: f32[30, 8], C: f32[32, 64]):
    for i in parallel(0, 32):
        P = alloc("global", f32[8])
        for j in range(0, 8):
            P[j] = select(0 < i and i < 31, A[i - 1, j], 0.0)
        for k in unrolled(0, 64):
            C[i, k] = P[k % 8] * 2.0
"""
    golden(before_and_after(text, partitioned))


CONCATENATED = """
def main(A: f32[3, 8], B: f32[13, 8], C: f32[16, 8]):
    for i in range(0, 16):
        for j in range(0, 8):
            C[i, j] = select(i < 3, A[i, j], B[i - 3, j])
"""


def test_partition_loops_copies_nothing_for_a_digit_of_a_small_part(golden: Golden) -> None:
    """The remainder of the tile is that of one digit, and is cut off; its input's border is the other's, and stays a test."""
    text = """
def main(A: f32[10], C: f32[3, 10, 40]):
    for cy in parallel(0, 30):
        for z in range(0, 2):
            P = alloc("global", f32[1])
            P[0] = select(1 <= cy % 10, A[cy % 10 - 1], 0.0)
            for i in unrolled(0, 40):
                if cy // 10 * 40 + i < 96:
                    C[cy // 10, cy % 10, i] = P[0] * 2.0
"""
    golden(before_and_after(text, partitioned))


def test_partition_loops_separates_what_was_concatenated(golden: Golden) -> None:
    golden(before_and_after(CONCATENATED, partitioned))


@pytest.mark.parametrize("n", [0, 3, 9, 20])
@pytest.mark.parametrize("m", [1, 9])
def test_partition_loops_where_sizes_are_in_any_order(n: int, m: int) -> None:
    text = """
def main(A: f32[m], C: f32[m], m: i64, n: i64):
    for i in range(0, m):
        C[i] = select(n <= i, A[i], 1.0) + select(i < n, A[i], 2.0)
"""
    before_and_after(text, partitioned, {"m": m, "n": n})


PIECES = """
def main(A: u8[3, 21], B: u8[3, 22], C: u8[3, 43]):
    for i in range(0, 3):
        for j in range(0, 6):
            for l in vectorized(0, 8):
                if j * 8 + l < 43:
                    C[i, j * 8 + l] = select(j * 8 + l < 21, A[i, j * 8 + l], B[i, j * 8 + l - 21])
"""


def test_partition_loops_cuts_between_the_pieces_of_a_concatenation(golden: Golden) -> None:
    """Either may be most of the loop: only the vector with elements of both compares, and the last."""
    golden(before_and_after(PIECES, partitioned))


@pytest.mark.parametrize("n", [1, 8, 21, 40])
@pytest.mark.parametrize("loop", ["range(0, (m + 7) // 8)", "range(0, 8)"])
def test_partition_loops_ends_for_pieces_of_any_size(loop: str, n: int) -> None:
    text = PIECES.replace("22", "n").replace("43", "m").replace("]):", "], n: i64, m: i64):")
    before_and_after(text.replace("range(0, 6)", loop), partitioned, {"n": n, "m": n + 21})
