"""Programs for devices whose blocks are run by cores with vectors: by the interpreter of threads, and with OpenCL."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.schedule import programs
from tests.schedule.fuzz.grid_checking import GridCase, OnDevice, check_run
from tests.schedule.programs import Case
from tests.support.devices import needs_opencl

from weft.codegen import backend_of
from weft.loop import For as Loop
from weft.loop import Kernel, LoopKind, find_note, parse_program, print_program, statements, verify
from weft.lower import lower
from weft.lower.grid.bind_cores import bind_cores
from weft.lower.grid.split_host_device import launch_of
from weft.runtime.devices import OpenCLDeviceFacts
from weft.schedule import schedule_program
from weft.targets.grid_machines import OPENCL
from weft.targets.opencl_machines import target_of

FACTS = OpenCLDeviceFacts(
    handle=0,
    name="cores",
    is_gpu=False,
    most_threads=4096,
    shared_bytes=1 << 19,
    rounds_divisions=True,
    units=2,
    vector_floats=8,
    shares_in_global=True,
    cache_bytes=32 << 20,
    cache_line=64,
    memory_bytes=1 << 34,
)
CORES = target_of(FACTS)

CASES: dict[str, Case] = {
    "product": programs.matmul(64, 64, 64),
    "odd product": programs.matmul(37, 50, 21),
    "product with an epilogue": programs.bias_relu(33, 48, 40),
    "convolution": programs.conv2d(8, 12, 12, 16),
    "rows": programs.rows(16, 40),
    "pooling": programs.pool(18, 32),
    "blur": programs.blur(24, 32),
    "gather": programs.gather(12, 24),
    "sizes of a call": programs.symbolic_rows(9, 20),
    "a product of sizes of a call": programs.symbolic_matmul(17, 12),
    "recurrence": programs.recurrence(4, 24),
}


def lowered(name: str) -> GridCase:
    s = schedule_program(CASES[name].program, CORES)
    flat = lower(s.program, CORES, verify=True)
    verify(flat, flat=True)
    return GridCase(name, CASES[name], s, flat)


def test_facts_decide() -> None:
    assert not CORES.has_threads
    assert (CORES.lanes(32), CORES.lanes(8), CORES.cores) == (8, 16, 2)  # the language has no more than 16 lanes
    assert target_of(replace(FACTS, shares_in_global=False)) is OPENCL
    assert target_of(replace(FACTS, vector_floats=1)) is OPENCL
    assert OPENCL.has_threads


@pytest.mark.parametrize("name", CASES)
def test_blocks_of_one_thread_compute_what_they_should(name: str) -> None:
    c = lowered(name)
    assert c.flat is not None
    counters = check_run(c)
    assert counters.barriers == 0
    kernels = [f for f in c.flat.functions if find_note(f.notes, Kernel) is not None]
    assert kernels
    assert {launch_of(f).threads for f in kernels} == {(1, 1, 1)}


@needs_opencl
def test_on_a_device() -> None:
    cases = [lowered(name) for name in CASES]
    device = OnDevice(cases, CORES)
    for n, c in enumerate(cases):
        check_run(c, device.launch_of(n))
    device.device.close()


def test_products_are_of_whole_vectors() -> None:
    c = lowered("product")
    assert c.flat is not None
    text = backend_of(CORES).listing(c.flat, CORES)
    assert "vload16(0, B + " in text
    assert "vload16(0, C_register" not in text  # the tile is in registers, as whole vectors
    assert "*(float16 *)(C_register + 0) = " in text
    assert "barrier" not in text
    assert "local float" not in text


PARALLEL = """
def f(x: f32[64], y: f32[64]):
    for i in parallel(2, 6):
        a = alloc("global", f32[4])
        for j in parallel(0, 4):
            a[j] = x[i * 4 + j]
        b = alloc("global", f32[32768])
        b[0] = a[0]
        y[i] = b[0]
    y[0] = x[0]
"""


def test_memory_of_iterations() -> None:
    made = bind_cores(parse_program(PARALLEL))
    assert not [s for s in statements(made.entry.body) if isinstance(s, Loop) and s.kind is LoopKind.PARALLEL]
    text = print_program(made)
    assert 'alloc("local", f32[4])' in text
    assert 'alloc("global", f32[131072])' in text or 'alloc("global", f32[4 * 32768])' in text
    assert text.count('thread="blockIdx.x"') == 2
