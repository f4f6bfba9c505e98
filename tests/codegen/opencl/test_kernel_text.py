"""Kernels as OpenCL C: threads, memories and barriers, and what the language has no words for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lower.threaded import tiled_matmul
from tests.schedule.programs import matmul

from weft.codegen import Module, backend_of, compile_program, link
from weft.loop import parse_program
from weft.lower import lower
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
