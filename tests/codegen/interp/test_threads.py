"""Programs of threads: what they compute, the races and barriers that are wrong in them, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft.codegen.interp.faults import ExecutionError
from weft.codegen.interp.threads.counters import Counters
from weft.codegen.interp.threads.races import DivergenceError, RaceError
from weft.codegen.interp.threads.thread_machine import run_threads
from weft.loop import parse_program, verify
from weft.targets.grid_machines import GENERIC_THREADS

Array = np.ndarray[Any, Any]


def grid(
    body: str, threads: int = 64, blocks: int = 1, shared: int = 64, params: str = "A: f32[256], C: f32[256]"
) -> str:
    """A kernel of `blocks` x `threads` threads b and t, with shared memory S; the lines of *body* begin at the margin."""
    lines = "\n".join([f"            {x}" for x in body.strip().splitlines()])
    return f"""
def main({params}):
    main_kernel({", ".join([p.split(":")[0] + ".at(0)" for p in params.split(", ")])})

@function(kernel=1)
def main_kernel({params}):
    for b in bound(0, {blocks}, thread="blockIdx.x"):
        S = alloc("shared", f32[{shared}])
        for t in bound(0, {threads}, thread="threadIdx.x"):
{lines}
"""


def launch(body: str, **options: Any) -> tuple[Array, Counters]:
    """Runs a kernel on the numbers from 0 on; returns what it leaves in C, and its counters."""
    program = parse_program(grid(body, **options))
    verify(program, flat=True)
    a, c = np.arange(256, dtype=np.float32), np.full(256, -1, np.float32)
    counters = run_threads(program, {"A": a, "C": c}, GENERIC_THREADS)
    return c, counters


REVERSED = """
S[t] = A[t]
call("weft.barrier")
C[t] = S[63 - t]
"""


def test_threads_exchange_values_across_a_barrier() -> None:
    c, counters = launch(REVERSED)
    np.testing.assert_array_equal(c[:64], np.arange(63, -1, -1))
    assert (counters.barriers, counters.divergent, counters.ways) == (1, 0, 1)


def test_a_missing_barrier_is_a_race() -> None:
    with pytest.raises(RaceError) as caught:
        launch(REVERSED.replace('call("weft.barrier")\n', ""))
    assert str(caught.value).startswith(
        "thread 0 of block 0 reads element 63 of S, which thread 63 of block 0 wrote, with no barrier between them\n"
        "  now\n    C[t] = S[63 - t]\n  before\n    S[t] = A[t]\n"
    )


def test_a_write_after_a_read_is_a_race() -> None:
    again = REVERSED + "S[t] = A[t]\n"
    with pytest.raises(RaceError, match=r"writes element 0 of S, which thread 63 of block 0 read,"):
        launch(again)
    launch(REVERSED + 'call("weft.barrier")\nS[t] = A[t]\n')


def test_a_write_after_several_reads_is_a_race() -> None:
    broadcast = 'if t == 0:\n    S[0] = 1.0\ncall("weft.barrier")\nC[t] = S[0]\n'
    launch(broadcast)
    with pytest.raises(RaceError, match="read"):
        launch(broadcast + "if t == 63:\n    S[0] = 2.0\n")
    with pytest.raises(RaceError, match="read"):
        launch(broadcast + "if t == 0:\n    S[0] = 2.0\n")
    launch(broadcast + 'call("weft.barrier")\nif t == 0:\n    S[0] = 2.0\n')


def test_two_writes_at_once_are_a_race_whatever_they_write() -> None:
    with pytest.raises(RaceError, match="writes element 0 of S, which thread 63 of block 0 writes"):
        launch("S[0] = 1.0")


def test_barriers_do_not_order_blocks() -> None:
    other = 'C[b * 64 + t] = A[t]\ncall("weft.barrier")\nif b == 1:\n    C[128 + t] = C[t]\n'
    with pytest.raises(RaceError, match="thread 0 of block 1 reads element 0 of C, which thread 0 of block 0 wrote"):
        launch(other, blocks=2)


def test_each_block_has_its_own_shared_memory() -> None:
    c, counters = launch("S[t] = A[b * 64 + t]\nC[b * 64 + t] = S[t]", blocks=4)
    np.testing.assert_array_equal(c, np.arange(256))
    assert counters.barriers == 0


def test_a_barrier_in_divergent_flow() -> None:
    with pytest.raises(DivergenceError, match="only 40 of the 64 threads of block 0 come by a barrier"):
        launch('if t < 40:\n    call("weft.barrier")\n    C[t] = 1.0')
    _, counters = launch('if b < 1:\n    call("weft.barrier")\n    C[t] = 1.0', blocks=2)
    assert counters.barriers == 1


def test_a_barrier_in_a_loop_that_threads_leave_one_by_one() -> None:
    with pytest.raises(DivergenceError, match="threads of block 0 come by a barrier"):
        launch('for k in range(0, t):\n    call("weft.barrier")\nC[t] = 1.0')


def test_a_warp_barrier_orders_a_warp_only() -> None:
    within = 'S[t] = A[t]\ncall("weft.barrier.warp")\nC[t] = S[t // 32 * 32 + (t + 1) % 32]\n'
    c, counters = launch(within)
    np.testing.assert_array_equal(c[:64], np.arange(64) // 32 * 32 + (np.arange(64) + 1) % 32)
    assert (counters.barriers, counters.warp_barriers) == (0, 2)
    with pytest.raises(RaceError):
        launch(within.replace("t // 32 * 32 + (t + 1) % 32", "(t + 1) % 64"))
    with pytest.raises(DivergenceError, match="only 8 of the 32 threads of warp 1"):
        launch('if t < 40:\n    call("weft.barrier.warp")\n    C[t] = 1.0')


def test_a_write_by_a_thread_that_read_after_a_warp_barrier() -> None:
    """The last reader itself writes; those of its warp that read before are behind a barrier, those of another are not."""
    steps = 'S[t] = A[t]\ncall("weft.barrier")\nC[t] = S[{0}]\ncall("weft.barrier.warp")\n'
    last = "if t == 0:\n    C[64] = S[0]\n    S[0] = 1.0\n"
    launch(steps.format("t // 32 * 32") + last)
    with pytest.raises(RaceError, match="writes element 0 of S"):
        launch(steps.format("0") + last)


def test_warp_memory_is_each_warps_own() -> None:
    text = grid('W[t % 32] = A[t]\ncall("weft.barrier.warp")\nC[t] = W[31 - t % 32]').replace(
        'S = alloc("shared"', 'W = alloc("warp"'
    )
    a, c = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    run_threads(parse_program(text), [a, c], GENERIC_THREADS)
    np.testing.assert_array_equal(c[:64], np.concatenate([np.arange(31, -1, -1), np.arange(63, 31, -1)]))


@pytest.mark.parametrize(
    ("index", "sectors"), [("t", 8), ("(t * 2)", 16), ("(t * 8 % 256)", 64), ("(t // 32)", 2), ("(63 - t)", 8)]
)
def test_sectors_of_global_memory(index: str, sectors: int) -> None:
    """Two warps of 32 threads, 8 floats to a sector of 32 bytes."""
    _, counters = launch(f"C[t] = A[{index}]")
    assert (counters.loads, counters.stores) == (sectors, 8)
    assert counters.of_buffer == {"A": sectors, "C": 8}


@pytest.mark.parametrize(
    ("index", "ways"), [("t", 1), ("t * 2", 2), ("t * 32", 32), ("t * 33", 1), ("0", 1), ("t // 2", 1)]
)
def test_bank_conflicts(index: str, ways: int) -> None:
    """One warp; 32 banks of 4 bytes, and threads that want the same word get it at once."""
    zero = "for k in range(0, 40):\n    if k * 32 + t < 1100:\n        S[k * 32 + t] = 0.0\n"
    stored, base = launch(zero + 'call("weft.barrier")\nC[t] = 1.0', threads=32, shared=1100)
    _, counters = launch(zero + f'call("weft.barrier")\nC[t] = S[{index}]', threads=32, shared=1100)
    assert stored[0] == 1
    assert (counters.ways, counters.turns - base.turns, counters.conflicts) == (ways, ways, ways - 1)


def test_divergent_branches_are_counted_by_warp() -> None:
    assert launch("if t < 32:\n    C[t] = 1.0")[1].divergent == 0
    assert launch("if t < 40:\n    C[t] = 1.0")[1].divergent == 1
    assert launch("if t % 2 == 0:\n    C[t] = 1.0\nelse:\n    C[t] = 2.0")[1].divergent == 2
    assert launch("for k in range(0, t // 16):\n    C[t] = 1.0")[1].divergent == 2


def test_selects_and_conditions_load_in_the_threads_that_want_it_only() -> None:
    c, counters = launch("C[t] = select(t < 8, A[t + 248], 0.0) + select(t >= 8 and A[t - 8] > 3.0, 1.0, 0.0)")
    np.testing.assert_array_equal(c[:64], [*range(248, 256), *[0] * 4, *[1] * 52])
    assert counters.loads == 1 + 3 + 4


def test_threads_fault_as_programs_do() -> None:
    with pytest.raises(
        ExecutionError, match=r"the index 256 of dimension 0 of A is outside of 0 \.\. 255, in thread 56 of block 0"
    ):
        launch("C[t] = A[t + 200]")
    with pytest.raises(ExecutionError, match="division by zero"):
        launch("C[t] = A[64 // t]")
    launch("if t > 0:\n    C[t] = A[64 // t]")


def test_unset_memory_is_not_a_number() -> None:
    assert np.isnan(launch("C[t] = S[t]")[0][:64]).all()


def test_locals_whiles_and_lets() -> None:
    body = """
L = alloc("local", f32[2])
x = let(A[t])
L[0] = x
L[1] = 0.0
while L[0] > 1.0:
    L[0] = L[0] / 2.0
    L[1] = L[1] + 1.0
C[t] = L[1]
"""
    c, counters = launch(body)
    wanted = [0 if k < 2 else np.ceil(np.log2(k)) for k in range(64)]
    np.testing.assert_array_equal(c[:64], wanted)
    assert counters.divergent > 0


def test_symbolic_grids() -> None:
    text = """
def main(A: f32[n], C: f32[n], n: i64):
    main_kernel(A.at(0), C.at(0), n)

@function(kernel=1)
def main_kernel(A: f32[n], C: f32[n], n: i64):
    for b in bound(0, (n + 31) // 32, thread="blockIdx.x"):
        for t in bound(0, 32, thread="threadIdx.x"):
            if b * 32 + t < n:
                C[b * 32 + t] = A[b * 32 + t] * 2.0
"""
    a, c = np.arange(70, dtype=np.float32), np.zeros(70, np.float32)
    counters = run_threads(parse_program(text), {"A": a, "C": c}, GENERIC_THREADS)
    np.testing.assert_array_equal(c, 2 * a)
    assert (counters.divergent, counters.loads) == (1, 9)


def test_kernels_in_a_row_need_no_barrier() -> None:
    text = """
def main(A: f32[64], C: f32[64]):
    T = alloc("global", f32[64])
    first(A.at(0), T.at(0))
    first(T.at(0), C.at(0))

@function(kernel=1)
def first(A: f32[64], C: f32[64]):
    for t in bound(0, 64, thread="threadIdx.x"):
        C[t] = A[63 - t] + 1.0
"""
    a, c = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run_threads(parse_program(text), [a, c], GENERIC_THREADS)
    np.testing.assert_array_equal(c, a + 2)
