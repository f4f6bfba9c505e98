"""Computations scheduled for threads, lowered to kernels and run: right, without races, and with the memory traffic expected."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lower.threaded import (
    barriers,
    bind_threads_of,
    check_threads,
    naive_matmul,
    run_case,
    tiled_matmul,
    without_barrier,
)
from tests.schedule.programs import Case, argmax, case, matmul

from weft import te
from weft.codegen.interp.threads.races import RaceError
from weft.ir import Var
from weft.loop import print_program
from weft.lower import lower
from weft.lower.grid.split_host_device import launch_of
from weft.schedule import Schedule
from weft.support.dtypes import f32
from weft.targets.grid_machines import GENERIC_THREADS

Golden = Callable[[str], None]


def symbolic_product() -> Case:
    n, m, k = Var("n"), Var("m"), Var("k")
    a, b = te.placeholder((n, k), f32, "A"), te.placeholder((k, m), f32, "B")
    r = te.reduce_axis(k, "r")
    c = te.compute((n, m), lambda i, j: te.sum_(a[i, r] * b[r, j], [r]), "C")
    return case([a, b], [c], lambda x, y: [x @ y], n=37, m=50, k=21)


def transposition(n: int = 64, m: int = 96) -> Case:
    x = te.placeholder((n, m), f32, "X")
    y = te.compute((m, n), lambda i, j: x[j, i] + 1.0, "Y")
    return case([x], [y], lambda v: [v.T + 1])


def test_cooperative_fetch(golden: Golden) -> None:
    shape = matmul(64, 64, 64)
    flat = lower(tiled_matmul(shape).program, GENERIC_THREADS, verify=True)
    golden(print_program(flat))
    tiled = run_case(shape, flat)
    naive = check_threads(shape, naive_matmul(shape).program)
    assert len(barriers(flat)) == 2
    assert tiled.barriers == 16 * 4 * 2  # blocks, tiles of k, before and after each product of tiles
    assert naive.barriers == 0
    assert (
        tiled.of_buffer["A"] + tiled.of_buffer["B"] == 2 * 64 * 64 * 4 // 8
    )  # each of 4 x 4 blocks reads a row, or column, of tiles
    assert naive.of_buffer["A"] + naive.of_buffer["B"] == 8 * (tiled.of_buffer["A"] + tiled.of_buffer["B"])
    assert (tiled.ways, tiled.divergent) == (1, 0)


@pytest.mark.parametrize("number", [0, 1])
def test_without_either_barrier_it_races(number: int) -> None:
    shape = matmul(32, 32, 32)
    flat = lower(tiled_matmul(shape).program, GENERIC_THREADS)
    with pytest.raises(RaceError, match="_shared, which thread"):
        run_case(shape, without_barrier(flat, number))


def test_tiles_in_two_places_need_half_the_barriers() -> None:
    """What is multiplied is not where the next tiles go, and those after them come behind the next barrier."""
    shape = matmul(48, 32, 64)
    s = tiled_matmul(shape)
    for name in ("A_shared", "B_shared"):
        s.double_buffer(s.block(name), s.loops(s.block(name))[2])
    flat = lower(s.program, GENERIC_THREADS, verify=True)
    counters = run_case(shape, flat)
    assert (len(barriers(flat)), counters.barriers) == (1, 3 * 2 * 4)
    assert launch_of(flat.functions[1]).shared == 2 * 2 * 16 * 16 * 4
    with pytest.raises(RaceError):
        run_case(shape, without_barrier(flat, 0))


@pytest.mark.parametrize("shape", [(33, 47, 20), (17, 5, 18), (16, 16, 17), (50, 16, 33)])
def test_extents_that_tiles_do_not_divide(shape: tuple[int, int, int]) -> None:
    found = matmul(*shape)
    check_threads(found, tiled_matmul(found).program)
    check_threads(found, naive_matmul(found).program)


def test_symbolic_extents(golden: Golden) -> None:
    shape = symbolic_product()
    flat = lower(tiled_matmul(shape).program, GENERIC_THREADS, verify=True)
    golden(print_program(flat))
    counters = run_case(shape, flat)
    assert counters.barriers == 3 * 4 * 2 * 2
    launch = launch_of(flat.functions[1])
    assert [str(e) for e in launch.blocks] == ["(m + 15) // 16", "(n + 15) // 16", "1"]
    assert (launch.threads, launch.shared) == ((16, 16, 1), 2 * 16 * 16 * 4)


def register_tiled(shape: Case) -> Schedule:
    """Each of 8 x 8 threads computes 4 x 4 elements in its own memory."""
    s = Schedule(shape.program)
    c = s.block("C")
    out = s.cache_write(c, "local")
    i, j, k = s.loops(c)
    by, ty, yi = s.split(i, [None, 8, 4])
    bx, tx, xi = s.split(j, [None, 8, 4])
    ko, ki = s.split(k, [None, 8])
    s.reorder([by, bx, ko, ty, tx, ki, yi, xi])
    copies = [s.cache_read(c, x, "shared") for x in ("A", "B")]
    for copy in copies:
        s.compute_at(copy, ko)
    s.reverse_compute_at(out, bx)
    start = s.decompose_reduction(c, ko)
    oy, ox = s.loops(out)[-2:]
    y, yo = s.split(oy, [8, None])
    x, xo = s.split(ox, [8, None])
    s.reorder([y, x, yo, xo])
    sy, sx = s.loops(start)[2:4]
    ay, ax = s.loops(copies[0])[-2:]
    cy, cx = s.loops(copies[1])[-2:]
    _, ay = s.split(ay, [None, 8])
    _, cx = s.split(cx, [None, 8])
    for f, axis in ((by, "blockIdx.y"), (bx, "blockIdx.x")):
        s.bind(f, axis)
    for f in (ty, y, sy, ay, cy):
        s.bind(f, "threadIdx.y")
    for f in (tx, x, sx, ax, cx):
        s.bind(f, "threadIdx.x")
    return s


def test_tiles_in_the_memory_of_threads(golden: Golden) -> None:
    shape = matmul(64, 64, 32)
    flat = lower(register_tiled(shape).program, GENERIC_THREADS, verify=True)
    golden(print_program(flat))
    counters = run_case(shape, flat)
    assert counters.barriers == 4 * 4 * 2
    assert counters.stores == 64 * 64 * 4 // 32 * 4  # a thread's elements lie side by side, those of a warp apart
    assert counters.of_buffer["A"] + counters.of_buffer["B"] == 2 * 2 * 64 * 32 * 4 // 32


@pytest.mark.parametrize("shape", [(50, 37, 20), (64, 64, 9)])
def test_tiles_in_the_memory_of_threads_that_do_not_divide(shape: tuple[int, int, int]) -> None:
    found = matmul(*shape)
    check_threads(found, register_tiled(found).program)


def test_transposition_without_and_with_padded_rows() -> None:
    shape = transposition()
    for pad, ways in ((False, 32), (True, 1)):
        s = Schedule(shape.program)
        y = s.block("Y")
        i, j = s.loops(y)
        bi, ti = s.split(i, [None, 32])
        bj, tj = s.split(j, [None, 32])
        s.reorder([bi, bj, ti, tj])
        tile = s.cache_read(y, "X", "shared")
        s.compute_at(tile, bj)
        if pad:
            s.storage_align(tile, 0, 32, 1)
        for f, axis in ((bi, "blockIdx.y"), (bj, "blockIdx.x")):
            s.bind(f, axis)
        bind_threads_of(s, tile, "threadIdx.y", "threadIdx.x")
        bind_threads_of(s, y, "threadIdx.y", "threadIdx.x")
        counters = check_threads(shape, s.program)
        assert counters.ways == ways
        assert counters.loads == counters.stores == 64 * 96 * 4 // 32
        assert counters.barriers == 2 * 3


def test_a_loop_that_reads_all_before_it_writes_any() -> None:
    """What a reducer of two values reads is bound around its stores, so that a barrier between these is no help."""
    shape = argmax(5, 7)
    s = Schedule(shape.program)
    (i,) = s.loops(s.block("out"))
    block, thread = s.split(i, [None, 8])
    s.bind(thread, "threadIdx.x")
    s.bind(block, "blockIdx.x")
    s.compute_at(s.block("top"), block)
    s.set_scope(s.block("top"), "shared")
    flat = lower(s.program, GENERIC_THREADS, verify=True)
    run_case(shape, flat)
    for number in range(len(barriers(flat))):
        with pytest.raises(RaceError):
            run_case(shape, without_barrier(flat, number))
