"""Reductions by the threads of a block: a few wide steps in shared memory, or trees through the registers of a warp."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.lower.threaded import barriers, check_threads, run_case, without_barrier
from tests.schedule.programs import Case, argmax, case, rows, symbolic_rows

from weft import te
from weft.codegen.interp.threads.races import RaceError
from weft.codegen.interp.threads.thread_machine import run_threads
from weft.ir import apply
from weft.loop import print_program
from weft.lower import lower
from weft.schedule import Schedule
from weft.support.dtypes import f32
from weft.support.knobs import Switches
from weft.targets.grid_machines import GENERIC_THREADS, WITHOUT_SHUFFLES

Golden = Callable[[str], None]


def sums(n: int, m: int) -> Case:
    x, k = te.placeholder((n, m), f32, "X"), te.reduce_axis(m, "k")
    t = te.compute((n,), lambda i: te.sum_(x[i, k], [k]), "total")
    return case([x], [t], lambda a: [a.sum(1)])


def by_threads(shape: Case, threads: int, rows_at_once: int = 1) -> Schedule:
    """A row a block, or several; each row by *threads* threads along x."""
    s = Schedule(shape.program)
    total = s.block("total")
    i, k = s.loops(total)
    _, inner = s.split(k, [None, threads])
    block, row = s.split(i, [None, rows_at_once])
    s.cross_thread_reduce(total, inner)
    s.bind(block, "blockIdx.x")
    if rows_at_once > 1:
        s.bind(row, "threadIdx.y")
    return s


def test_a_warp_exchanges_registers(golden: Golden) -> None:
    shape = sums(3, 100)
    flat = lower(by_threads(shape, 32).program, GENERIC_THREADS, verify=True)
    golden(print_program(flat))
    counters = run_case(shape, flat)
    assert (counters.barriers, counters.warp_barriers, counters.turns) == (0, 0, 0)
    assert counters.shuffles == 3 * 6


@pytest.mark.parametrize("warps", [2, 4, 8, 32])
def test_several_warps_exchange_one_result_each(warps: int) -> None:
    """Each warp by itself first; then there is one barrier, behind which all results of warps are read."""
    shape = sums(2, 1500)
    counters = check_threads(shape, by_threads(shape, 32 * warps).program)
    assert (counters.barriers, counters.ways, counters.shuffles) == (2, 1, 2 * 5 * warps)


def test_each_barrier_of_a_warp_is_needed() -> None:
    shape = sums(1, 40)
    flat = lower(by_threads(shape, 32).program, GENERIC_THREADS, Switches(passes=("lower_warp_memory=off",)))
    assert len(barriers(flat)) == 5
    for number in range(5):
        with pytest.raises(RaceError, match="total_row"):
            run_case(shape, without_barrier(flat, number))


def test_without_shuffles_through_shared_memory(golden: Golden) -> None:
    shape = sums(3, 100)
    flat = lower(by_threads(shape, 32).program, WITHOUT_SHUFFLES, verify=True)
    golden(print_program(flat))
    counters = run_case(shape, flat)
    assert (counters.barriers, counters.warp_barriers, counters.ways) == (3 * 2, 0, 1)


def test_each_barrier_is_needed() -> None:
    shape = sums(1, 40)
    flat = lower(by_threads(shape, 32).program, WITHOUT_SHUFFLES)
    assert len(barriers(flat)) == 2
    for number in range(2):
        with pytest.raises(RaceError, match="total_row"):
            run_case(shape, without_barrier(flat, number), WITHOUT_SHUFFLES)


@pytest.mark.parametrize(("threads", "steps"), [(2, 1), (5, 1), (7, 1), (24, 2), (33, 2), (100, 2), (128, 2)])
def test_any_number_of_threads(threads: int, steps: int) -> None:
    """Up to 16 values are combined by one thread, more by several first, of which each takes about as many as are left."""
    shape = sums(2, 130)
    counters = check_threads(shape, by_threads(shape, threads).program, WITHOUT_SHUFFLES)
    assert counters.barriers == 2 * steps


def test_all_threads_make_the_last_step_of_a_result_of_their_own() -> None:
    n, m = 3, 128
    x, k = te.placeholder((n, m), f32, "X"), te.reduce_axis(m, "k")
    t = te.compute((n,), lambda i: te.sum_(x[i, k], [k]), "total")
    y = te.compute((n, m), lambda i, j: x[i, j] - t[i], "Y")
    shape = case([x], [y], lambda a: [a - a.sum(1, keepdims=True)])
    waits = {}
    for scope in ("local", "shared"):
        s = Schedule(shape.program)
        i, j = s.loops(s.block("Y"))
        total = s.block("total")
        s.compute_at(total, i)
        s.set_scope(total, scope)
        s.cross_thread_reduce(total, s.loops(total)[1])
        s.bind(j, "threadIdx.x")
        s.bind(i, "blockIdx.x")
        counters = check_threads(shape, s.program, WITHOUT_SHUFFLES)
        assert counters.ways == 1
        waits[scope] = counters.barriers
    assert waits == {"local": n * 2, "shared": n * 3}


@pytest.mark.parametrize("threads", [3, 5, 7, 24, 33])
def test_halves_of_any_number(threads: int) -> None:
    """Of an odd number, the value in the middle waits: the thread that takes it next may do so without a barrier."""
    shape = sums(2, 130)
    check_threads(shape, by_threads(shape, threads).program, GENERIC_THREADS)


@pytest.mark.parametrize(("threads", "at_once"), [(32, 4), (16, 4), (8, 3)])
def test_several_rows_at_once(threads: int, at_once: int) -> None:
    """A row is a warp of its own, or shares it with others: then through rows of shared memory, and one warp waits as such."""
    shape = sums(10, 70)
    counters = check_threads(shape, by_threads(shape, threads, at_once).program)
    is_of_warps = threads == 32 or threads * at_once <= 32
    assert (counters.barriers == 0) == is_of_warps
    assert (counters.warp_barriers + counters.shuffles > 0) == is_of_warps


def test_rows_that_all_read_one_result() -> None:
    """One row of threads reduces, and all rows use the result: not through the memory of a warp."""
    n, m = 2, 64
    x, k = te.placeholder((n, m), f32, "X"), te.reduce_axis(m, "k")
    t = te.compute((n,), lambda i: te.sum_(x[i, k], [k]), "total")
    y = te.compute((n, m), lambda i, j: x[i, j] - t[i], "Y")
    shape = case([x], [y], lambda a: [a - a.sum(1, keepdims=True)])
    for scope in ("local", "shared"):
        s = Schedule(shape.program)
        i, j = s.loops(s.block("Y"))
        row, lane = s.split(j, [2, 32])
        total = s.block("total")
        s.compute_at(total, i)
        s.set_scope(total, scope)
        s.cross_thread_reduce(total, s.split(s.loops(total)[1], [None, 32])[1])
        for f, axis in ((row, "threadIdx.y"), (lane, "threadIdx.x"), (i, "blockIdx.x")):
            s.bind(f, axis)
        counters = check_threads(shape, s.program)
        assert (counters.warp_barriers, counters.shuffles) == (0, 0)


def softmax_of_threads(s: Schedule, last: str, middle: str | None, threads: int, reductions: tuple[str, ...]) -> None:
    """A row a block: every step of it by the threads of the block."""
    i, j = s.loops(s.block(last))
    _, lane = s.split(j, [None, threads])
    for name in reductions:
        block = s.block(name)
        s.compute_at(block, i)
        s.set_scope(block, "shared")
        _, inner = s.split(s.loops(block)[1], [None, threads])
        s.cross_thread_reduce(block, inner)
        if middle is not None and name == reductions[0]:
            s.compute_at(s.block(middle), i)
            s.set_scope(s.block(middle), "shared")
            s.bind(s.split(s.loops(s.block(middle))[-1], [None, threads])[1], "threadIdx.x")
    s.bind(lane, "threadIdx.x")
    s.bind(i, "blockIdx.x")


def test_two_reductions_of_a_row() -> None:
    shape = rows(5, 50)
    s = Schedule(shape.program)
    s.compute_inline(s.block("apart"))
    softmax_of_threads(s, "out", None, 32, ("total", "most"))
    counters = check_threads(shape, s.program)
    assert counters.barriers == 0  # the block is one warp
    assert check_threads(shape, s.program, WITHOUT_SHUFFLES).barriers == 5 * (2 + 2 + 2)


def test_softmax(golden: Golden) -> None:
    n, m = 4, 75
    x, k, q = te.placeholder((n, m), f32, "X"), te.reduce_axis(m, "k"), te.reduce_axis(m, "q")
    most = te.compute((n,), lambda i: te.max_(x[i, k], [k]), "most")
    e = te.compute((n, m), lambda i, j: apply("exp", x[i, j] - most[i]), "E")
    total = te.compute((n,), lambda i: te.sum_(e[i, q], [q]), "total")
    y = te.compute((n, m), lambda i, j: e[i, j] / total[i], "Y")
    s = Schedule(te.to_program([x], [y]))
    softmax_of_threads(s, "Y", "E", 32, ("total", "most"))
    golden(str(s))
    flat = lower(s.program, GENERIC_THREADS, verify=True)
    a = np.random.default_rng(0).normal(size=(n, m)).astype(np.float32)
    given, made = a.reshape(-1).copy(), np.zeros(n * m, np.float32)
    counters = run_threads(flat, [given, made], GENERIC_THREADS)
    exact = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
    np.testing.assert_allclose(made.reshape(n, m), exact / exact.sum(1, keepdims=True), rtol=1e-6)
    assert counters.barriers == 0
    assert counters.ways == 1


def test_symbolic_rows() -> None:
    shape = symbolic_rows(3, 45)
    s = Schedule(shape.program)
    reduction = s.block("S")
    i, k = s.loops(reduction)
    _, inner = s.split(k, [None, 16])
    s.cross_thread_reduce(reduction, inner)
    s.bind(i, "blockIdx.x")
    check_threads(shape, s.program)


@pytest.mark.parametrize("threads", [16, 32, 64])
def test_the_place_of_the_largest(threads: int) -> None:
    shape = argmax(4, 150)
    s = Schedule(shape.program)
    top = next(b for b in s.blocks() if len(s.loops(b)) == 2)
    i, k = s.loops(top)
    _, inner = s.split(k, [None, threads])
    s.cross_thread_reduce(top, inner)
    s.bind(i, "blockIdx.x")
    assert (check_threads(shape, s.program).shuffles > 0) == (threads >= 32)
