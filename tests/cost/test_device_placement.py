"""The times by which nodes are placed: of many threads, of steps after one another, and of copies."""

from __future__ import annotations

import pytest

from weft.cost import NodeWork, crossing_time, device_time, processor_time, work_of
from weft.loop import parse_program
from weft.targets import parse_target

CUDA, CPU = parse_target("cuda -arch=sm_90+cpu -cores=2"), parse_target("cpu -cores=2")

SUMS = """
def sums(x: f32[64, 1000], y: f32[64, 1000]):
    for i in range(0, 64):
        for t in range(0, 1000):
            with block("y", vi=spatial(64, i), vt=ordered(1000, t)):
                y[vi, vt] = x[vi, vt]
"""

PRODUCT = """
def product(a: f32[8, 16], b: f32[16, 4], c: f32[8, 4]):
    for i in range(0, 8):
        for j in range(0, 4):
            for k in range(0, 16):
                with block("c", vi=spatial(8, i), vj=spatial(4, j), vk=reduce(16, k)):
                    with init():
                        c[vi, vj] = 0.0
                    c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
"""

SEARCH = """
def search(x: f32[64], y: i64[64]):
    with block("y", v=opaque(1, 0)):
        for i in range(0, 64):
            at = alloc("local", i64[1])
            at[0] = 0
            while at[0] < 64:
                at[0] = at[0] + 1
            y[i] = at[0]
"""


def test_steps_after_one_another_are_a_chain() -> None:
    work = work_of(parse_program(SUMS), 512000.0)
    assert work == NodeWork(64000.0, 1000.0, 512000.0)
    assert device_time(work, CUDA) > 10 * processor_time(work, CPU.having(memory_speed=9.0)) > crossing_time(0)


def test_sums_that_may_be_in_any_order_are_none() -> None:
    work = work_of(parse_program(PRODUCT), 0.0)
    assert (work.operations, work.chain) == (8 * 4 * 16, 1.0)


def test_a_loop_whose_end_its_values_tell_counts_as_several_steps() -> None:
    work = work_of(parse_program(SEARCH), 0.0)
    assert work.chain > 64 * 16


def test_many_threads_are_faster_on_the_device() -> None:
    work = NodeWork(1e9, 1.0, 1e7)
    assert 10 * device_time(work, CUDA) < processor_time(work, CPU)


def test_a_device_that_is_a_processor_is_no_faster_than_that() -> None:
    device = CUDA.having(scopes=CPU.scopes, vector_bits=512)
    work = NodeWork(1e6, 1000.0, 1e6)
    assert not device.has_threads
    assert device_time(work, device) == processor_time(work, CPU)


@pytest.mark.parametrize("nbytes", [0.0, 1e6])
def test_copies_wait_and_move_bytes(nbytes: float) -> None:
    assert crossing_time(nbytes) >= nbytes / 25
    assert crossing_time(nbytes) > 1000
