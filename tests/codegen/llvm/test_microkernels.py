"""GEMM microkernels keep their accumulators in registers, and have nothing but loads and multiply-adds in the k loop."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS
from tests.support.jit import load
from tests.support.kernels import gemm

from weft.codegen.llvm.compile import assembly
from weft.targets.cpu import cpu

TILES = [
    ("avx512", 14, 32, 16), ("avx512", 6, 64, 16), ("avx512", 8, 48, 16), ("avx512", 6, 64, 64), ("avx2", 6, 16, 8),
    ("avx2", 4, 24, 8), ("sse4", 4, 8, 4),
]  # fmt: skip
LABEL = re.compile(r"^\.L\w+:$")


def inner_loop(text: str, wanted: str) -> list[str]:
    """The instructions of the loop (label to jump back) that has the most *wanted* instructions."""
    lines = [line.strip() for line in text.splitlines()]
    best: list[str] = []
    for begin, line in enumerate(lines):
        if LABEL.match(line):
            back = [k for k in range(begin, len(lines)) if re.match(rf"j\w+\s+{re.escape(line[:-1])}$", lines[k])]
            body = lines[begin + 1 : back[0]] if back else []
            if (
                body
                and not any(LABEL.match(x) for x in body)
                and sum(wanted in x for x in body) > sum(wanted in x for x in best)
            ):
                best = body
    return best


@pytest.mark.parametrize(("level", "mr", "nr", "lanes"), TILES)
@pytest.mark.parametrize(("unroll", "packed"), [(1, False), (4, False), (2, True)])
def test_register_tiles_do_not_spill(level: str, mr: int, nr: int, lanes: int, unroll: int, packed: bool) -> None:
    target = cpu(level)
    per_register = target.lanes(32)
    text = assembly(gemm(2 * mr, 2 * nr, 64, mr, nr, lanes, unroll=unroll, packed=packed), target)
    vector_moves = [line for line in text.splitlines() if "mov" in line and "rsp" in line and "mm" in line]
    assert vector_moves == []
    product = "vfmadd" if target.fma else "mulps"
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
