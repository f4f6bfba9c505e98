"""Schedules that the fuzzing, or a planted bug, has found to go wrong once, each reduced to the few steps that it takes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.schedule import programs
from tests.schedule.compiling import check_compiled
from tests.schedule.products import product
from tests.schedule.programs import gather, matmul, stencil
from tests.schedule.running import check

from weft import te
from weft.ir import Var, all_of, select
from weft.loop import For, LoopKind, Thread, statements
from weft.schedule import Schedule
from weft.support.dtypes import f32
from weft.support.errors import ScheduleError


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
    i, j, _ = s.loops(block)
    s.bind(i, "blockIdx.x")
    s.bind(j, "threadIdx.x")
    s.decompose_reduction(block, i)
    check(case, s.program)
    bound = [f for f in statements(s.function.body) if isinstance(f, For) and f.kind is LoopKind.BOUND]
    assert [f.notes for f in bound] == [(Thread("blockIdx.x"),), (Thread("threadIdx.x"),)] * 2


def test_a_consumer_that_reads_beyond_its_producer_stays() -> None:
    """A padded read covers a box that is larger than what is made: in the producer's loops, the rest was never written."""
    x = te.placeholder((4,), f32, "X")
    a = te.compute((4,), lambda i: x[i] + 1.0, "A")
    b = te.compute((7,), lambda i: select(all_of([i >= 2, i < 6]), a[i - 2], -5.0), "B")
    case = programs.case([x], [b], lambda v: [np.pad(v + 1, (2, 1), constant_values=-5)])
    s = Schedule(case.program)
    with pytest.raises(ScheduleError, match="B does not read each element of a box of A once"):
        s.reverse_compute_inline(s.block("B"))


def test_vectors_in_a_vectorized_loop() -> None:
    """Lanes of the inner loop were taken for those of the outer, where both have the same number."""
    case = product(3, 16, 8)
    s = Schedule(case.program)
    block = s.block("C")
    _, j, k = s.loops(block)
    s.vectorize(j)
    s.rfactor(block, k)
    s.vectorize(k)
    check_compiled(case, s.program)


def test_prefetches_on_both_sides_of_a_condition() -> None:
    """The address that the one side had computed was used on the other."""
    case = matmul(7, 4, 5)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.reorder([i, k, j])
    s.prefetch(k, "A", 2)
    s.vectorize(i)
    check_compiled(case, s.program)


def test_what_threads_have_is_combined_once() -> None:
    s = Schedule(programs.argmax(4, 8).program)
    block = s.block("top")
    _, k = s.loops(block)
    k0, _ = s.split(k, [None, 4])
    s.cross_thread_reduce(block, k0, "threadIdx.y")
    with pytest.raises(ScheduleError, match="top combines what threads have already"):
        s.cross_thread_reduce(block, s.loops(block)[1], "threadIdx.y")


@pytest.mark.parametrize("kind", ["parallel", "vectorize"])
def test_two_places_stay_within_iterations_that_run_apart(kind: str) -> None:
    """The places were made outside of a loop inside, whose iterations then shared them."""
    case = programs.bias_relu(4, 6, 3)
    s = Schedule(case.program)
    c, (i, j) = s.block("C"), s.loops(s.block("D"))
    s.compute_at(c, j)
    s.double_buffer(c, j)
    s.apply(kind, i)
    s.reorder([j, i])
    check_compiled(case, s.program)


def test_a_block_inside_another_is_not_inlined_into_what_came_before() -> None:
    s = Schedule(matmul().program)
    block = s.block("C")
    s.blockize(s.loops(block)[1])
    with pytest.raises(ScheduleError, match="it is inside the block C_o"):
        s.reverse_compute_inline(s.block("C_init"))


def test_vectors_that_begin_in_the_middle_of_a_row() -> None:
    """A vector of four from the element 18 on crosses the row's end at 20, although rows hold whole vectors."""
    x = te.placeholder((4, 6), f32, "X")
    y = te.compute((24,), lambda i: x[i % 4, i // 4] + 1.0, "Y")
    case = programs.case([x], [y], lambda v: [v.T.reshape(-1) + 1])
    s = Schedule(case.program)
    _, middle, _ = s.partition(s.loops(s.block("Y"))[0], [2, 22])
    s.vectorize(middle)
    check_compiled(case, s.program)


def test_a_guard_for_a_part_stays_with_its_loops() -> None:
    """New loops ran all instances, of which the guard had left one: the last of them won."""
    x = te.placeholder((4, 5), f32, "X")
    first = te.compute((1, 5), lambda q, i: x[0, i], "first")
    y = te.compute((3, 5), lambda p, i: first[0, i] + x[p, i], "Y")
    case = programs.case([x], [y], lambda v: [v[:1] + v[:3]])
    s = Schedule(case.program)
    copy = s.cache_read(s.block("first"), "X", "global")
    s.reverse_compute_inline(s.block("first"))
    check(case, s.program)
    with pytest.raises(ScheduleError, match="leaves out instances that new loops would run"):
        s.compute_at(copy, s.loops(s.block("Y"))[0])


def test_lanes_without_memory_of_their_own_do_nothing() -> None:
    """A remainder of five became eight masked lanes, three of which read memory that no iteration has."""
    x = te.placeholder((5, 3), f32, "X")
    y = te.compute((5, 3), lambda i, j: x[i, j] + 1.0, "Y")
    z = te.compute((5, 3), lambda i, j: y[i, j] * 2.0 + y[4 - i, j], "Z")
    case = programs.case([x], [z], lambda v: [(v + 1) * 2 + (v + 1)[::-1]])
    s = Schedule(case.program)
    i, _ = s.loops(s.block("Z"))
    s.compute_at(s.block("Y"), i)
    s.double_buffer(s.block("Y"), i)
    s.vectorize(i)
    check_compiled(case, s.program)


def test_a_guard_on_sizes_alone_is_no_bound_of_a_loop() -> None:
    """What a pipeline finishes with was guarded by the size alone, from which a loop of no digits was made."""
    n = Var("n")
    x = te.placeholder((n, 4), f32, "X")
    c = te.compute((n, 4), lambda i, j: x[i, j] * 2.0, "C")
    d = te.compute((n, 4), lambda i, j: c[i, j] + 1.0, "D")
    case = programs.case([x], [d], lambda v: [v * 2 + 1], n=5)
    s = Schedule(case.program)
    i, _ = s.loops(s.block("D"))
    i0, i1 = s.split(i, [None, 2])
    s.compute_at(s.block("C"), i1)
    s.software_pipeline(s.fuse([i0, i1]), [0, 1])
    [j] = s.loops(s.block("D_1"))
    s.vectorize(j)
    check_compiled(case, s.program)
