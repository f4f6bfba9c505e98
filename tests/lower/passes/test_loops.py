"""Loops that are cut to what their guards leave, written out, or made functions for threads to run."""

from __future__ import annotations

from collections.abc import Callable

from tests.lower.running import before_and_after
from tests.lower.simplified import AVX512, partitioned, vectorized

from weft.loop import parse_program, print_program
from weft.lower.cleanup.simplify_program import simplify_program
from weft.lower.loops.outline_tasks import outline_tasks
from weft.lower.loops.serialize_loops import serialize_loops
from weft.lower.loops.tighten_loop_bounds import tighten_loop_bounds
from weft.lower.loops.unroll_loops import unroll_loops

Golden = Callable[[str], None]

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


INSIDE = """
def main(A: f32[n, 8], C: f32[8], n: i64):
    for c in parallel(0, 4, task_inside=1):
        for i in range(0, n):
            for j in range(0, 2):
                C[c * 2 + j] = C[c * 2 + j] + A[i, c * 2 + j]
"""


def test_outline_tasks_inside_of_loops(golden: Golden) -> None:
    """Each task reads the rows once, for all of its columns."""
    golden(before_and_after(INSIDE, outline_tasks, {"n": 3}))


def test_serialize_loops_inside_of_loops() -> None:
    made = print_program(serialize_loops(parse_program(INSIDE)))
    assert "    for i in range(0, n):\n        for c in range(0, 4):\n            for j in range(0, 2):\n" in made
    between = INSIDE.replace("range(0, n):", "range(0, c + 1):")  # as many rows as the column says
    made = print_program(serialize_loops(parse_program(between)))
    assert "    for c in range(0, 4, task_inside=1):\n        for i in range(0, c + 1):\n" in made


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
    golden(before_and_after(GUARDED_TAIL, lambda p: tighten_loop_bounds(simplify_program(p), AVX512), {"n": 3}))


UP_TO_AND_WITH = """
def main(A: f32[8], C: f32[8]):
    for i in range(0, 8):
        if i <= 4:
            C[i] = A[i]
"""


def test_shrink_loops_to_a_last_iteration(golden: Golden) -> None:
    golden(before_and_after(UP_TO_AND_WITH, lambda p: tighten_loop_bounds(p, AVX512)))


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
    golden(before_and_after(REGISTER_TAIL, lambda p: vectorized(tighten_loop_bounds(partitioned(p), AVX512))))


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
