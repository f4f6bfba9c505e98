"""Memory: allocations go where they are used, out of loops, shrink to what is used at a time, and become flat."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lower.running import before_and_after

from weft.loop import parse_program
from weft.lower.buffers.compact_buffers import compact_buffers
from weft.lower.buffers.flatten_buffers import flatten_buffers
from weft.lower.buffers.hoist_allocations import hoist_allocations
from weft.lower.buffers.place_allocations import place_allocations

Golden = Callable[[str], None]

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


GUARDED = """
def main(A: f32[4, 32], C: f32[4, 32]):
    B = alloc("global", f32[32])
    for i in range(0, 4):
        for a in range(0, 3):
            for b in range(0, 8):
                with block("B", vi=spatial(4, i), vb=spatial(24, a * 8 + b), where=(a * 8 + b < WRITTEN)):
                    reads(A[vi, vb])
                    writes(B[vb])
                    B[vb] = A[vi, vb] * 2.0
        for c in range(0, 6):
            for d in range(0, 4):
                with block("C", wi=spatial(4, i), wc=spatial(24, c * 4 + d), where=(c * 4 + d < READ)):
                    reads(B[wc])
                    writes(C[wi, wc])
                    C[wi, wc] = B[wc]
"""


@pytest.mark.parametrize(
    ("written", "read", "moves"), [("21", "21", True), ("21", "19", True), ("21", "22", False), ("21 - i", "21", False)]
)
def test_an_allocation_moves_where_reads_end_with_the_writes(written: str, read: str, *, moves: bool) -> None:
    text = GUARDED.replace("WRITTEN", written).replace("READ", read)
    lines = str(place_allocations(parse_program(text))).splitlines()
    alloc, loop = [next(n for n, line in enumerate(lines) if word in line) for word in ("alloc", "for i")]
    assert (alloc > loop) == moves


PIECES = """
def main(A: f32[4, 60], C: f32[4, 60]):
    B = alloc("global", f32[4, 60])
    for i in range(0, 4):
        for p in range(0, 3):
            for a in range(0, 3):
                for b in range(0, 8):
                    with block("B", vi=spatial(4, i), vb=spatial(60, p * 16 + a * 8 + b), where=(WRITTEN)):
                        reads(A[vi, vb])
                        writes(B[vi, vb])
                        B[vi, vb] = A[vi, vb] * 2.0
            for t in range(0, 4):
                for c in range(0, 16):
                    with block("C", wi=spatial(4, i), wc=spatial(48, p * 16 + c), wt=reduce(4, t), where=(p * 16 + c < 45)):
                        reads(B[wi, wc + wt * 2])
                        writes(C[wi, wc])
                        with init():
                            C[wi, wc] = 0.0
                        C[wi, wc] = C[wi, wc] + B[wi, wc + wt * 2]
"""


@pytest.mark.parametrize(
    ("written", "moves"),
    [
        ("a * 8 + b < 22", True),
        ("a * 8 + b < 22 and p * 16 + a * 8 + b < 52", False),
        ("a * 8 + b < 22 and p * 16 + a * 8 + b < 60", True),
        ("a * 8 + b < 21", False),
        ("p * 8 + a * 8 + b < 38", True),
        ("p * 8 + a * 8 + b < 37", False),
    ],
)
def test_an_allocation_moves_where_each_piece_is_written_as_far_as_it_is_read(written: str, *, moves: bool) -> None:
    """A limit is one of an index, or of its position in the range of the inner loops."""
    lines = str(place_allocations(parse_program(PIECES.replace("WRITTEN", written)))).splitlines()
    alloc, loop = [next(n for n, line in enumerate(lines) if word in line) for word in ("alloc", "for p")]
    assert (alloc > loop) == moves


INTERLEAVED = """
def main(A: f32[2, 11, 8], C: f32[2, 11, 8]):
    B = alloc("register", f32[2, 11, 8])
    for i in range(0, 2):
        for k in range(0, 6):
            for a in unrolled(0, 2):
                for x in vectorized(0, 8):
                    with block("B", vi=spatial(2, i), vj=spatial(11, a * 6 + k), vx=spatial(8, x), where=(a * 6 + k < WRITTEN)):
                        reads(A[vi, vj, vx])
                        writes(B[vi, vj, vx])
                        B[vi, vj, vx] = A[vi, vj, vx] * 2.0
            for b in unrolled(0, EXTENT):
                for y in range(0, 2):
                    for z in vectorized(0, 4):
                        with block("C", wi=spatial(2, i), wj=spatial(11, INDEX), wx=spatial(8, y * 4 + z), where=(INDEX < READ)):
                            reads(B[wi, wj, wx])
                            writes(C[wi, wj, wx])
                            C[wi, wj, wx] = B[wi, wj, wx] + 1.0
"""


@pytest.mark.parametrize(
    ("index", "extent", "written", "read", "moves"),
    [
        pytest.param("k + b * 6", 2, 11, 11, True, id="the same lines, by another sum"),
        pytest.param("k + b * 6", 2, 9, 9, True, id="the same guard, by another sum"),
        pytest.param("k + b * 6", 2, 9, 10, False, id="a guard that leaves in what is not written"),
        pytest.param("b * 5 + k", 2, 11, 11, False, id="lines of another distance"),
        pytest.param("b * 6 + k", 3, 11, 11, False, id="more lines"),
        pytest.param("max(b * 6 + k - 1, 0)", 2, 11, 11, False, id="a line that another iteration wrote"),
    ],
)
def test_lines_of_a_tile_at_a_distance_are_written_and_read_in_the_same_iteration(
    index: str, extent: int, written: int, read: int, *, moves: bool
) -> None:
    """They are no range of indices, so that those of both blocks are compared; along the last axis ranges are."""
    text = INTERLEAVED.replace("INDEX", index).replace("EXTENT", str(extent))
    text = text.replace("WRITTEN", str(written)).replace("READ", str(read))
    lines = str(place_allocations(parse_program(text))).splitlines()
    alloc, loop = [next(n for n, line in enumerate(lines) if word in line) for word in ("alloc", "for k")]
    assert (alloc > loop) == moves


SHARED = """
def main(A: f32[4, 4], C: f32[4, 4]):
    B = alloc("global", f32[4, 8])
    for i in range(0, 4):
        for a in range(0, 4):
            with block("B", va=spatial(4, a), vb=spatial(8, a + i)):
                writes(B[va, vb])
                B[va, vb] = A[i, va]
        for b in range(0, 4):
            for j in range(0, 4):
                with block("C", wb=spatial(4, b), wj=spatial(8, j + i)):
                    reads(B[wb, wj])
                    writes(C[i, wb])
                    C[i, wb] = B[wb, wj]
"""


def test_a_diagonal_that_is_written_is_no_box() -> None:
    """Both its indices run through one loop, so that the ranges of each by itself say more than is written."""
    lines = str(place_allocations(parse_program(SHARED))).splitlines()
    alloc, loop = [next(n for n, line in enumerate(lines) if word in line) for word in ("alloc", "for i")]
    assert alloc < loop


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


GROUPED = """
def main(A: f32[2, 8], C: f32[24]):
    for g in range(0, 4):
        for i in range(0, 6):
            if g * 6 + i < 20:
                C[g * 6 + i] = A[(g * 6 + i) // 20, 3]
"""


def test_indices_are_simplified_by_the_guard_around_them() -> None:
    """Of the last tile of rows of a group, a guard leaves those of the group: no row of it is in another."""
    assert "C[g * 6 + i] = A[3]" in str(flatten_buffers(parse_program(GROUPED)))


BRANCHES = """
def main(A: f32[2, 8], C: f32[24]):
    for g in range(0, 4):
        for i in range(0, 6):
            if g * 6 + i < 20:
                C[g * 6 + i] = A[(g * 6 + i) // 20, 3]
            else:
                C[g * 6 + i] = A[(g * 6 + i) // 20, 3]
            C[g * 6 + i] = A[(g * 6 + i) // 20, 3]
"""

CHANGED = """
def main(A: f32[4, 4], C: f32[16]):
    at = alloc("register", i64[1])
    at[0] = 4
    for i in range(0, 4):
        if i < at[0]:
            at[0] = 1
            C[i] = A[min(i, at[0]), 3]
"""


def test_a_condition_holds_in_its_branch_alone() -> None:
    lines = str(flatten_buffers(parse_program(BRANCHES))).splitlines()
    inside, *others = [line.split(" = ")[1] for line in lines if "A[" in line]
    assert inside == "A[3]"
    assert others == ["A[(g * 6 + i) // 20 * 8 + 3]"] * 2


def test_nothing_is_known_of_memory_that_a_branch_changes() -> None:
    assert "C[i] = A[min(i, at[0]) * 4 + 3]" in str(flatten_buffers(parse_program(CHANGED)))


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
