"""Short steps of a register tile's reduction are several in one iteration of its loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lower.running import before_and_after

from weft.loop import For, parse_program, statements
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
    """The extents of the loops over steps."""
    program = unroll_reductions(parse_program(text), target)
    return [str(s.extent) for s in statements(program.entry.body) if isinstance(s, For) and s.var.name.startswith("k")]


def test_four_steps_an_iteration(golden: Callable[[str], None]) -> None:
    golden(before_and_after(tile(8), lambda p: unroll_reductions(p, AVX2)))


@pytest.mark.parametrize(
    ("depth", "rows", "found"),
    [
        (64, 12, ["16", "4"]),
        (6, 12, ["3", "2"]),
        (64, 20, ["32", "2"]),
        (7, 12, ["7"]),
        (4, 12, ["2", "2"]),
        (64, 40, ["64"]),
    ],
)
def test_as_many_as_divide_the_reduction_and_stay_short(depth: int, rows: int, found: list[str]) -> None:
    assert extents(tile(depth, rows)) == found


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
    """LLVM keeps the elements that the next step reads again: beside 9 sums and three vectors there is room for three."""
    assert extents(windows(3, 3)) == ["2", "2"]
    assert extents(windows(4, 3)) == ["4"]
    assert extents(windows(4, 3, apart=8)) == ["2", "2"]


def test_loops_of_others_stay() -> None:
    assert extents(tile(64), cpu("avx512")) == ["64"]
    assert extents(tile(64, more="\n        C[0] = 0.0")) == ["64"]
