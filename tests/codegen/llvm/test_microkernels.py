"""GEMM microkernels keep their accumulators in registers, and have nothing but loads and multiply-adds in the k loop."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS
from tests.support.jit import load
from tests.support.kernels import gemm, inner_loop, spills
from tests.support.processors import every_core

from weft.codegen.llvm.object_code import assembly
from weft.targets import cpu

TILES = [
    ("avx512", 14, 32, 16),
    ("avx512", 6, 64, 16),
    ("avx512", 8, 48, 16),
    ("avx512", 6, 64, 64),
    ("avx2", 6, 16, 8),
    ("avx2", 4, 24, 8),
    ("sse4", 4, 8, 4),
]
ONLY_SSE4 = {"barcelona", "bdver1", "bdver2", "nehalem", "sandybridge"}
"""Cores without AVX2. Code for a level that a core lacks is never timed like it."""


@pytest.mark.sampled(8)
@pytest.mark.parametrize("tune", every_core())
def test_register_tiles_do_not_spill_whatever_the_core(tune: str) -> None:
    """LLVM times instructions by the core, and spills tiles that fit if it knows nothing of one."""
    for level, mr, nr, lanes in TILES:
        if level == "sse4" or tune not in ONLY_SSE4:
            program = gemm(2 * mr, 2 * nr, 64, mr, nr, lanes, unroll=4)
            assert spills(assembly(program, cpu(level).having(tune=tune))) == [], f"{level}, {mr} x {nr}"


@pytest.mark.parametrize(("level", "mr", "nr", "lanes"), TILES)
@pytest.mark.parametrize(("unroll", "packed"), [(1, False), (4, False), (2, True)])
def test_register_tiles_do_not_spill(level: str, mr: int, nr: int, lanes: int, unroll: int, packed: bool) -> None:
    target = cpu(level)
    per_register = target.lanes(32)
    text = assembly(gemm(2 * mr, 2 * nr, 64, mr, nr, lanes, unroll=unroll, packed=packed), target)
    assert spills(text) == []
    product = "vfmadd" if target.isa.fma else "mulps"
    body = inner_loop(text, product)
    products = sum(product in x for x in body)
    assert products == mr * nr // per_register * unroll
    memory = sum("(" in x and not x.startswith("lea") for x in body)
    assert memory == (mr + nr // per_register) * unroll


@pytest.mark.parametrize(("level", "mr", "nr", "lanes"), [t for t in TILES if t[0] in TARGETS])
def test_microkernels_compute_the_product(level: str, mr: int, nr: int, lanes: int) -> None:
    m, n, k = 3 * mr, 2 * nr, 40
    _, run = load(gemm(m, n, k, mr, nr, lanes, unroll=4), TARGETS[level])
    rng = np.random.default_rng(0)
    a, b = rng.integers(-8, 8, (m, k)).astype(np.float32), rng.integers(-8, 8, (k, n)).astype(np.float32)
    panels = np.ascontiguousarray(b.reshape(k, n // nr, nr).transpose(1, 0, 2))
    got = np.zeros((m, n), np.float32)
    run(a, panels, got)
    np.testing.assert_array_equal(got, a @ b)


def test_the_image_runs_wherever_it_is_mapped() -> None:
    program = gemm(6, 16, 8, 6, 16, 8)
    first, _ = load(program, TARGETS["sse4"])
    second, _ = load(program, TARGETS["sse4"])
    assert first.base != second.base
    assert first.image.code == second.image.code
    a, b = np.ones((6, 8), np.float32), np.ones((8, 16), np.float32)
    for machine in (first, second):
        got = np.zeros((6, 16), np.float32)
        machine.call("gemm", *[ctypes.c_void_p(x.ctypes.data) for x in (a, b, got)])
        assert (got == 8).all()
