"""Updates in any order are atomic operations of threads: each kind, none lost, and what has none is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from weft import te
from weft.codegen.interp import run
from weft.codegen.interp.threads.races import RaceError
from weft.codegen.interp.threads.thread_machine import run_threads
from weft.ir import Var
from weft.loop import Program, parse_program, verify
from weft.lower import lower
from weft.schedule import Schedule
from weft.schedule.rules.grid.thread_elements import bind_elements
from weft.support.dtypes import DType, f32, i32, i64, parse_dtype
from weft.support.errors import LoweringError
from weft.targets.cuda_machines import cuda
from weft.targets.grid_machines import GENERIC_THREADS

REDUCERS = {"add": te.sum_, "mul": te.prod, "min": te.min_, "max": te.max_}
COMBINED = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
N, M, K = 5, 6, 90


def updated(reducer: te.Reducer | None, dtype: DType = f32) -> Program:
    """Rows of a table, each of which several rows of updates may change."""
    x, t, u = te.placeholder((N, M), dtype, "x"), te.placeholder((K,), i64, "t"), te.placeholder((K, M), dtype, "u")
    y = te.scatter(x, (K, M), lambda p, j: ((t[p], j), u[p, j]), reducer, "y", any_order=True)
    return te.to_program([x, t, u], [y])


def in_threads(program: Program) -> Program:
    """The program with a thread for each element, and for each update."""
    s = Schedule(program)
    for ref in s.blocks():
        bind_elements(s, ref, 32)
    return s.program


@pytest.mark.parametrize("how", REDUCERS)
@pytest.mark.parametrize("dtype", [f32, i32])
def test_no_update_is_lost(how: str, dtype: DType) -> None:
    flat = lower(in_threads(updated(REDUCERS[how], dtype)), GENERIC_THREADS, verify=True)
    verify(flat, flat=True)
    assert f'call("weft.atomic.{how}", ' in str(flat)
    rng = np.random.default_rng(0)
    x, u = rng.integers(-2, 3, (N, M)).astype(dtype.numpy), rng.choice([-2, -1, 1], (K, M)).astype(dtype.numpy)
    t, y = rng.integers(0, N, K), np.zeros((N, M), dtype.numpy)
    run_threads(flat, [x.ravel(), t, u.ravel(), y.reshape(-1)], GENERIC_THREADS)
    wanted = x.copy()
    with np.errstate(over="ignore"):
        COMBINED[how].at(wanted, t, u)
    np.testing.assert_array_equal(y, wanted)


def test_text(golden: Callable[[str], None]) -> None:
    golden(str(lower(in_threads(updated(te.sum_)), GENERIC_THREADS, verify=True)))


def test_one_thread_updates_as_by_stores() -> None:
    text = """
def f(x: f32[4], t: i64[6]):
    for p in range(0, 6):
        call("weft.atomic.max", x.at(t[p]), f32(p))
"""
    x = np.zeros(4, np.float32)
    run(parse_program(text), [x, np.array([1, 2, 1, 0, 2, 1])])
    np.testing.assert_array_equal(x, [3, 5, 4, 0])


def test_of_updates_that_replace_one_element_the_last_wins() -> None:
    x, t = te.placeholder((7, M), f32, "x"), te.placeholder((K,), i64, "t")
    u = te.placeholder((K, M), f32, "u")
    y = te.put_last(x, (K, M), lambda p, j: ((t[p], j), u[p, j], t[p] > 0), "y", in_place=False)
    program = te.to_program([x, t, u], [y])
    assert 'alloc("global", i32[7])' in str(program)  # a number for each row
    flat = lower(in_threads(program), GENERIC_THREADS, verify=True)
    rng = np.random.default_rng(1)
    a, b, at = rng.standard_normal((7, M)), rng.standard_normal((K, M)), rng.integers(0, 6, K)
    a, b, wanted = a.astype(np.float32), b.astype(np.float32), a.astype(np.float32).copy()
    for p, i in enumerate(at):
        wanted[i] = b[p] if i else wanted[i]
    found = np.zeros((7, M), np.float32)
    run_threads(flat, [a.ravel(), at, b.ravel(), found.reshape(-1)], GENERIC_THREADS)
    np.testing.assert_array_equal(found, wanted)


def test_numbers_of_updates_that_are_not_known_keep_their_order() -> None:
    n = Var("n")
    x, t = te.placeholder((7,), f32, "x"), te.placeholder((n,), i64, "t")
    y = te.put_last(x, (n,), lambda p: ((t[p],), 1.0), "y", in_place=False)
    assert "ordered(n, p)" in str(te.to_program([x, t], [y]))


@pytest.mark.parametrize(
    ("dtype", "value", "told"),
    [
        ("f32", "S[t[vp]] - 1.0", "y updates elements of S by an operation that has no atomic one"),
        ("f32", "S[t[vp]] + S[0]", "y updates elements of S by an operation that has no atomic one"),
        ("f16", "S[t[vp]] + f16(1.0)", "y updates elements of S of f16, which threads has no atomic operations on"),
        ("i64", "S[t[vp]] + 1", "y updates elements of S of i64, which threads has no atomic operations on"),
    ],
)
def test_refused(dtype: str, value: str, told: str) -> None:
    text = f"""
def f(S: {dtype}[8], t: i64[64]):
    for p in bound(0, 64, thread="threadIdx.x"):
        with block("y", vp=unordered(64, p)):
            S[t[vp]] = {value}
"""
    with pytest.raises(LoweringError) as error:
        lower(parse_program(text), GENERIC_THREADS)
    assert told in str(error.value)


def test_64_bits_where_a_machine_has_them() -> None:
    assert cuda("sm_80").has_atomics(i64)
    assert not GENERIC_THREADS.has_atomics(i64)
    assert not cuda("sm_80").has_atomics(parse_dtype("bool"))
    assert 'call("weft.atomic.add"' in str(lower(in_threads(updated(te.sum_, i64)), cuda("sm_80")))


MIXED = """
def main(C: f32[8]):
    main_kernel(C.at(0))

@function(kernel=1)
def main_kernel(C: f32[8]):
    for b in bound(0, {blocks}, thread="blockIdx.x"):
        for t in bound(0, 64, thread="threadIdx.x"):
            call("weft.atomic.add", C.at(t % 8), 1.0)
            {then}
"""


@pytest.mark.parametrize("then", ["C[t % 8] = 0.0", "if t < 8:\n                C[t] = 2.0 * C[t]"])
def test_other_accesses_of_elements_that_are_updated_are_races(then: str) -> None:
    with pytest.raises(RaceError, match=r"which thread [0-9]+ of block 0 updated, with no barrier between them"):
        run_threads(parse_program(MIXED.format(blocks=1, then=then)), [np.zeros(8, np.float32)], GENERIC_THREADS)


def test_a_barrier_ends_the_updates_of_a_block_alone() -> None:
    then = 'call("weft.barrier")\n            if t < 8:\n                C[t] = 2.0 * C[t]'
    c = np.zeros(8, np.float32)
    run_threads(parse_program(MIXED.format(blocks=1, then=then)), [c], GENERIC_THREADS)
    assert (c == 16).all()
    with pytest.raises(RaceError, match=r"of block [01] updated"):
        run_threads(parse_program(MIXED.format(blocks=2, then=then)), [c], GENERIC_THREADS)


def test_vectors_are_refused() -> None:
    s = Schedule(updated(te.sum_))
    p, j = s.loops(s.block("y"))
    s.bind(p, "threadIdx.x")
    s.vectorize(j)
    with pytest.raises(LoweringError, match="the loop j makes vectors of atomic updates"):
        lower(s.program, GENERIC_THREADS)
