"""Schedules that the fuzzing has found to go wrong once, each reduced to the few steps that it takes."""

from __future__ import annotations

from tests.schedule.programs import gather, matmul, stencil
from tests.schedule.running import check

from weft.loop.nodes import For, LoopKind
from weft.loop.visit import statements
from weft.schedule import Schedule


def test_a_padded_copy_is_placed() -> None:
    """The copy was guarded, and placing it lost the guard: it read beyond its source."""
    case = gather(6, 5)
    s = Schedule(case.program)
    block = s.block("A")
    copy = s.pack(block, "X", "i -> i // 4, i % 4", "local")
    s.compute_at(copy, s.loops(block)[0])
    check(case, s.program)


def test_a_padded_copy_of_a_stencil_is_placed() -> None:
    case = stencil(7)
    s = Schedule(case.program)
    block = s.block("B")
    copy = s.pack(block, "A", "i -> i % 4, i // 4", "local")
    s.compute_at(copy, s.loops(block)[0])
    check(case, s.program)


def test_results_of_bound_loops_are_started_by_the_same_threads() -> None:
    """The loop that starts the results was bound, to no axis."""
    case = matmul()
    s = Schedule(case.program)
    block = s.block("C")
    i, j, k = s.loops(block)
    s.bind(i, "blockIdx.x")
    s.bind(j, "threadIdx.x")
    s.decompose_reduction(block, i)
    check(case, s.program)
    bound = [f for f in statements(s.function.body) if isinstance(f, For) and f.kind is LoopKind.BOUND]
    assert [dict(f.annotations)["thread"] for f in bound] == ["blockIdx.x", "threadIdx.x"] * 2
