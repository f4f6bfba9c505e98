"""Where barriers go: between phases of which one touches what threads of the other did, few, and where all threads come by."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import strategies as st
from tests.lower.running import inputs_of, results
from tests.lower.threaded import barriers, without_barrier
from tests.support.sampling import tried

from weft.codegen.interp.threads.races import RaceError
from weft.codegen.interp.threads.thread_machine import run_threads
from weft.loop import parse_program, print_program, verify
from weft.lower import lower
from weft.lower.grid.insert_barriers import fewest
from weft.support.errors import LoweringError
from weft.targets.grid_machines import GENERIC_THREADS

Golden = Callable[[str], None]


def program_of(body: str, shared: str = "f32[64]") -> str:
    """A grid of two blocks i, with shared memory S and T; the lines of *body* begin at the margin."""
    lines = "\n".join([f"        {x}" for x in body.strip("\n").splitlines()])
    return f"""
def main(A: f32[2, 64], C: f32[2, 64]):
    for i in bound(0, 2, thread="blockIdx.x"):
        S = alloc("shared", {shared})
        T = alloc("shared", f32[64])
{lines}
"""


def lowered(body: str, *, shared: str = "f32[64]", needed: bool = True) -> tuple[str, int]:
    """Lowers a grid, checks it against the same loops run one after another, and that it needs each of its barriers.

    Returns its text, and how many barriers a block comes by.
    """
    program = parse_program(program_of(body, shared))
    flat = lower(program, GENERIC_THREADS, verify=True)
    verify(flat, flat=True)
    values = inputs_of(program)
    expected = results(program, values)
    given_ = [np.ravel(np.asarray(v)).copy() for v in values]
    counters = run_threads(flat, given_, GENERIC_THREADS)
    for wanted, found in zip(expected, given_, strict=True):
        np.testing.assert_array_equal(found, wanted, str(flat))
    for number in range(len(barriers(flat))) if needed else ():
        with pytest.raises(RaceError):
            run_threads(without_barrier(flat, number), [v.copy() for v in given_], GENERIC_THREADS)
    return print_program(flat), counters.barriers // 2


def phase(axis: str, *lines: str, var: str = "t", count: int = 64) -> str:
    """A loop over threads."""
    inside = "".join([f"    {x}\n" for x in lines])
    return f'for {var} in bound(0, {count}, thread="threadIdx.{axis}"):\n{inside}'


WRITE = phase("x", "S[t] = A[i, t]", var="t")
READ = phase("x", "C[i, u] = S[63 - u]", var="u")


def test_none_where_each_thread_reads_what_it_wrote(golden: Golden) -> None:
    text, count = lowered(WRITE + phase("x", "C[i, u] = S[u] + 1.0", var="u"))
    assert count == 0
    golden(text)


def test_none_where_threads_write_to_global_memory_and_read_their_own() -> None:
    assert lowered(phase("x", "C[i, t] = A[i, t]") + phase("x", "C[i, u] = C[i, u] * 2.0", var="u"))[1] == 0


def test_one_through_global_memory() -> None:
    assert (
        lowered(
            phase("x", "C[i, t] = A[i, t]")
            + phase("x", "S[u] = C[i, 63 - u]", var="u")
            + phase("x", "C[i, v] = S[v]", var="v")
        )[1]
        == 2
    )


def test_one_for_several_dependences(golden: Golden) -> None:
    both = phase("x", "S[t] = A[i, t]", "T[t] = A[i, t] * 2.0")
    text, count = lowered(both + READ + phase("x", "C[i, w] = C[i, w] + T[63 - w]", var="w"))
    assert count == 1
    golden(text)


def test_one_of_the_block_serves_what_only_warps_depend_on_too(golden: Golden) -> None:
    def rows(line: str) -> str:
        inside = indented(f'for t in bound(0, 32, thread="threadIdx.x"):\n    {line}\n')
        return f'for r in bound(0, 2, thread="threadIdx.y"):\n{inside}'

    text, count = lowered(
        rows("S[r * 32 + t] = A[i, r * 32 + t]")
        + rows("T[r * 32 + t] = A[i, r * 32 + t] * 2.0")
        + rows("C[i, r * 32 + t] = S[63 - (r * 32 + t)] + T[r * 32 + (31 - t)]")
    )
    assert count == 1
    golden(text)


def test_two_where_one_cannot_serve_both() -> None:
    middle = phase("x", "T[u] = S[63 - u]", var="u")
    assert lowered(WRITE + middle + phase("x", "C[i, w] = T[63 - w]", var="w"))[1] == 2


def test_a_loop_needs_one_for_what_it_carries_too(golden: Golden) -> None:
    text, count = lowered(
        "for k in range(0, 3):\n" + indented(WRITE.replace("A[i, t]", "A[i, t] + cast(f32, k)") + READ)
    )
    assert count == 3 * 2
    golden(text)


def test_a_loop_that_uses_two_places_in_turn_needs_one(golden: Golden) -> None:
    """What an iteration reads, the next one does not write; the one after that does, and is behind a barrier."""
    text, count = lowered("for k in range(0, 5, double_buffer=S):\n" + indented(WRITE + READ))
    assert count == 5
    golden(text)


def test_nothing_is_carried_by_a_loop_around_the_threads_memory() -> None:
    assert lowered("for k in range(0, 3):\n" + indented(WRITE + phase("x", "C[i, u] = S[u]", var="u")))[1] == 0


def test_outside_of_an_inner_loop_where_that_will_do(golden: Golden) -> None:
    read = "for k in range(0, 4):\n" + indented(phase("x", "C[i, u] = C[i, u] + S[(u + k) % 64]", var="u"))
    text, count = lowered("for m in range(0, 2):\n" + indented(WRITE + phase("x", "C[i, z] = 0.0", var="z") + read))
    assert count == 2 * 2
    golden(text)


def test_one_of_an_inner_loop_serves_the_outer_one() -> None:
    inner = "for k in range(0, 4):\n" + indented(WRITE + READ)
    assert lowered("for m in range(0, 2):\n" + indented(inner))[1] == 2 * 4 * 2


def test_a_loop_that_may_not_run_is_no_barrier() -> None:
    """Block 0 does not run the loop, so that a barrier in it would be none between what comes before and after."""
    inner = phase("x", "T[p] = A[i, p]", var="p") + phase("x", "C[i, q] = T[63 - q]", var="q")
    text, _ = lowered(WRITE + "for k in range(0, i):\n" + indented(inner) + READ, needed=False)
    assert text.count("weft.barrier") == 3


def test_a_sum_over_a_tree_of_threads(golden: Golden) -> None:
    """Half of the threads add what the other half has; the last two barriers are for one thread and all that read."""
    steps = "".join(
        [phase("x", f"S[r{n}] = S[r{n}] + S[r{n} + {n}]", var=f"r{n}", count=n) for n in (32, 16, 8, 4, 2, 1)]
    )
    text, count = lowered(WRITE + steps + phase("x", "C[i, u] = S[0]", var="u"))
    assert count == 7
    golden(text)


def test_a_sum_that_one_thread_uses() -> None:
    steps = "".join(
        [phase("x", f"S[r{n}] = S[r{n}] + S[r{n} + {n}]", var=f"r{n}", count=n) for n in (32, 16, 8, 4, 2, 1)]
    )
    assert lowered(WRITE + steps + "C[i, 0] = S[0]\nfor m in range(1, 64):\n    C[i, m] = 0.0")[1] == 6


def test_halves_that_do_not_meet() -> None:
    low = phase("x", "S[t] = A[i, t]", count=32)
    high = phase("x", "S[u + 32] = A[i, u]", var="u", count=32)
    assert lowered(low + high)[1] == 0


def test_the_guard_of_a_shorter_loop_goes_inside(golden: Golden) -> None:
    """Eight of sixteen rows of threads do the phases in the loop; all of them come by the barriers in it."""
    write = phase("x", "S[y * 4 + t] = A[i, y * 4 + t]", count=4)
    read = phase("x", "C[i, y * 4 + u] = S[y * 4 + 3 - u]", var="u", count=4)
    rows = 'for y in bound(0, 8, thread="threadIdx.y"):\n' + indented(write + read)
    first = 'for z in bound(0, 16, thread="threadIdx.y"):\n' + indented(
        phase("x", "C[i, z * 4 + a] = 0.0", var="a", count=4)
    )
    text, count = lowered(first + rows)
    assert count == 1
    golden(text)


def test_a_condition_on_the_thread_goes_inside(golden: Golden) -> None:
    write = phase("x", "S[y * 4 + t] = A[i, y * 4 + t]", count=4)
    read = phase("x", "C[i, y * 4 + u] = S[y * 4 + 3 - u]", var="u", count=4)
    branch = "if y < 7:\n" + indented(write + read)
    zero = phase("x", "C[i, t] = 0.0")
    text, count = lowered(zero + 'for y in bound(0, 8, thread="threadIdx.y"):\n' + indented(branch))
    assert count == 1
    golden(text)


def test_a_condition_of_the_block_stays_outside(golden: Golden) -> None:
    text, count = lowered(
        "if i < 1:\n" + indented(WRITE + READ) + "else:\n" + indented(phase("x", "C[i, z] = 0.0", var="z"))
    )
    assert count * 2 == 1 or count == 0
    golden(text)


def test_what_no_thread_is_bound_to_is_done_by_one(golden: Golden) -> None:
    text, count = lowered("S[0] = A[i, 5]\n" + phase("x", "C[i, t] = S[0]"))
    assert count == 1
    golden(text)


def test_memory_of_threads_is_written_by_all(golden: Golden) -> None:
    body = 'with alloc("local", f32[1]) as L:\n    L[0] = A[i, 5]\n' + indented(phase("x", "C[i, t] = L[0]"))
    text, count = lowered(body)
    assert count == 0
    golden(text)


def test_programs_without_bound_loops_run_in_one_thread(golden: Golden) -> None:
    text = "def main(A: f32[4], C: f32[4]):\n    for i in range(0, 4):\n        C[i] = A[3 - i]\n    C[0] = 7.0\n"
    flat = lower(parse_program(text), GENERIC_THREADS, verify=True)
    a, c = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    run_threads(flat, [a, c], GENERIC_THREADS)
    np.testing.assert_array_equal(c, [7, 2, 1, 0])
    golden(print_program(flat))


def refused(body: str, shared: str = "f32[64]") -> str:
    with pytest.raises(LoweringError) as caught:
        lower(parse_program(program_of(body, shared)), GENERIC_THREADS, verify=True)
    return f"{caught.value}\n"


def test_refused_to_read_another_threads_memory(golden: Golden) -> None:
    body = 'with alloc("local", f32[64]) as L:\n' + indented(
        phase("x", "L[t] = A[i, t]") + phase("x", "C[i, u] = L[63 - u]", var="u")
    )
    golden(refused(body))


def in_warp_memory(index: str, width: int, rows: int = 2) -> str:
    """Rows of threads each of which writes to warp memory, and another loop that reads it at *index*."""
    write = phase("x", "W[t] = A[i, y * 8 + t % 8]", count=width)
    read = phase("x", f"C[i, z * 8 + u % 8] = W[{index}]", var="u", count=8)
    written = f'for y in bound(0, {rows}, thread="threadIdx.y"):\n' + indented(write)
    return f'with alloc("warp", f32[{width}]) as W:\n' + indented(
        written + f'for z in bound(0, {rows}, thread="threadIdx.y"):\n' + indented(read)
    )


def test_refused_warp_memory_of_several_rows(golden: Golden) -> None:
    """Written by two rows, which in turn would see the last; it is the two that conflict, not the values."""
    golden(refused(in_warp_memory("31 - u", 32)))


def test_refused_warp_memory_where_rows_are_no_warps(golden: Golden) -> None:
    golden(refused(in_warp_memory("15 - u", 16, 3)))


def test_refused_to_loop_differently_around_a_barrier(golden: Golden) -> None:
    inside = "for k in range(0, y + 1):\n" + indented(
        phase("x", "S[t] = A[i, t]") + phase("x", "C[i, u] = S[63 - u]", var="u")
    )
    golden(refused('for y in bound(0, 2, thread="threadIdx.y"):\n' + indented(inside)))


def test_refused_blocks_inside_blocks(golden: Golden) -> None:
    golden(
        refused(
            WRITE + 'for j in bound(0, 2, thread="blockIdx.y"):\n' + indented(phase("x", "C[j, u] = A[i, u]", var="u"))
        )
    )


def test_refused_too_many_threads(golden: Golden) -> None:
    golden(refused('for y in bound(0, 32, thread="threadIdx.y"):\n' + indented(phase("x", "C[i, t] = A[i, t]"))))


def test_refused_too_much_shared_memory(golden: Golden) -> None:
    body = phase("x", "S[t * 300] = A[i, t]", var="t") + phase("x", "C[i, u] = S[18900 - u * 300]", var="u")
    golden(refused(body, shared="f32[20000]"))


def test_refused_too_many_registers(golden: Golden) -> None:
    inside = [f"        R[{m}] = A[i, (t + {m}) % 64]\n" for m in range(3)]
    inside += [
        "        for m in range(0, 400):\n            R[m] = R[(m * 7) % 400] + 1.0\n",
        "        C[i, t] = R[t]\n",
    ]
    body = 'for t in bound(0, 64, thread="threadIdx.x"):\n    with alloc("register", f32[400]) as R:\n' + "".join(
        inside
    )
    golden(refused(body))


def test_refused_memory_that_the_machine_has_not(golden: Golden) -> None:
    body = 'with alloc("acc", f32[64]) as L:\n' + indented(
        phase("x", "L[t] = A[i, t]") + phase("x", "C[i, u] = L[u]", var="u")
    )
    golden(refused(body))


def test_refused_shared_memory_outside_of_blocks(golden: Golden) -> None:
    text = 'def main(A: f32[8], C: f32[8]):\n    S = alloc("shared", f32[8])\n'
    text += "".join(
        [
            f'    for {v} in bound(0, 8, thread="threadIdx.x"):\n        {s}\n'
            for v, s in (("t", "S[t] = A[t]"), ("u", "C[u] = S[u]"))
        ]
    )
    with pytest.raises(LoweringError) as caught:
        lower(parse_program(text), GENERIC_THREADS)
    golden(f"{caught.value}\n")


def indented(text: str) -> str:
    return "".join([f"    {x}\n" for x in text.splitlines()])


@st.composite
def arcs(draw: st.DrawFn) -> tuple[list[list[int]], int]:
    size = draw(st.integers(1, 7))
    found = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(1, size)), max_size=6))
    return [[(start + k) % size for k in range(length)] for start, length in found], size


@tried(50, 200, arcs())
def test_the_fewest_points_that_hit_all_arcs(given_: tuple[list[list[int]], int]) -> None:
    runs, size = given_
    made = fewest(runs, size)
    assert all(set(a) & set(made) for a in runs)
    smaller = [c for n in range(len(made)) for c in combinations(range(size), n)]
    assert not any(all(set(a) & set(c) for a in runs) for c in smaller)
