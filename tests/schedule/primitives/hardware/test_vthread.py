"""`vthread`: iterations of a loop become virtual threads, whose statements take turns in one stream of instructions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lower.threaded import bind_threads_of, check_threads
from tests.schedule.compiling import check_compiled, lowered
from tests.schedule.programs import (
    CASES,
    Case,
    argmax,
    blur,
    conv2d,
    matmul,
    recurrence,
    rows,
    stencil,
    symbolic_matmul,
    symbolic_rows,
)
from tests.schedule.running import refusal, transition

from weft.loop import For, Stmt, statements
from weft.lower import lower
from weft.lower.units.inject_virtual_threads import is_vthread
from weft.schedule import LoopRef, Schedule
from weft.support.errors import ScheduleError
from weft.targets.grid_machines import GENERIC_THREADS


def halves() -> tuple[Case, Schedule, LoopRef]:
    """A product whose columns are shared out between two threads, with copies of both sides."""
    case = matmul(4, 6, 8)
    s = Schedule(case.program)
    block = s.block("C")
    i, j, k = s.loops(block)
    v, j1 = s.split(j, [2, None])
    s.reorder([v, i, k, j1])
    for name in ("B", "A"):
        s.compute_at(s.cache_read(block, name, "local"), i)
    return case, s, v


def test_two_halves(golden: Callable[[str], None]) -> None:
    case, s, v = halves()
    before = s.program
    s.vthread(v)
    check_compiled(case, s.program)
    golden(transition(before, s.program))


def test_lowered(golden: Callable[[str], None]) -> None:
    """Each thread has its columns of B; the row of A is the same for both, and copied once."""
    _, s, v = halves()
    s.vthread(v)
    golden(str(lowered(s.program)))


def test_it_is_what_bind_does() -> None:
    _, s, v = halves()
    _, t, w = halves()
    s.vthread(v)
    t.bind(w, "vthread")
    assert str(s) == str(t)


# -- where it stands, and what is in it ----------------------------------------------------------------------------------


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("level", [0, 1])
def test_every_loop_that_allows_it(name: str, level: int) -> None:
    """Wherever a loop of any computation can be shared out among threads, its program computes the same."""
    case = CASES[name]()
    s = Schedule(case.program)
    for b in s.blocks():
        loops = s.loops(b)
        if level < len(loops) and s.extent(loops[level]) is not None:
            try:
                s.vthread(loops[level])
            except ScheduleError:
                continue
    flat = check_compiled(case, s.program)
    assert not any(is_vthread(x) for x in statements(flat.entry.body))


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_a_split_with_a_remainder(factor: int) -> None:
    case = matmul(5, 7, 3)
    s = Schedule(case.program)
    v, _ = s.split(s.loops(s.block("C"))[1], [factor, None])
    s.vthread(v)
    check_compiled(case, s.program)


def test_threads_inside() -> None:
    """Threads next to each other: they share what is around them and are written out in the innermost loop."""
    case = matmul(4, 8, 3)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    _, v = s.split(j, [None, 4])
    s.reorder([k, i])
    s.vthread(v)
    flat = check_compiled(case, s.program)
    assert all(f.extent.value != 4 or f.var.name != "j_1" for f in _loops(flat.entry.body))  # type: ignore[attr-defined]


def test_nested_threads(golden: Callable[[str], None]) -> None:
    case = matmul(4, 4, 3)
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    outer, _, inner, _ = s.tile([i, j], [2, 2])
    s.vthread(outer)
    s.vthread(inner)
    check_compiled(case, s.program)
    golden(str(lowered(s.program)))


def test_one_thread() -> None:
    case = matmul(4, 4, 3)
    s = Schedule(case.program)
    v, _ = s.split(s.loops(s.block("C"))[0], [1, None])
    s.vthread(v)
    check_compiled(case, s.program)


def test_intermediate_results_are_each_threads_own() -> None:
    """The halo is computed by each thread for itself, in memory of its own."""
    case = blur(6, 6)
    s = Schedule(case.program)
    i, _ = s.loops(s.block("B"))
    v, _ = s.split(i, [2, None])
    s.compute_at(s.block("A"), v)
    s.vthread(v)
    assert "A_1 = alloc" in str(check_compiled(case, s.program))


def test_placing_into_threads_afterwards() -> None:
    case = stencil()
    s = Schedule(case.program)
    (i,) = s.loops(s.block("C"))
    v, rest = s.split(i, [3, None])
    s.vthread(v)
    s.compute_at(s.block("B"), rest)
    s.compute_at(s.block("A"), v)
    check_compiled(case, s.program)


def test_double_buffers_in_threads() -> None:
    case, s, v = halves()
    s.double_buffer(s.block("B_local"), s.loops(s.block("C"))[1])
    s.vthread(v)
    flat = str(check_compiled(case, s.program))
    assert "B_local_1 = alloc" in flat
    assert "i % 2" in flat


def test_threads_in_a_parallel_loop_with_vectors_inside() -> None:
    case = matmul(4, 32, 8)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    v, j0, j1 = s.split(j, [2, 2, 8])
    s.reorder([i, v, j0, k, j1])
    s.parallel(i)
    s.vthread(v)
    s.vectorize(j1)
    flat = str(check_compiled(case, s.program))
    assert flat.count("ramp(") >= 4


def test_an_unrolled_loop_around_padded_windows() -> None:
    case = conv2d()
    s = Schedule(case.program)
    q, *_, b = s.loops(s.block("Y"))
    s.unroll(b)
    v, _ = s.split(q, [2, None])
    s.vthread(v)
    s.compute_inline(s.block("P"))
    check_compiled(case, s.program)


def test_reductions_of_several_values() -> None:
    case = argmax()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("top"))
    s.vthread(i)
    check_compiled(case, s.program)


def test_reductions_that_were_taken_apart() -> None:
    case = matmul(4, 8, 6)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    v, _ = s.split(j, [2, None])
    s.reorder([v, i])
    s.decompose_reduction(s.block("C"), k)
    s.vthread(v)
    check_compiled(case, s.program)


def test_rows_that_are_several_stages_long() -> None:
    case = rows()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("out"))
    for name in ("total", "apart", "most"):
        s.compute_at(s.block(name), i)
    s.vthread(i)
    check_compiled(case, s.program)


def test_symbolic_loops_inside() -> None:
    """Only the number of threads must be known."""
    case = symbolic_rows()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("B"))
    _, v = s.split(i, [None, 2])
    s.vthread(v)
    check_compiled(case, s.program)


def test_states_of_a_recurrence() -> None:
    case = recurrence()
    s = Schedule(case.program)
    for name in ("G", "out"):
        s.vthread(s.loops(s.block(name))[-2 if name == "G" else -1])
    check_compiled(case, s.program)


def test_the_trace_repeats_it() -> None:
    case, s, v = halves()
    s.vthread(v)
    again = Schedule(case.program)
    exec(str(s.trace), {"s": again})
    assert str(again) == str(s)
    assert str(s.trace).endswith("s.vthread(j_0)")


# -- on a grid of threads ------------------------------------------------------------------------------------------------


def test_columns_a_stride_apart_on_a_grid(golden: Callable[[str], None]) -> None:
    """Each thread of a block computes two columns; a tile of the left side is fetched once for both."""
    case = matmul(4, 32, 16)
    s = Schedule(case.program)
    block = s.block("C")
    i, j, k = s.loops(block)
    b, v, t = s.split(j, [None, 2, 8])
    k0, k1 = s.split(k, [None, 8])
    s.reorder([b, v, k0, t, i, k1])
    s.bind(b, "blockIdx.x")
    s.bind(t, "threadIdx.x")
    for name in ("A", "B"):
        copy = s.cache_read(block, name, "shared")
        s.compute_at(copy, k0)
        bind_threads_of(s, copy, "threadIdx.x")
    s.vthread(v)
    assert check_threads(case, s.program).of_buffer["A"] == 2 * 2 * 4  # blocks, tiles, rows of 8 elements
    golden(str(lower(s.program, GENERIC_THREADS)))


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_refused_along_a_reduction(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.vthread(s.loops(s.block("C"))[2])))


def test_refused_for_an_unknown_number(golden: Callable[[str], None]) -> None:
    s = Schedule(symbolic_matmul().program)
    golden(refusal(lambda: s.vthread(s.loops(s.block("C"))[0])))


def test_refused_along_time(golden: Callable[[str], None]) -> None:
    s = Schedule(recurrence().program)
    golden(refusal(lambda: s.vthread(s.loops(s.block("G"))[0])))


def test_refused_for_a_loop_that_is_parallel(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    i, *_ = s.loops(s.block("C"))
    s.parallel(i)
    golden(refusal(lambda: s.vthread(i)))


def test_refused_where_threads_would_share_results() -> None:
    """What the next row reads of this one's results is written by another thread."""
    s = Schedule(blur().program)
    i, _ = s.loops(s.block("B"))
    s.compute_at(s.block("A"), i)
    s.rolling_buffer(s.block("A"), i)
    with pytest.raises(ScheduleError, match="A"):
        s.vthread(i)


def test_fusing_threads_with_a_reduction_is_refused() -> None:
    s = Schedule(matmul().program)
    _, j, k = s.loops(s.block("C"))
    s.vthread(j)
    with pytest.raises(ScheduleError, match="the loop j is bound already"):
        s.fuse([j, k])


def _loops(body: Stmt) -> list[For]:
    return [x for x in statements(body) if isinstance(x, For)]
