"""`cache_read`: a block reads a copy of one of its inputs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, argmax, conv2d, matmul, rows, symbolic_matmul, symbolic_rows, two_outputs
from tests.schedule.refusing import refused
from tests.schedule.running import check, refusal, transition

from weft.schedule import BlockRef, Schedule
from weft.support.errors import ScheduleError


def copied(name: str, block: str, buffer: str) -> Schedule:
    """One of the common cases with a copy, checked."""
    case = CASES[name]()
    s = Schedule(case.program)
    copy = s.cache_read(s.block(block), buffer, "local")
    assert copy.name == f"{buffer}_local"
    check(case, s.program)
    return s


# Which buffers


def test_an_input(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    copy = s.cache_read(s.block("C"), "B", "local")
    assert copy == s.block("B_local")
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_an_intermediate_result_is_copied_after_it_is_made() -> None:
    s = copied("bias_relu", "D", "C")
    assert [b.name for b in s.blocks()] == ["C", "C_local", "D", "E"]


def test_a_result_with_other_readers_leaves_them_as_they_are() -> None:
    s = copied("two_outputs", "B", "A")
    assert "A[vi_2, vj_2] - 3.0" in str(s)


def test_several_blocks_of_a_nest_read_one_copy() -> None:
    case = rows()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("out"))
    for name in ("total", "apart", "most"):
        s.compute_at(s.block(name), i)
    copy = s.cache_read(s.block("most"), "X", "local", [s.block("apart")])
    s.compute_at(copy, i)
    check(case, s.program)
    assert str(s).count("X[") == 2  # the copy's own region and statement


def test_another_reader_is_in_the_nest() -> None:
    s = Schedule(rows().program)
    with pytest.raises(ScheduleError, match="apart is not in the nest that the copy is made for"):
        s.cache_read(s.block("most"), "X", "local", [s.block("apart")])


def test_all_reads_of_a_block_are_of_the_copy() -> None:
    s = copied("symmetric", "B", "A")
    assert "A_local[vi_1, vj_1] - A_local[vj_1, vi_1]" in str(s)


def test_a_gathered_buffer() -> None:
    copied("gather", "B", "A")


def test_a_buffer_of_places() -> None:
    copied("gather", "B", "S")


def test_the_input_of_a_padding() -> None:
    copied("conv2d", "P", "X")


def test_the_input_of_a_recurrence() -> None:
    copied("recurrence", "G", "W")


def test_the_input_of_a_block_with_several_results() -> None:
    case = argmax()
    s = Schedule(case.program)
    s.cache_read(s.block("top"), "X", "local")
    check(case, s.program)


@pytest.mark.parametrize("scope", ["global", "shared", "local", "register", "warp", "acc"])
def test_into_a_memory(scope: str) -> None:
    case = matmul()
    s = Schedule(case.program)
    assert s.cache_read(s.block("C"), "A", scope).name == f"A_{scope}"
    assert f'alloc("{scope}"' in str(s)
    check(case, s.program)


def test_names_that_are_taken_get_numbers() -> None:
    case = two_outputs()
    s = Schedule(case.program)
    names = [s.cache_read(s.block(b), "A", "local").name for b in ("B", "C")]
    assert names == ["A_local", "A_local_1"]
    check(case, s.program)


def test_a_copy_of_a_copy() -> None:
    case = matmul()
    s = Schedule(case.program)
    first, second = s.cache_read(s.block("C"), "A", "shared"), s.cache_read(s.block("C"), "A_shared", "local")
    assert [b.name for b in s.blocks()][:2] == [first.name, second.name]
    check(case, s.program)


def test_both_inputs() -> None:
    case = matmul()
    s = Schedule(case.program)
    for buffer in ("A", "B"):
        s.cache_read(s.block("C"), buffer, "local")
    assert s.blocks()[-1] == BlockRef("C")
    check(case, s.program)


# Symbolic


def test_symbolic_rows() -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    s.compute_at(s.cache_read(s.block("C"), "A", "local"), s.loops(s.block("C"))[0])
    check(case, s.program)


def test_a_block_of_symbolic_rows() -> None:
    case = symbolic_rows(5, 7)
    s = Schedule(case.program)
    io, _, _, _ = s.tile(s.loops(s.block("B")), [2, 3])
    s.compute_at(s.cache_read(s.block("B"), "A", "local"), io)
    check_compiled(case, s.program)


# After other steps, and before them


def test_under_a_guard() -> None:
    case = matmul(5, 7, 3)
    s = Schedule(case.program)
    i0, _ = s.split(s.loops(s.block("C"))[0], [None, 2])
    s.compute_at(s.cache_read(s.block("C"), "A", "local"), i0)
    check_compiled(case, s.program)


def test_in_a_parallel_loop() -> None:
    case = matmul()
    s = Schedule(case.program)
    i = s.loops(s.block("C"))[0]
    s.parallel(i)
    s.compute_at(s.cache_read(s.block("C"), "B", "local"), i)
    check(case, s.program)


def test_of_a_decomposed_reduction() -> None:
    case = matmul()
    s = Schedule(case.program)
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[2])
    s.cache_read(s.block("C"), "A", "local")
    check(case, s.program)


def test_a_window_of_a_convolution() -> None:
    case = conv2d()
    s = Schedule(case.program)
    _, i, _, *_ = s.loops(s.block("Y"))
    s.compute_at(s.cache_read(s.block("Y"), "P", "local"), i)
    check_compiled(case, s.program)


def test_a_level_of_each_memory() -> None:
    case = matmul(6, 8, 4)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.reorder([i, k, j])
    near = s.cache_read(s.block("C"), "B", "shared")
    nearer = s.cache_read(s.block("C"), "B_shared", "register")
    s.compute_at(nearer, k)
    s.compute_at(near, i)
    check_compiled(case, s.program)


def test_of_rows_with_strides() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.storage_align(s.block("C"), 0, 8)
    s.cache_read(s.block("D"), "C", "local")
    check_compiled(case, s.program)


def test_of_another_layout() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.transform_layout(s.block("C"), "C", "i, j -> j, i")
    s.cache_read(s.block("D"), "C", "local")
    check(case, s.program)


def test_of_a_block_of_loops() -> None:
    case = matmul(4, 6, 4)
    s = Schedule(case.program)
    k0, k1 = s.split(s.loops(s.block("C"))[2], [None, 2])
    outer = s.blockize(k1)
    copy = s.cache_read(outer, "A", "local")
    s.compute_at(copy, k0)
    s.vectorize(s.loops(copy)[-1])
    assert "A_local[vi_1, vk]" in str(s)
    check_compiled(case, s.program)


def test_its_loops_are_scheduled_like_others() -> None:
    case = matmul(5, 8, 6)
    s = Schedule(case.program)
    copy = s.cache_read(s.block("C"), "B", "local")
    i, j = s.loops(copy)
    _, lanes = s.split(j, [None, 4])
    s.vectorize(lanes)
    s.parallel(i)
    check_compiled(case, s.program)


# Refused


def test_refused_for_what_is_not_read(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.cache_read(s.block("C"), "C", "local")))


def test_refused_for_a_buffer_that_is_not_there() -> None:
    s = Schedule(matmul().program)
    refused(
        lambda: s.cache_read(s.block("C"), "D", "local"),
        "C does not read one buffer called D",
        'with block("C"',
        "it reads A, B",
    )


def test_refused_for_what_the_nest_makes(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["bias_relu"]().program)
    s.compute_at(s.block("C"), s.loops(s.block("D"))[0])
    golden(refusal(lambda: s.cache_read(s.block("D"), "C", "local")))


def test_refused_for_what_is_no_memory() -> None:
    s = Schedule(matmul().program)
    refused(
        lambda: s.cache_read(s.block("C"), "A", "the stack"),
        "'the stack' is not the name of a memory",
        None,
        "use one of global, shared, swizzled, dynamic, warp, fragment, local, register, or of an accelerator's own",
    )


def test_refused_inside_a_block_of_loops() -> None:
    s = Schedule(matmul().program)
    s.blockize(s.loops(s.block("C"))[1])
    refused(
        lambda: s.cache_read(s.block("C"), "A", "local"),
        "it is inside the block C_o",
        'with block("C"',
        "place C_o as a whole, or take this step before blockize",
    )
