"""Each pass on small programs: what it makes of them, and that they compute the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lower.running import before_and_after

from weft.loop.nodes import Program
from weft.lower.compact_buffers import compact_buffers
from weft.lower.flatten_buffers import flatten_buffers
from weft.lower.hoist_allocations import hoist_allocations
from weft.lower.hoist_invariants import hoist_invariants
from weft.lower.lower_blocks import lower_blocks
from weft.lower.outline_tasks import outline_tasks
from weft.lower.partition_loops import partition_loops
from weft.lower.place_allocations import place_allocations
from weft.lower.remove_noops import remove_noops
from weft.lower.shrink_loops import shrink_loops
from weft.lower.simplify_program import simplify_program
from weft.lower.unroll_loops import unroll_loops
from weft.lower.unswitch_loops import unswitch_loops
from weft.lower.vectorize import vectorize
from weft.targets.cpu import cpu

Golden = Callable[[str], None]
AVX512 = cpu("avx512")


def vectorized(program: Program) -> Program:
    return simplify_program(vectorize(program, AVX512))


def partitioned(program: Program) -> Program:
    return simplify_program(partition_loops(program))


TILED_SUM = """
def main(A: f32[30, 6], C: f32[30]):
    for io in range(0, 4):
        for k in range(0, 6):
            for ii in range(0, 8):
                with block("C", vi=spatial(30, io * 8 + ii), vk=reduce(6, k), where=(io * 8 + ii < 30)):
                    reads(A[vi, vk])
                    writes(C[vi])
                    with init():
                        C[vi] = 0.0
                    C[vi] = C[vi] + A[vi, vk]
"""


def test_lower_blocks(golden: Golden) -> None:
    golden(before_and_after(TILED_SUM, lower_blocks))


NESTED = """
def main(A: f32[8, 8], B: f32[8, 8]):
    for i in range(0, 2):
        with block("tile", vt=spatial(2, i)):
            reads(A[vt * 4 : vt * 4 + 4, 0:8])
            writes(B[vt * 4 : vt * 4 + 4, 0:8])
            for p in range(0, 4):
                for q in range(0, 8):
                    with block("B", vi=spatial(8, vt * 4 + p), vj=spatial(8, q)):
                        reads(A[vi, vj])
                        writes(B[vi, vj])
                        B[vi, vj] = A[vi, vj] + 1.0
"""


def test_lower_blocks_inside_blocks(golden: Golden) -> None:
    golden(before_and_after(NESTED, lower_blocks))


STAGED = """
def main(A: f32[16, 8], C: f32[16]):
    B = alloc("global", f32[16, 8])
    for i in range(0, 16):
        for j in range(0, 8):
            with block("B", vi=spatial(16, i), vj=spatial(8, j)):
                reads(A[vi, vj])
                writes(B[vi, vj])
                B[vi, vj] = A[vi, vj] * 2.0
        for j2 in range(0, 8):
            with block("C", wi=spatial(16, i), wj=reduce(8, j2)):
                reads(B[wi, wj])
                writes(C[wi])
                with init():
                    C[wi] = 0.0
                C[wi] = C[wi] + B[wi, wj]
"""


def test_place_allocations(golden: Golden) -> None:
    golden(before_and_after(STAGED, place_allocations))


CARRIED = """
def main(A: f32[8], C: f32[8]):
    B = alloc("global", f32[8])
    for i in range(0, 8):
        with block("B", vi=spatial(8, i)):
            reads(A[vi])
            writes(B[vi])
            B[vi] = A[vi] * 2.0
        with block("C", wi=spatial(8, i)):
            reads(B[0:8])
            writes(C[wi])
            C[wi] = B[wi] + select(wi < 1, 0.0, B[max(wi - 1, 0)])
"""


def test_an_allocation_stays_where_iterations_share_it(golden: Golden) -> None:
    golden(before_and_after(CARRIED, place_allocations))


TWO_STAGES = """
def main(A: f32[8], C: f32[8]):
    S = alloc("global", f32[8])
    T = alloc("global", f32[8])
    for i in range(0, 8):
        S[i] = A[i] + 1.0
    for j in range(0, 8):
        T[j] = S[j] * 2.0
    for k in range(0, 8):
        C[k] = T[k]
"""


def test_allocations_that_overlap_are_nested(golden: Golden) -> None:
    golden(before_and_after(TWO_STAGES, place_allocations))


def test_compact_buffers(golden: Golden) -> None:
    golden(before_and_after(STAGED, lambda p: compact_buffers(place_allocations(p))))


TWO_PARTS = """
def main(A: f32[8, 8], C: f32[4]):
    for i in range(0, 4):
        T = alloc("local", f32[12])
        T[i + 3] = A[i, 0]
        for j in range(0, 8):
            T[i + j] = A[i, j]
        C[i] = T[i + 2] + T[i + 6]
"""


def test_compact_buffers_to_what_spans_all_parts(golden: Golden) -> None:
    golden(before_and_after(TWO_PARTS, compact_buffers))


WINDOW = """
def main(A: f32[18], C: f32[8]):
    B = alloc("global", f32[18])
    for io in range(0, 2):
        for r in range(0, 9):
            with block("B", vr=spatial(18, io * 8 + r), where=(io * 8 + r < 18)):
                reads(A[vr])
                writes(B[vr])
                B[vr] = A[vr] + 1.0
        for ii in range(0, 4):
            for k in range(0, 3):
                with block("C", vi=spatial(8, io * 4 + ii), vk=reduce(3, k)):
                    reads(B[vi * 2 + vk])
                    writes(C[vi])
                    with init():
                        C[vi] = 0.0
                    C[vi] = C[vi] + B[vi * 2 + vk]
"""


def test_compact_buffers_to_a_window(golden: Golden) -> None:
    golden(before_and_after(WINDOW, lambda p: compact_buffers(place_allocations(p))))


VIEWS = """
def main(A: f32[4, 6], B: f32[4, 6], n: i64):
    T = alloc("local", f32[4, 6], strides=(8, 1))
    for i in range(0, 4):
        for j in range(0, 6):
            T[i, j] = A[i, j]
    row = view(B, 6, f32[2, 6])
    for p in range(0, 2):
        for q in range(0, 6):
            row[p, q] = T[p, q]
"""


def test_flatten_buffers(golden: Golden) -> None:
    golden(before_and_after(VIEWS, flatten_buffers, {"n": 3}))


GUARDED_INIT = """
def main(A: f32[4, 6, 5], C: f32[4]):
    for i in range(0, 4):
        for k in range(0, 6):
            for l in range(0, 5):
                if k * 5 + l == 0:
                    C[i] = 0.0
                C[i] = C[i] + A[i, k, l]
"""


def test_hoist_invariants_takes_the_first_iteration_out(golden: Golden) -> None:
    golden(before_and_after(GUARDED_INIT, hoist_invariants))


INVARIANT = """
def main(A: f32[4, 6], C: f32[4, 6], n: i64):
    for i in range(0, 4):
        for j in range(0, 6):
            x = let(i + n)
            if n < 3:
                C[i, j] = A[i, j] + cast(f32, x)
"""


def test_hoist_invariants(golden: Golden) -> None:
    golden(before_and_after(INVARIANT, hoist_invariants, {"n": 2}))


ALLOCATED_INSIDE = """
def main(A: f32[8, 4], C: f32[8]):
    for i in parallel(0, 8):
        for j in range(0, 2):
            T = alloc("local", f32[4])
            for k in range(0, 4):
                T[k] = A[i, k] * 2.0
            C[i] = T[j]
"""


def test_hoist_allocations_stay_in_a_parallel_loop(golden: Golden) -> None:
    golden(before_and_after(ALLOCATED_INSIDE, hoist_allocations))


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


def test_partition_loops_separates_what_was_concatenated(golden: Golden) -> None:
    golden(before_and_after(CONCATENATED, partitioned))


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


PARALLEL = """
def main(A: f32[n, 4], C: f32[n, 4], n: i64):
    T = alloc("global", f32[4])
    for k in range(0, 4):
        T[k] = 2.0
    for i in parallel(1, n - 1):
        for j in parallel(0, 4):
            C[i, j] = A[i, j] * T[j]
"""


def test_outline_tasks(golden: Golden) -> None:
    golden(before_and_after(PARALLEL, outline_tasks, {"n": 5}))


GUARDED_TAIL = """
def main(A: f32[8], C: f32[8], n: i64):
    for i in unrolled(0, 8):
        T = alloc("local", f32[1])
        if i < 5 and n < 9:
            T[0] = A[i]
        if i < 5 and n < 9:
            C[i] = T[0]
    for j in range(0, 8):
        if j < 2:
            C[j] = A[j]
        if j < 2:
            C[j] = C[j] + 1.0
"""


def test_shrink_loops(golden: Golden) -> None:
    golden(before_and_after(GUARDED_TAIL, lambda p: shrink_loops(simplify_program(p), AVX512), {"n": 3}))


UP_TO_AND_WITH = """
def main(A: f32[8], C: f32[8]):
    for i in range(0, 8):
        if i <= 4:
            C[i] = A[i]
"""


def test_shrink_loops_to_a_last_iteration(golden: Golden) -> None:
    golden(before_and_after(UP_TO_AND_WITH, lambda p: shrink_loops(p, AVX512)))


ONE_LANE = """
def main(A: f32[8], C: f32[8]):
    for j in vectorized(0, 8):
        if j < 1:
            C[2] = A[3]
"""


def test_vectorize_leaves_a_store_of_one_lane_serial(golden: Golden) -> None:
    golden(before_and_after(ONE_LANE, vectorized))


PARTLY_INVARIANT = """
def main(A: f32[8, 64], C: f32[10, 66]):
    for i in range(0, 10):
        for j in range(0, 66):
            C[i, j] = select(0 < i and 0 < j and i < 9 and j < 65, A[i - 1, j - 1], 0.0)
"""


def test_unswitch_loops(golden: Golden) -> None:
    golden(before_and_after(PARTLY_INVARIANT, unswitch_loops))


REGISTER_TAIL = """
def main(A: f32[40], C: f32[40]):
    T = alloc("register", f32[64])
    for i in vectorized(0, 64):
        T[i] = 0.0
    for j in vectorized(0, 64):
        if j < 40:
            C[j] = T[j] + A[j]
"""


def test_a_register_tile_is_cut_alike_everywhere(golden: Golden) -> None:
    golden(before_and_after(REGISTER_TAIL, lambda p: vectorized(shrink_loops(partitioned(p), AVX512))))


UNROLLED = """
def main(A: f32[3, 4], C: f32[3], n: i64):
    for i in unrolled(0, 3):
        T = alloc("local", f32[2])
        for j in unrolled(1, 3):
            T[j - 1] = A[i, j]
        for k in unrolled(0, n):
            C[i] = T[0] + T[1]
"""


def test_unroll_loops(golden: Golden) -> None:
    golden(before_and_after(UNROLLED, lambda p: simplify_program(unroll_loops(p)), {"n": 2}))


@pytest.mark.parametrize("n", [0, 3, 9, 20])
@pytest.mark.parametrize("m", [1, 9])
def test_partition_loops_where_sizes_are_in_any_order(n: int, m: int) -> None:
    text = """
def main(A: f32[m], C: f32[m], m: i64, n: i64):
    for i in range(0, m):
        C[i] = select(n <= i, A[i], 1.0) + select(i < n, A[i], 2.0)
"""
    before_and_after(text, partitioned, {"m": m, "n": n})
