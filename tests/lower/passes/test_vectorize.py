"""Vectorized loops become vectors of the target, with masks for conditions and vectors for remainders."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.lower.running import before_and_after
from tests.lower.simplified import vectorized
from tests.schedule.compiling import HERE
from tests.support.jit import load

from weft.codegen.interp import run
from weft.loop import parse_program
from weft.lower import lower

Golden = Callable[[str], None]

LANES = """
def main(A: f32[70], s: f32[1], C: f32[70]):
    for j in vectorized(0, 70):
        C[j] = A[69 - j] * s[0] + cast(f32, j)
"""


def test_vectorize(golden: Golden) -> None:
    golden(before_and_after(LANES, vectorized))


def test_vectorize_a_symbolic_loop(golden: Golden) -> None:
    text = """
def main(A: f32[n], C: f32[n], n: i64):
    for j in vectorized(0, n):
        C[j] = A[j] + 1.0
"""
    golden(before_and_after(text, vectorized, {"n": 37}))


MASKED = """
def main(A: f32[4, 30], t: f32[4], C: f32[4, 30]):
    A_flat = view(A, 0, f32[120])
    C_flat = view(C, 0, f32[120])
    for i in range(0, 4):
        for jo in range(0, 2):
            for ji in vectorized(0, 16):
                if i < 3 and jo * 16 + ji < 30:
                    x = let(A_flat[i * 30 + jo * 16 + ji] * t[i])
                    C_flat[i * 30 + jo * 16 + ji] = x + select(ji < 4, x, 1.0)
                else:
                    if jo * 16 + ji < 30:
                        C_flat[i * 30 + jo * 16 + ji] = 5.0
"""


def test_vectorize_masks_conditions(golden: Golden) -> None:
    golden(before_and_after(MASKED, vectorized))


PRIVATE = """
def main(A: f32[16, 8], C: f32[8]):
    A_flat = view(A, 0, f32[128])
    for j in vectorized(0, 8):
        T = alloc("local", f32[1])
        T[0] = 0.0
        for k in range(0, 16):
            T[0] = T[0] + A_flat[k * 8 + j]
        C[j] = T[0]
"""


def test_vectorize_gives_each_lane_its_own_memory(golden: Golden) -> None:
    golden(before_and_after(PRIVATE, vectorized))


PACKED = """
def main(A: f32[128], C: f32[4, 2, 16], B: u8[128]):
    C_flat = view(C, 0, f32[128])
    for i in range(0, 4):
        for j in vectorized(0, 32):
            C_flat[j // 16 * 64 + i * 16 + j % 16] = A[i * 32 + j] + cast(f32, B[i * 32 + j])
"""


def test_vectorize_into_a_packed_layout(golden: Golden) -> None:
    golden(before_and_after(PACKED, vectorized))


CALLS = """
def main(A: f32[8], C: f32[8]):
    for j in vectorized(0, 8):
        f(j, A.at(0), C.at(0))

def f(i: i64, A: f32[8], C: f32[8]):
    C[i] = A[i] * 2.0
"""


def test_vectorize_leaves_calls_serial(golden: Golden) -> None:
    golden(before_and_after(CALLS, vectorized))


ONE_LANE = """
def main(A: f32[8], C: f32[8]):
    for j in vectorized(0, 8):
        if j < 1:
            C[2] = A[3]
"""


def test_vectorize_leaves_a_store_of_one_lane_serial(golden: Golden) -> None:
    golden(before_and_after(ONE_LANE, vectorized))


FIRST_LANE = """
def main(A: f32[n], B: f32[16], C: f32[16], n: i64):
    for j in vectorized(0, 16):
        if {guard}:
            C[j] = A[n - 1] * B[j]
"""


def test_vectorize_loads_what_the_first_lane_does(golden: Golden) -> None:
    golden(before_and_after(FIRST_LANE.format(guard="j < n"), vectorized, {"n": 5}))


def test_vectorize_loads_nothing_that_no_lane_may_load(golden: Golden) -> None:
    golden(before_and_after(FIRST_LANE.format(guard="j + 5 < n").replace("n - 1", "n - 5"), vectorized, {"n": 3}))


@pytest.mark.parametrize("op", ["truncdiv({}, {})", "truncmod({}, {})", "{} // {}", "{} % {}"])
@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "u8", "i64"])
def test_lanes_that_are_masked_off_divide_by_one(dtype: str, op: str) -> None:
    """A tail of 11 lanes: machines stop where one divides by zero, whether its result is wanted or not."""
    text = f"""
def main(A: {dtype}[43], B: {dtype}[43], C: {dtype}[43]):
    for i in range(0, 3):
        for j in vectorized(0, 16):
            if i * 16 + j < 43:
                C[i * 16 + j] = {op.format("A[i * 16 + j]", "B[i * 16 + j]")}
"""
    program = parse_program(text)
    numbers = np.random.default_rng(0)
    kind = program.entry.params[0].dtype.numpy
    a, b = numbers.integers(0, 100, 43).astype(kind), numbers.integers(1, 9, 43).astype(kind)
    made, wanted = np.zeros(43, kind), np.zeros(43, kind)
    run(program, [a, b, wanted])
    load(lower(program, HERE, verify=True), HERE)[1](a, b, made)
    np.testing.assert_array_equal(made, wanted)
