"""The threads of a row: of products of a vector and a matrix, and of normalizations."""

from __future__ import annotations

import pytest

from weft.cost import Candidate, RowThreads, row_thread_plans, turned_weight_plans
from weft.cost.rules.row_threads import RowGroup, matrix_vector_cycles
from weft.support.dtypes import bf16, f32
from weft.targets.cuda_machines import cuda

H200 = cuda("sm_90")
MULTIPROCESSORS = 132


def matrix_vector(depth: int, columns: int, bits: int = 32, *, side_by_side: bool = False) -> Candidate[RowThreads]:
    """Returns the best threads for a vector of *depth* terms times a matrix of so many *columns*."""
    row = RowGroup(columns, columns, depth, 1, 2, 1, bits, depth, is_held=False, side_by_side=side_by_side)
    return min(row_thread_plans(row, H200), key=lambda c: c.cycles)


@pytest.mark.parametrize(("depth", "columns"), [(3072, 768), (768, 2304)])
def test_a_vector_by_columns_keeps_most_multiprocessors_busy(depth: int, columns: int) -> None:
    """24 blocks of 32 columns read a quarter of what the memory delivers."""
    chosen = matrix_vector(depth, columns).decision
    assert chosen.across
    assert columns // chosen.rows >= MULTIPROCESSORS // 2


def test_a_constant_matrix_is_read_by_columns() -> None:
    assert min(turned_weight_plans(3072, 768, 32, H200), key=lambda c: c.cycles).decision.turned
    chosen = matrix_vector(3072, 768, side_by_side=True).decision
    assert 768 // chosen.rows >= MULTIPROCESSORS
    assert chosen.lanes == 4


def test_half_the_bytes_take_less_time() -> None:
    wide, narrow = (matrix_vector_cycles(4096, 4096, t.bits, H200, side_by_side=True) for t in (f32, bf16))
    assert narrow < 0.7 * wide


def test_vectors_are_as_wide_as_rows_allow() -> None:
    assert matrix_vector(650, 2600, side_by_side=True).decision.lanes == 2
    assert matrix_vector(651, 2600, side_by_side=True).decision.lanes == 1


def test_inputs_that_all_rows_share_take_registers() -> None:
    def held(beside: int) -> int:
        row = RowGroup(4096, 4096, 4096, 2, 3, 3, 16, 4096, beside=beside)
        chosen = min(row_thread_plans(row, H200), key=lambda c: c.cycles).decision
        assert chosen.held
        return 4096 // chosen.threads

    assert (held(0), held(2)) == (32, 16)
