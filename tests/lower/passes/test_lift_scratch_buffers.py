"""Working buffers as parameters: which are lifted, and that the kernel then computes the same in anybody's memory."""

from __future__ import annotations

import numpy as np

from weft.codegen.interp import run
from weft.loop import parse_program, print_program, verify
from weft.lower import lift_scratch_buffers, size_of

TEXT = """
def twice(x: f32[2048], y: f32[2048], n: i64):
    small = alloc("global", f32[4])
    small[0] = 2.0
    for k in range(0, n):
        large = alloc("global", f32[2048])
        for i in range(0, 2048):
            large[i] = x[i] * small[0]
        open = alloc("global", f32[n * 2048])
        for i_1 in range(0, 2048):
            open[i_1] = large[i_1]
        for i_2 in range(0, 2048):
            y[i_2] = open[i_2]
"""


def test_large_buffers_of_known_size_become_parameters_before_the_sizes() -> None:
    lifted, buffers = lift_scratch_buffers(parse_program(TEXT))
    verify(lifted)
    assert [(b.name, size_of(b)) for b in buffers] == [("large", 8192)]
    assert "def twice(x: f32[2048], y: f32[2048], large: f32[2048], n: i64):" in print_program(lifted)
    assert print_program(lifted).count("alloc") == 2


def test_the_kernel_computes_the_same_in_memory_of_any_contents() -> None:
    x, y = np.arange(2048, dtype=np.float32), np.zeros(2048, np.float32)
    lifted, _ = lift_scratch_buffers(parse_program(TEXT))
    run(lifted, [x, y, np.full(2048, np.nan, np.float32), 3])
    np.testing.assert_array_equal(y, 2 * x)


def test_a_program_without_such_buffers_stays_as_it_is() -> None:
    program = parse_program("def copy(x: f32[4], y: f32[4]):\n    y[0] = x[0]\n")
    assert lift_scratch_buffers(program) == (program, ())


def test_what_a_task_allocates_is_its_own() -> None:
    text = """
def main(y: f32[8]):
    main_task(0, 8, y.at(0))

def main_task(begin: i64, end: i64, y: f32[8]):  # task
    own = alloc("global", f32[4096])
    for i in range(begin, end):
        own[i] = 1.0
        y[i] = own[i]
"""
    program = parse_program(text)
    assert lift_scratch_buffers(program)[0] is program
