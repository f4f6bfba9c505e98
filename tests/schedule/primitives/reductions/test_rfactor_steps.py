"""`rfactor` among other primitives: after them, and before them."""

from __future__ import annotations

from tests.schedule.programs import CASES, matmul, rows
from tests.schedule.running import check

from weft.schedule import Schedule

# After other steps


def test_in_a_parallel_loop() -> None:
    case = matmul()
    s = Schedule(case.program)
    i, _, k = s.loops(s.block("C"))
    s.parallel(i)
    s.rfactor(s.block("C"), k)
    check(case, s.program)


def test_of_an_unrolled_loop() -> None:
    case = matmul()
    s = Schedule(case.program)
    *_, k = s.loops(s.block("C"))
    s.unroll(k)
    s.rfactor(s.block("C"), k)
    check(case, s.program)


def test_with_the_reduction_outermost() -> None:
    case = matmul()
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.reorder([k, i, j])
    partial = s.rfactor(s.block("C"), k)
    assert s.loops(partial) == (k, i, j)
    check(case, s.program)


def test_of_fused_reductions() -> None:
    case = CASES["conv2d"]()
    s = Schedule(case.program)
    s.rfactor(s.block("Y"), s.fuse(s.loops(s.block("Y"))[3:]))
    check(case, s.program)


def test_of_pieces_of_fused_reductions() -> None:
    case = CASES["conv2d"]()
    s = Schedule(case.program)
    s.rfactor(s.block("Y"), s.split(s.fuse(s.loops(s.block("Y"))[3:]), [None, 4])[1])
    check(case, s.program)


def test_of_tiles_of_results() -> None:
    case = matmul(5, 7, 6)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.tile([i, j], [2, 4])
    s.rfactor(s.block("C"), k)
    check(case, s.program)


def test_with_a_copy_made_in_the_loop() -> None:
    case = matmul()
    s = Schedule(case.program)
    i, _, k = s.loops(s.block("C"))
    s.compute_at(s.cache_read(s.block("C"), "A", "local"), i)
    s.rfactor(s.block("C"), k)
    check(case, s.program)


def test_with_the_formula_of_its_input_inlined() -> None:
    case = rows()
    s = Schedule(case.program)
    _, q = s.loops(s.block("total"))
    s.compute_inline(s.block("apart"))
    s.rfactor(s.block("total"), q)
    check(case, s.program)


def test_into_another_buffer() -> None:
    case = matmul()
    s = Schedule(case.program)
    s.cache_write(s.block("C"), "local")
    s.rfactor(s.block("C"), s.loops(s.block("C"))[2])
    check(case, s.program)


def test_with_a_consumer_in_the_outer_loop() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    _, j, k = s.loops(s.block("C"))
    s.reverse_compute_at(s.block("D"), j)
    s.rfactor(s.block("C"), k)
    check(case, s.program)


def test_of_a_result_placed_in_its_consumers_loop() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.compute_at(s.block("C"), s.loops(s.block("D"))[0])
    s.rfactor(s.block("C"), s.loops(s.block("C"))[-1])
    check(case, s.program)


def test_of_both_of_two_reductions() -> None:
    case = CASES["row_sums"]()
    s = Schedule(case.program)
    for name in ("B", "C"):
        s.rfactor(s.block(name), s.loops(s.block(name))[-1])
    check(case, s.program)


def test_in_a_step_of_a_recurrence() -> None:
    case = CASES["recurrence"]()
    s = Schedule(case.program)
    s.rfactor(s.block("G"), s.loops(s.block("G"))[-1])
    check(case, s.program)


def test_of_a_result_in_another_layout() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.transform_layout(s.block("C"), "C", "i, j -> j, i")
    s.rfactor(s.block("C"), s.loops(s.block("C"))[2])
    check(case, s.program)


# Before other steps


def test_partial_results_are_cut_again() -> None:
    case = matmul(3, 2, 12)
    s = Schedule(case.program)
    _, k1, k2 = s.split(s.loops(s.block("C"))[2], [None, 3, 2])
    partial = s.rfactor(s.block("C"), k2)
    again = s.rfactor(partial, k1)
    assert again.name == "C_rf_rf"
    check(case, s.program)


def test_the_final_reduction_is_cut_again() -> None:
    case = matmul(3, 2, 12)
    s = Schedule(case.program)
    s.rfactor(s.block("C"), s.loops(s.block("C"))[2])
    _, inner = s.split(s.loops(s.block("C"))[-1], [None, 4])
    s.rfactor(s.block("C"), inner)
    check(case, s.program)


def test_partial_results_in_lanes() -> None:
    case = matmul(4, 3, 8)
    s = Schedule(case.program)
    *_, k = s.loops(s.block("C"))
    ko, ki = s.split(k, [None, 4])
    partial = s.rfactor(s.block("C"), ki)
    s.reorder(s.loops(partial)[2:])
    s.decompose_reduction(partial, ko)
    s.vectorize(s.loops(partial)[-1])
    s.parallel(s.loops(partial)[0])
    check(case, s.program)


def test_partial_results_by_threads() -> None:
    case = matmul(4, 3, 8)
    s = Schedule(case.program)
    *_, k = s.loops(s.block("C"))
    outer, _ = s.split(k, [4, None])
    s.reorder([outer, *s.loops(s.block("C"))[:2]])
    partial = s.rfactor(s.block("C"), outer)
    s.parallel(s.loops(partial)[0])
    check(case, s.program)


def test_the_final_reduction_is_decomposed() -> None:
    case = matmul()
    s = Schedule(case.program)
    s.rfactor(s.block("C"), s.loops(s.block("C"))[2])
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[-1])
    check(case, s.program)


def test_partial_results_in_another_memory_and_layout() -> None:
    case = matmul(4, 3, 6)
    s = Schedule(case.program)
    partial = s.rfactor(s.block("C"), s.loops(s.block("C"))[2])
    s.set_scope(partial, "local")
    s.transform_layout(partial, "C_rf", "i, j, k -> k, i, j")
    check(case, s.program)


def test_partial_results_are_placed_elsewhere() -> None:
    case = matmul(4, 3, 6)
    s = Schedule(case.program)
    partial = s.rfactor(s.block("C"), s.loops(s.block("C"))[2])
    s.compute_root(partial)
    s.compute_at(partial, s.loops(s.block("C"))[0])
    check(case, s.program)
