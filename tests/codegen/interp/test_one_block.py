"""One block of a kernel tells whether a barrier is missing, however large the grid, and however long its loops."""

from __future__ import annotations

import pytest
from tests.lower.threaded import barriers, without_barrier

from weft.codegen.interp.threads import RaceError, check_block, kernels_of
from weft.loop import Program, parse_program
from weft.lower import lower
from weft.targets.grid_machines import GENERIC_THREADS

SUMS = """
def main(A: f32[64, 65536], C: f32[64, 64]):
    for i in bound(0, 64, thread="blockIdx.x"):
        S = alloc("shared", f32[64])
        for k in range(0, 1024):
            for t in bound(0, 64, thread="threadIdx.x"):
                S[t] = A[i, k * 64 + t]
            for u in bound(0, 64, thread="threadIdx.x"):
                C[i, u] = C[i, u] + S[63 - u]
"""
"""Each block adds 1024 rows of 64 numbers, which its threads read for one another: some 4 million reads."""


def check(program: Program, *, last: bool) -> None:
    (kernel,) = kernels_of(program)
    check_block(kernel, GENERIC_THREADS, last=last)


@pytest.mark.parametrize("last", [False, True])
def test_each_barrier_of_a_large_kernel_is_needed(last: bool) -> None:
    program = lower(parse_program(SUMS), GENERIC_THREADS)
    check(program, last=last)
    assert len(barriers(program)) == 2
    for number in range(2):
        with pytest.raises(RaceError):
            check(without_barrier(program, number), last=last)


def test_sizes_have_to_be_known() -> None:
    text = SUMS.replace("main(A: f32[64, 65536]", "main(n: i64, A: f32[n, 65536]").replace(
        '(0, 64, thread="blockIdx', '(0, n, thread="blockIdx'
    )
    with pytest.raises(ValueError, match="is not known"):
        check(lower(parse_program(text), GENERIC_THREADS), last=False)
