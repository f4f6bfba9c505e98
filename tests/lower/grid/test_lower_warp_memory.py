"""The memory of a warp as registers and shuffles: which accesses can be, where shuffles stand, and what the threads compute."""

from __future__ import annotations

import numpy as np
import pytest

from weft.codegen.interp.faults import ExecutionError
from weft.codegen.interp.threads.counters import Counters
from weft.codegen.interp.threads.races import DivergenceError
from weft.codegen.interp.threads.thread_machine import run_threads
from weft.loop import WARP_BARRIER, WARP_SHUFFLE, Call, Program, parse_program, statements, verify
from weft.lower.grid.lower_warp_memory import lower_warp_memory
from weft.targets.grid_machines import GENERIC_THREADS

HEAD = """
@function(kernel=1)
def f(x: f32[256], y: f32[256], n: i64[8]):
    for b in bound(0, 1, thread="blockIdx.x"):
        w = alloc("warp", f32[{size}])
"""


def kernel(threads: dict[str, int], *lines: str, size: int = 32) -> Program:
    """A kernel of one block, whose threads run *lines*; `tz`, `ty` and `tx` are their numbers."""
    text, depth = HEAD.format(size=size), 8
    for axis, count in threads.items():
        text += f'{" " * depth}for t{axis[-1]} in bound(0, {count}, thread="{axis}"):\n'
        depth += 4
    made = parse_program(text + "".join([f"{' ' * depth}{line}\n" for line in lines]))
    verify(made, flat=True)
    return made


def calls(program: Program, callee: str) -> int:
    return sum(isinstance(s, Call) and s.callee == callee for f in program.functions for s in statements(f.body))


def run(program: Program, n: int = 0) -> tuple[np.ndarray[tuple[int], np.dtype[np.float32]], Counters]:
    x, y = np.arange(256, dtype=np.float32) * 3 + 1, np.full(256, -1, np.float32)
    counters = run_threads(program, {"x": x, "y": y, "n": np.full(8, n, np.int64)}, GENERIC_THREADS)
    return y, counters


def check(program: Program, shuffles: int, n: int = 0) -> Program:
    """Lowers, fails unless that leaves so many shuffles and no barrier, and the threads store the same as before."""
    flat = lower_warp_memory(program, GENERIC_THREADS)
    verify(flat, flat=True)
    assert (calls(flat, WARP_SHUFFLE), calls(flat, WARP_BARRIER)) == (shuffles, 0), str(flat)
    assert '"warp"' not in str(flat)
    before, after = run(program, n), run(flat, n)
    np.testing.assert_array_equal(before[0], after[0])
    assert (before[0] != -1).any()
    return flat


WRITE = ("w[tx] = x[tx]", 'call("weft.barrier.warp", w.at(0))')


@pytest.mark.parametrize("lane", ["(tx + 16) % 32", "31 - tx", "0", "tx", "tx // 4 * 4"])
def test_a_load_is_a_shuffle(lane: str) -> None:
    check(kernel({"threadIdx.x": 32}, *WRITE, f"y[tx] = w[{lane}] * 2.0"), 1)


def test_a_row_for_each_warp() -> None:
    lines = (
        "w[tx // 32 * 32 + tx % 32] = x[tx]",
        'call("weft.barrier.warp", w.at(0))',
        "y[tx] = w[tx // 32 * 32 + (tx % 32 + 8) % 32]",
    )
    _, counters = run(check(kernel({"threadIdx.x": 128}, *lines, size=128), 1))
    assert counters.shuffles == 4


def test_warps_of_two_axes() -> None:
    lines = ("w[ty * 4 + tx] = x[tz * 32 + ty * 4 + tx]", 'call("weft.barrier.warp", w.at(0))')
    threads = {"threadIdx.z": 3, "threadIdx.y": 8, "threadIdx.x": 4}
    check(kernel(threads, *lines, "y[tz * 32 + ty * 4 + tx] = w[ty * 4 + (tx + 2) % 4]"), 1)


def test_one_shuffle_for_a_value_that_is_used_twice() -> None:
    check(kernel({"threadIdx.x": 32}, *WRITE, "y[tx] = w[31 - tx] * w[31 - tx] + w[0]"), 2)


def test_all_threads_shuffle_for_a_load_of_some() -> None:
    """A shuffle stands before the outermost condition, not before one on which the threads of a warp agree."""
    some = kernel({"threadIdx.x": 32}, *WRITE, "if tx < 5:", "    if x[tx] > 4.0:", "        y[tx] = w[tx + 1]")
    text = str(check(some, 1))
    assert text.index("weft.shuffle") < text.index("if tx < 5")
    lines = ("w[tx] = x[ty * 32 + tx]", 'call("weft.barrier.warp", w.at(0))')
    threads = {"threadIdx.y": 2, "threadIdx.x": 32}
    text = str(check(kernel(threads, *lines, "if ty < 1:", "    y[tx] = w[31 - tx]"), 1))
    assert text.index("if ty < 1") < text.index("weft.shuffle")


def test_a_loop_that_threads_leave_at_different_times() -> None:
    text = str(check(kernel({"threadIdx.x": 32}, *WRITE, "for k in range(0, tx):", "    y[tx] = y[tx] + w[3]"), 1))
    assert text.index("weft.shuffle") < text.index("for k in")


def test_threads_agree_on_what_memory_of_all_says() -> None:
    """A shuffle is inside of a loop whose length all threads read, and before one whose length each has for itself."""
    text = str(
        check(kernel({"threadIdx.x": 32}, *WRITE, "for k in range(0, n[0]):", "    y[tx] = w[(tx + k) % 32]"), 1, n=5)
    )
    assert text.index("for k in") < text.index("weft.shuffle")
    own = ('c = alloc("register", i64[1])', "c[0] = n[tx % 8]")
    text = str(check(kernel({"threadIdx.x": 32}, *WRITE, *own, "for k in range(0, c[0]):", "    y[tx] = w[5]"), 1, n=5))
    assert text.index("weft.shuffle") < text.index("for k in")


def test_a_value_with_a_name() -> None:
    check(kernel({"threadIdx.x": 32}, *WRITE, "v = let(w[31 - tx])", "y[tx] = v + w[0]"), 2)


@pytest.mark.parametrize(
    "lines",
    [
        ("w[31 - tx] = x[tx]", "y[tx] = w[tx]"),  # the elements of others
        (*WRITE, "if tx < 8:", "    w[tx] = 0.0", "    y[tx] = w[3]"),  # stored and loaded by some
        (*WRITE, "if tx < 8:", "    for k in range(0, 3):", "        y[tx] = w[tx + k]"),  # of no known number
        (*WRITE, "for k in range(0, n[0]):", "    y[tx] = w[k]"),
        ("if tx < 8:", "    w[tx] = x[tx]", "    w[0] = 1.0"),
    ],
    ids=["of others", "stored by some", "in a loop of some", "a loop of unknown length", "one of all"],
)
def test_memory_of_warps_stays_where_a_shuffle_would_not_do(lines: tuple[str, ...]) -> None:
    program = kernel({"threadIdx.x": 32}, *lines)
    assert lower_warp_memory(program, GENERIC_THREADS) is program


def test_blocks_of_no_whole_warps() -> None:
    program = kernel({"threadIdx.x": 24}, *WRITE, "y[tx] = w[23 - tx]")
    assert lower_warp_memory(program, GENERIC_THREADS) is program


def test_the_machine_refuses_shuffles_of_some_threads() -> None:
    lines = ('own = alloc("register", f32[1])', "own[0] = x[tx]")
    shuffle = 'call("weft.shuffle.warp", own.at(0), own.at(0), {})'
    with pytest.raises(DivergenceError, match="only 4 of the 32 threads of warp 0"):
        run(kernel({"threadIdx.x": 32}, *lines, "if tx < 4:", f"    {shuffle.format('0')}"))
    with pytest.raises(ExecutionError, match="thread 0 of block 0 asks thread 32 of its warp, which there is not"):
        run(kernel({"threadIdx.x": 32}, *lines, shuffle.format("32")))
    with pytest.raises(ExecutionError, match="thread 32 of block 0 asks thread 9 of its warp, which there is not"):
        run(kernel({"threadIdx.x": 40}, *lines, shuffle.format("9")))
