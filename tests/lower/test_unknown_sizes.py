"""Programs for sizes that are known only when they run: last tiles of so many rows or vectors, divisions by numbers of tiles."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lower.running import before_and_after
from tests.lower.simplified import AVX512, partitioned

from weft.loop import Program, Store, parse_program, statements, verify
from weft.lower import lower
from weft.lower.loops.hoist_divisions import hoist_divisions
from weft.lower.loops.specialize_remainders import specialize_remainders
from weft.lower.loops.specialize_tail_vectors import specialize_tail_vectors
from weft.targets import cpu

Golden = Callable[[str], None]

DIGITS = """
def main(A: f32[4, n], C: f32[4, n], n: i64):
    for ct in parallel(0, 4 * ((n + 2) // 3)):
        for i in range(0, 3):
            if ct % ((n + 2) // 3) * 3 + i < n:
                C[ct // ((n + 2) // 3), ct % ((n + 2) // 3) * 3 + i] = A[ct // ((n + 2) // 3), ct % ((n + 2) // 3) * 3 + i] + 1.0
"""

TILE = """
def main(A: f32[n, 5], C: f32[n, 8], n: i64):
    S = alloc("register", f32[3, 8])
    for t in range(0, (n + 2) // 3):
        for i in unrolled(0, 3):
            if t * 3 + i < n:
                S[i, ramp(0, 1, 8)] = broadcast(0.0, 8)
        for k in range(0, 5):
            for i_1 in unrolled(0, 3):
                if t * 3 + i_1 < n:
                    S[i_1, ramp(0, 1, 8)] = S[i_1, ramp(0, 1, 8)] + broadcast(A[t * 3 + i_1, k], 8)
        for i_2 in unrolled(0, 3):
            if t * 3 + i_2 < n:
                C[t * 3 + i_2, ramp(0, 1, 8)] = S[i_2, ramp(0, 1, 8)]
"""


def counted(program: Program) -> Program:
    return specialize_remainders(partitioned(program), AVX512)


def test_loops_fused_of_unknown_ones_are_cut_by_their_digits(golden: Golden) -> None:
    golden(before_and_after(DIGITS, partitioned, {"n": 7}))


def test_the_last_tile_is_written_out_for_each_number_of_rows(golden: Golden) -> None:
    golden(before_and_after(TILE, counted, {"n": 5}))


@pytest.mark.parametrize("summed", ["n", "n - 1", "n * 1"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_any_number_of_rows(n: int, summed: str) -> None:
    before_and_after(TILE.replace("i_1 < n", f"i_1 < {summed}"), counted, {"n": n})


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("stored", ["(0, 2)", "(1, 3)"])
def test_loops_over_some_of_the_rows_stay_as_long(n: int, stored: str) -> None:
    before_and_after(TILE.replace("i_2 in unrolled(0, 3)", f"i_2 in unrolled{stored}"), counted, {"n": n})


PANEL = """
def main(A: f32[n, 40], B: f32[320], C: f32[n, 8], n: i64):
    S = alloc("register", f32[3, 8])
    for t in range(0, (n + 2) // 3):
        for i in unrolled(0, 3):
            if t * 3 + i < n:
                S[i, ramp(0, 1, 8)] = broadcast(0.0, 8)
        for k in range(0, 40, prefetch=(B, 2)):
            for i_1 in unrolled(0, 3):
                for j in vectorized(0, 8):
                    if t * 3 + i_1 < n:
                        S[i_1, j] = S[i_1, j] + A[t * 3 + i_1, k] * B[k * 8 + j]
        for i_2 in unrolled(0, 3):
            if t * 3 + i_2 < n:
                C[t * 3 + i_2, ramp(0, 1, 8)] = S[i_2, ramp(0, 1, 8)]
"""


@pytest.mark.parametrize(("index", "hints"), [("k * 8 + j", 3), ("k * 4 + j", 4), ("j * 40 + k", 4)])
def test_a_row_alone_needs_no_hints_for_a_panel_that_it_reads_in_order(index: str, hints: int) -> None:
    text = before_and_after(PANEL.replace("k * 8 + j", index), counted, {"n": 4})
    assert text.split("def main")[-1].count("prefetch=") == hints


LONG = TILE.replace("(0, 3)", "(0, 9)").replace("t * 3", "t * 9").replace("n + 2) // 3", "n + 8) // 9")


@pytest.mark.parametrize("text", [LONG.replace("f32[3, 8]", "f32[9, 8]"), TILE.replace('"register"', '"global"')])
def test_tiles_of_many_rows_or_in_memory_are_left_as_they_are(text: str) -> None:
    before_and_after(text, lambda p: _same(p, specialize_remainders(p, AVX512)), {"n": 5})


AVX2 = cpu("avx2")

COLUMNS = """
def main(A: f32[2, 3], B: f32[3, n], C: f32[2, n], n: i64):
    for t in range(0, (n + 15) // 16):
        S = alloc("register", f32[2, 16])
        for i in unrolled(0, 2):
            for j in vectorized(0, 16):
                if t * 16 + j < n:
                    S[i, j] = 0.0
        for k in range(0, 3):
            for i_1 in unrolled(0, 2):
                for j_1 in vectorized(0, 16):
                    if t * 16 + j_1 < n:
                        S[i_1, j_1] = S[i_1, j_1] + A[i_1, k] * B[k, t * 16 + j_1]
        for i_2 in unrolled(0, 2):
            for j_2 in vectorized(0, 16):
                if t * 16 + j_2 < n:
                    C[i_2, t * 16 + j_2] = S[i_2, j_2]
"""


def in_vectors(program: Program) -> Program:
    return specialize_tail_vectors(partitioned(program), AVX2)


def test_the_last_tile_is_written_out_for_each_number_of_vectors(golden: Golden) -> None:
    golden(before_and_after(COLUMNS, in_vectors, {"n": 21}))


@pytest.mark.parametrize("width", [16, 24, 32, 40])
def test_any_number_of_columns(width: int) -> None:
    """Also once registers are read and written as whole vectors."""
    text = COLUMNS.replace("16", str(width)).replace("n + 15", f"n + {width - 1}")
    for n in (1, 8, 9, width - 8, width - 7, width - 1, width, width + 1):
        before_and_after(text, in_vectors, {"n": n})
        before_and_after(text, lambda p: lower(p, AVX2), {"n": n})


MEANS = """
def main(A: f32[3, n], C: f32[n], n: i64):
    for t in range(0, (n + 31) // 32):
        S = alloc("register", f32[32])
        for j in vectorized(0, 32):
            if t * 32 + j < n:
                S[j] = 0.0
        for k in range(0, 3):
            for j_1 in vectorized(0, 32):
                if t * 32 + j_1 < n:
                    S[j_1] = S[j_1] + A[k, t * 32 + j_1]
        for j_2 in vectorized(0, 32):
            if t * 32 + j_2 < n:
                C[t * 32 + j_2] = S[j_2] * 0.5
"""


def test_versions_of_vectors_beside_one_another_are_one_sequence() -> None:
    made = in_vectors(parse_program(MEANS))
    verify(made)
    for n in (1, 9, 25, 32, 53):
        before_and_after(MEANS, in_vectors, {"n": n})


def test_only_the_last_vector_of_a_row_has_a_mask() -> None:
    """In memory: no lane of a register beyond the end of a row is looked at."""
    program = lower(parse_program(COLUMNS), AVX2)
    made = [s for f in program.functions for s in statements(f.body) if isinstance(s, Store)]
    masked = [s for s in made if s.mask is not None]
    assert {s.buffer.name for s in masked} == {"C"}
    assert len(masked) == 2  # of one vector, and of two


@pytest.mark.parametrize(
    "text",
    [
        COLUMNS.replace('"register"', '"global"'),
        COLUMNS.replace("if t * 16 + j_2 < n", "if t * 16 + j_2 + 1 < n"),  # not the same columns
        COLUMNS.replace("vectorized(0, 16)", "vectorized(0, 8)"),  # a vector is all there is
        COLUMNS.replace("j in vectorized(0, 16)", "j in unrolled(0, 16)"),
        COLUMNS.replace("n: i64", "n: i64, m: i64").replace("t * 16 + j < n", "t * 16 + j < m"),
    ],
)
def test_tiles_of_other_columns_are_left_as_they_are(text: str) -> None:
    before_and_after(text, lambda p: _same(p, specialize_tail_vectors(p, AVX2)), {"n": 21, "m": 21})


def test_divisions_by_sizes_are_done_once_an_iteration(golden: Golden) -> None:
    golden(before_and_after(DIGITS, hoist_divisions, {"n": 7}))


def test_not_where_the_divisor_may_be_zero() -> None:
    text = """
def main(A: f32[n], C: f32[n], n: i64, m: i64):
    for i in range(0, n):
        if 0 < m:
            C[i] = A[i % m]
"""
    before_and_after(text, lambda p: _same(p, hoist_divisions(p)), {"n": 3, "m": 0})


def _same(before: Program, after: Program) -> Program:
    assert str(after) == str(before)
    return after
