"""Blocks that `blockize` has made, scheduled as a whole by the other primitives."""

from __future__ import annotations

import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, Case, bias_relu, matmul, symbolic_matmul
from tests.schedule.refusing import refused
from tests.schedule.running import check

from weft.schedule import BlockRef, Schedule


def tiles(case: Case, name: str, size: int) -> tuple[Schedule, BlockRef]:
    """A block of loops over *size* columns of a block."""
    s = Schedule(case.program)
    f = s.loops(s.block(name))
    inner = s.split(f[1], [None, size])[1]
    if len(f) > 2:
        s.reorder([f[2], inner])
    return s, s.blockize(f[2] if len(f) > 2 else inner)


def test_reordered() -> None:
    case = matmul(4, 6, 4)
    s, outer = tiles(case, "C", 3)
    i, j = s.loops(outer)
    s.reorder([j, i])
    check_compiled(case, s.program)


def test_a_sum_over_blocks_is_reordered() -> None:
    case = matmul(4, 6, 4)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    k0, k1 = s.split(k, [None, 2])
    s.blockize(k1)
    s.reorder([k0, i, j])
    check_compiled(case, s.program)


def test_in_parallel_and_unrolled() -> None:
    case = matmul(4, 6, 4)
    s, outer = tiles(case, "C", 3)
    i, j = s.loops(outer)
    s.parallel(i)
    s.unroll(j)
    check_compiled(case, s.program)


def test_split_fused_and_partitioned() -> None:
    case = matmul(5, 6, 4)
    s, outer = tiles(case, "C", 3)
    a, _ = s.split(s.fuse(s.loops(outer)), [None, 4])
    s.partition(a, [1])
    check_compiled(case, s.program)


def test_a_sum_over_blocks_is_decomposed() -> None:
    case = matmul(4, 6, 4)
    s = Schedule(case.program)
    k0, k1 = s.split(s.loops(s.block("C"))[2], [None, 2])
    outer = s.blockize(k1)
    s.decompose_reduction(outer, k0)
    check_compiled(case, s.program)


def test_its_inputs_are_made_in_its_loops() -> None:
    case = bias_relu(8, 8, 3)
    s, outer = tiles(case, "D", 4)
    s.compute_at(s.block("C"), s.loops(outer)[1])
    s.parallel(s.loops(outer)[0])
    check_compiled(case, s.program)


@pytest.mark.parametrize(("size", "piece"), [(2, 4), (4, 2), (4, 8), (2, 3)])
def test_a_producer_of_steps_is_placed(size: int, piece: int) -> None:
    """An iteration computes the whole steps that it needs a part of."""
    case = bias_relu(8, 8, 3)
    s, outer = tiles(case, "D", size)
    j = s.loops(s.block("E"))[1]
    s.compute_at(outer, s.split(j, [None, piece])[0])
    check_compiled(case, s.program)


def test_a_consumer_of_steps_is_placed() -> None:
    case = bias_relu(8, 8, 3)
    s, outer = tiles(case, "E", 2)
    s.reverse_compute_at(outer, s.split(s.loops(s.block("D"))[1], [None, 4])[0])
    assert [s.extent(f) for f in s.loops(outer)] == [8, 2, 2]
    check_compiled(case, s.program)


def test_a_consumer_of_whole_rows_is_placed() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    outer = s.blockize(s.loops(s.block("E"))[1])
    s.reverse_compute_at(outer, s.loops(s.block("D"))[0])
    check_compiled(case, s.program)


def test_out_of_loops_again() -> None:
    case = bias_relu(8, 8, 3)
    s, outer = tiles(case, "D", 4)
    s.compute_at(outer, s.loops(s.block("E"))[0])
    s.compute_root(outer)
    assert [s.extent(f) for f in s.loops(outer)] == [8, 2]
    check_compiled(case, s.program)


def test_symbolic_rows_of_blocks() -> None:
    case = symbolic_matmul(5)
    s = Schedule(case.program)
    outer = s.blockize(s.loops(s.block("D"))[1])
    s.compute_at(s.block("C"), s.loops(outer)[0])
    s.parallel(s.loops(outer)[0])
    check_compiled(case, s.program)


def test_other_blocks_are_scheduled_beside_it() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.blockize(s.loops(s.block("C"))[1])
    s.compute_inline(s.block("D"))
    s.reverse_compute_inline(s.cache_write(s.block("E"), "local"))
    check(case, s.program)


def test_refused_where_a_consumer_would_take_half_a_step() -> None:
    s, outer = tiles(bias_relu(8, 8, 3), "E", 4)
    to = s.split(s.loops(s.block("D"))[1], [None, 2])[0]
    refused(
        lambda: s.reverse_compute_at(outer, to),
        "D has not made all that E_o reads when it runs there",
        'with block("D"',
        "choose a loop further out, or move that block out of the loop first",
    )


def test_refused_into_a_block() -> None:
    s = Schedule(bias_relu(8, 8, 3).program)
    j = s.loops(s.block("D"))[1]
    s.blockize(j)
    refused(
        lambda: s.compute_at(s.block("C"), j),
        "it is inside the block D_o",
        "for j_1 in range(0, 8)",
        "place D_o as a whole, or take this step before blockize",
    )


@pytest.mark.parametrize("step", ["compute_at", "compute_root"])
def test_refused_out_of_a_block(step: str) -> None:
    s = Schedule(bias_relu(8, 8, 3).program)
    s.blockize(s.loops(s.block("D"))[1])
    there = [s.loops(s.block("E"))[0]] if step == "compute_at" else []
    refused(
        lambda: s.apply(step, s.block("D"), *there),
        "it is inside the block D_o",
        'with block("D"',
        "place D_o as a whole, or take this step before blockize",
    )


def test_refused_to_lay_out_what_a_block_of_loops_uses() -> None:
    s = Schedule(bias_relu(8, 8, 3).program)
    s.blockize(s.loops(s.block("D"))[1])
    refused(
        lambda: s.transform_layout(s.block("C"), "C", "i, j -> j, i"),
        "D_o has other blocks inside",
        'with block("D_o"',
        "take this step before blockize",
    )
