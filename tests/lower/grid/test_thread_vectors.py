"""Threads load and store vectors of elements that lie side by side: counted, on devices, and as text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.lower.threaded import run_case
from tests.schedule.fuzz.grid_checking import GridCase, OnDevice, check_run
from tests.schedule.programs import Array, Case, case, matmul
from tests.support.devices import needs_nvrtc, needs_opencl, needs_webgpu

from weft import te
from weft.codegen import backend_of, compile_program
from weft.codegen.interp.threads.counters import Counters
from weft.cost import SharedTile, ThreadBlock, parse_plan
from weft.ir import maximum
from weft.lower import lower
from weft.schedule import Schedule, apply_plan
from weft.support.dtypes import f32
from weft.targets import Target
from weft.targets.cuda_machines import cuda
from weft.targets.grid_machines import OPENCL, WEBGPU

SECTOR = 32


def scaled(rows: int, n: int) -> Case:
    """`max(2 x + b, 0)`, with a bias for each column."""
    x, b = te.placeholder((rows, n), f32, "X"), te.placeholder((n,), f32, "B")
    y = te.compute((rows, n), lambda i, j: maximum(x[i, j] * 2.0 + b[j], 0.0), "C")

    def expected(u: Array, v: Array) -> list[Array]:
        return [np.maximum(u * np.float32(2) + v, 0)]

    return case([x, b], [y], expected)


def shifted(rows: int, n: int) -> Case:
    """`x` one column further, which no vector at a multiple of four reads."""
    x = te.placeholder((rows, n + 4), f32, "X")
    y = te.compute((rows, n), lambda i, j: x[i, j + 1] + 1.0, "C")
    return case([x], [y], lambda u: [u[:, 1 : n + 1] + 1])


def in_threads(of: Case, lanes: int, tile: SharedTile | None = None) -> Schedule:
    block = "" if tile is None else f"C: {tile}\n"
    return apply_plan(of.program, parse_plan(f"*: {ThreadBlock(64, lanes)}\n{block}"))


def counted(of: Case, lanes: int, tile: SharedTile | None = None) -> Counters:
    return run_case(of, lower(in_threads(of, lanes, tile).program, OPENCL, verify=True), OPENCL)


TILES = [SharedTile(8, 8, 4, 4, 16, lanes=4), SharedTile(8, 16, 8, 4, 16, unroll=True, lanes=4)]


@pytest.mark.parametrize("n", [128, 100])
def test_a_vector_is_one_request(n: int) -> None:
    of = scaled(16, n)
    one, four = counted(of, 1), counted(of, 4)
    assert one.requests == 3 * -(-16 * n // 32)
    assert four.requests == 3 * -(-16 * n // 32 // 4)
    assert four.of_buffer["C"] == one.of_buffer["C"] == 16 * n * 4 // SECTOR


def test_rows_that_are_not_whole_vectors_are_accessed_by_element() -> None:
    of = scaled(16, 30)
    assert counted(of, 4).requests == counted(of, 1).requests


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_a_tile_fetches_vectors_and_meets_no_bank_twice(tile: SharedTile) -> None:
    of = matmul(64, 64, 64)
    found, single = counted(of, 1, tile), counted(of, 1, replace(tile, lanes=1))
    assert found.of_buffer == single.of_buffer
    assert (found.conflicts, found.ways, found.divergent) == (0, 1, 0)
    written = single.of_buffer["C"]
    stores = 64 * 64 // 32
    assert (found.requests - stores) * 4 == single.requests - stores
    assert written == 64 * 64 * 4 // SECTOR


CASES = [
    (scaled(16, 128), 4, None),
    (shifted(16, 128), 4, None),
    *[(matmul(64, 64, 64), 1, tile) for tile in TILES],
]


def on_device(target: Target) -> None:
    made = [
        GridCase(f"case {n}", of, s := in_threads(of, lanes, tile), lower(s.program, target, verify=True))
        for n, (of, lanes, tile) in enumerate(CASES)
    ]
    device = OnDevice(made, target)
    for n, c in enumerate(made):
        check_run(c, device.launch_of(n))
    device.device.close()


@needs_opencl
def test_on_a_device_with_opencl() -> None:
    on_device(OPENCL)


@needs_webgpu
def test_on_a_device_with_webgpu() -> None:
    on_device(WEBGPU)


@needs_nvrtc
def test_nvrtc_compiles_them() -> None:
    for of, lanes, tile in CASES:
        assert compile_program(lower(in_threads(of, lanes, tile).program, cuda("sm_90")), cuda("sm_90")).data


@pytest.mark.parametrize(
    ("target", "load", "store"),
    [
        (OPENCL, "vload4(0, X + ", "vstore4("),
        (WEBGPU, "X: array<vec4<f32>>;", "] = vec4<f32>("),
        (cuda("sm_90"), "(const float4 *)(X + ", "*(float4 *)(C + "),
    ],
    ids=["opencl", "webgpu", "cuda"],
)
def test_the_words_of_languages(target: Target, load: str, store: str) -> None:
    def text(of: Case) -> str:
        return backend_of(target).listing(lower(in_threads(of, 4).program, target), target)

    assert load in text(scaled(16, 128))
    assert store in text(scaled(16, 128))
    assert (load in text(shifted(16, 128))) == (target is OPENCL)  # the others want them at a multiple of their size
