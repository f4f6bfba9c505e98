"""Short steps of a register tile's reduction are several in one iteration of its loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lower.running import before_and_after

from weft.loop import For, LoopKind, parse_program, print_program, statements
from weft.lower.loops.unroll_reductions import unroll_reductions
from weft.targets import Target, cpu

AVX2 = cpu("avx2")


def tile(depth: int, rows: int = 3, more: str = "") -> str:
    """A tile of *rows* vectors over *depth* steps."""
    return f"""
def main(A: f32[{rows * depth}], B: f32[{8 * depth}], C: f32[{8 * rows}]):
    T = alloc("register", f32[{8 * rows}])
    for i in unrolled(0, {rows}):
        T[ramp(i * 8, 1, 8)] = broadcast(0.0, 8)
    for k in range(0, {depth}, prefetch=(B, 6)):{more}
        for i in unrolled(0, {rows}):
            T[ramp(i * 8, 1, 8)] = T[ramp(i * 8, 1, 8)] + broadcast(A[i * {depth} + k], 8) * B[ramp(k * 8, 1, 8)]
    for i in unrolled(0, {rows}):
        C[ramp(i * 8, 1, 8)] = T[ramp(i * 8, 1, 8)]
"""


def extents(text: str, target: Target = AVX2) -> list[str]:
    """The extents of the loops over steps, with a plus sign for unrolled ones."""
    found = statements(unroll_reductions(parse_program(text), target).entry.body)
    loops = [s for s in found if isinstance(s, For) and s.var.name.startswith("k")]
    return [f"{s.extent}{'+' if s.kind is LoopKind.UNROLLED else ''}" for s in loops]


def test_four_steps_an_iteration(golden: Callable[[str], None]) -> None:
    golden(before_and_after(tile(8), lambda p: unroll_reductions(p, AVX2)))


@pytest.mark.parametrize(
    ("depth", "rows", "found"),
    [
        (64, 12, ["16", "4+"]),
        (6, 12, ["2", "3+"]),
        (64, 20, ["32", "2+"]),
        (63, 20, ["63"]),
        (35, 8, ["5", "7+"]),
        (25, 12, ["5", "5+"]),
        (11, 5, ["11"]),
        (67, 12, ["16", "4+", "3+"]),
        (67, 16, ["16", "4+", "3+"]),
        (7, 12, ["7"]),
        (64, 40, ["64"]),
    ],
)
def test_as_many_as_divide_the_reduction_and_stay_short(depth: int, rows: int, found: list[str]) -> None:
    assert extents(tile(depth, rows)) == found


@pytest.mark.parametrize("depth", [2, 3, 4, 5, 7])
def test_a_loop_of_few_steps_is_unrolled_as_a_whole(depth: int) -> None:
    assert extents(tile(depth, 9).replace(", prefetch=(B, 6)", "")) == [f"{depth}+"]


def test_prefetches_stay_with_a_loop() -> None:
    assert extents(tile(4, 9)) == ["1", "4+"]
    assert "prefetch=(B, 2)" in print_program(unroll_reductions(parse_program(tile(4, 9)), AVX2))


def test_the_loop_around_few_steps_is_innermost_then() -> None:
    text = """
def main(A: f32[64], B: f32[192], C: f32[64]):
    T = alloc("register", f32[64])
    for k in range(0, 12):
        for k1 in range(0, 2):
            for i in unrolled(0, 8):
                T[ramp(i * 8, 1, 8)] = T[ramp(i * 8, 1, 8)] + broadcast(A[i * 8 + k1], 8) * B[ramp(k * 16 + k1 * 8, 1, 8)]
    for i in unrolled(0, 8):
        C[ramp(i * 8, 1, 8)] = T[ramp(i * 8, 1, 8)]
"""
    assert extents(text) == ["3", "4+", "2+"]


def windows(rows: int, columns: int, apart: int = 1) -> str:
    """A tile of *rows* neighbouring windows by *columns* vectors over 4 taps, *apart* elements from window to window."""
    return f"""
def main(A: f32[{rows * apart + 4}], B: f32[{4 * 8 * columns}], C: f32[{8 * rows * columns}]):
    T = alloc("register", f32[{8 * rows * columns}])
    for k in range(0, 4):
        for i in unrolled(0, {rows}):
            for j in unrolled(0, {columns}):
                T[ramp((i * {columns} + j) * 8, 1, 8)] = T[ramp((i * {columns} + j) * 8, 1, 8)] + (
                    broadcast(A[i * {apart} + k], 8) * B[ramp((k * {columns} + j) * 8, 1, 8)]
                )
    for i in unrolled(0, {rows * columns}):
        C[ramp(i * 8, 1, 8)] = T[ramp(i * 8, 1, 8)]
"""


def test_taps_of_neighbouring_windows_stay_apart_where_registers_are_full() -> None:
    """LLVM keeps the elements that the next step reads again: beside 9 sums and three vectors there is room for three.

    One of five beside 10 sums and two vectors is loaded when it is multiplied with.
    """
    assert extents(windows(3, 3)) == ["4+"]
    assert extents(windows(5, 2)) == ["4+"]
    assert extents(windows(4, 3)) == ["4"]
    assert extents(windows(6, 2)) == ["4"]
    assert extents(windows(4, 3, apart=2)) == ["2", "2+"]  # the step after the next is the first to read one again
    assert extents(windows(2, 3, apart=2)) == ["4+"]
    assert extents(windows(4, 3, apart=8)) == ["4+"]


def test_sums_beyond_the_registers_stay_in_loops() -> None:
    assert extents(tile(3, 17)) == ["3"]
    assert extents(tile(3, 16)) == ["1", "3+"]


def test_steps_that_read_strided_vectors_share_loads() -> None:
    strided = tile(9, 5).replace("B[ramp(k * 8, 1, 8)]", "B[ramp(k, 2, 8)]")
    assert extents(strided) == ["9"]
    assert extents(strided.replace("range(0, 9", "range(0, 8")) == ["2", "4+"]


def test_loops_of_others_stay() -> None:
    assert extents(tile(64), cpu("avx512")) == ["64"]
    assert extents(tile(64, more="\n        C[0] = 0.0")) == ["64"]
