"""Kernels as OpenCL C: threads, memories and barriers, and what the language has no words for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lower.threaded import tiled_matmul
from tests.schedule.programs import matmul

from weft.codegen import Module, backend_of, compile_program, link
from weft.loop import parse_program
from weft.lower import lower
from weft.lower.grid.narrow_indices import narrow_indices
from weft.support.errors import LoweringError, ToolchainError
from weft.targets.grid_machines import OPENCL


def test_a_tiled_product(golden: Callable[[str], None]) -> None:
    flat = lower(tiled_matmul(matmul(64, 64, 64)).program, OPENCL, verify=True)
    golden(backend_of(OPENCL).listing(flat, OPENCL))


def test_a_warp_has_no_barrier_of_its_own() -> None:
    text = """
@function(kernel=1)
def f(x: f32[64]):
    for b in bound(0, 1, thread="blockIdx.x"):
        for t in bound(0, 64, thread="threadIdx.x"):
            call("weft.barrier.warp")
            x[t] = 0.0
"""
    with pytest.raises(LoweringError, match=r"OpenCL C has no weft\.barrier\.warp"):
        compile_program(parse_program(text), OPENCL)


def halved() -> Module:
    text = """
@function(kernel=1)
def f(x: f32[64]):
    for b in bound(0, 1, thread="blockIdx.x"):
        for t in bound(0, 64, thread="threadIdx.x"):
            x[t] = x[t] * 0.5
"""
    return compile_program(parse_program(text), OPENCL)


def test_kernels_of_one_name_are_not_joined() -> None:
    with pytest.raises(ToolchainError, match="the kernel f is defined twice"):
        link([halved(), halved()], OPENCL)


def counting(params: str, line: str) -> str:
    """Returns the source of a kernel with a loop over k in each of 64 threads."""
    text = f"""
@function(kernel=1)
def f({params}):
    for b in bound(0, 1, thread="blockIdx.x"):
        for t in bound(0, 64, thread="threadIdx.x"):
            {line}
"""
    return backend_of(OPENCL).listing(narrow_indices(parse_program(text), OPENCL), OPENCL)


def test_indices_of_32_bits_where_they_fit() -> None:
    known = counting("x: f32[6400]", "for k in range(0, 100):\n                x[k * 64 + t] = 0.0")
    assert "for (int32_t k = 0; k < 100; k++)" in known
    assert "x[(int64_t)((k * 64) + t)] = 0.0f;" in known
    for params, end in (("x: f32[n * 64], n: i64", "n"), ("x: f32[6400]", "3000000000")):
        unknown = counting(params, f"for k in range(0, {end}):\n                x[k * 64 + t] = 0.0")
        assert "for (int64_t k = 0;" in unknown
        assert "x[((k * 64) + (int64_t)t)] = 0.0f;" in unknown


def test_what_memory_holds_wraps_around() -> None:
    made = counting("x: i32[64], y: i32[64]", "x[t] = y[t] * i32(3) + i32(t)")
    assert "(int32_t)((uint32_t)(int32_t)((uint32_t)y[(int64_t)t] * (uint32_t)3) + (uint32_t)t)" in made
