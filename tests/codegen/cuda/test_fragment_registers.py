"""Matrices of warps become registers of threads, in the order of an instruction; accesses of others' elements are refused."""

from __future__ import annotations

import pytest

from weft.codegen.cuda.fragment_registers import place_fragments
from weft.loop import Program, parse_program
from weft.support.errors import LoweringError
from weft.targets.cuda_machines import cuda

SM_90 = cuda("sm_90")
KERNEL = """
@function(kernel=1)
def f(x: f16[64]):
    for b in bound(0, 1, thread="blockIdx.x"):
        A = alloc("fragment", f16[{size}])
        B = alloc("swizzled", f16[8192])
        for tz in bound(0, 4, thread="threadIdx.z"):
            for ty in bound(0, 8, thread="threadIdx.y"):
                for tx in bound(0, {quads}, thread="threadIdx.x"):
                    C = alloc("register", f32[32])
                    for r in unrolled(0, 2):
                        for i in unrolled(0, 16):
                            {write}
                    {then}
                    for s in unrolled(0, 4):
                        for j in unrolled(0, 8):
                            call("cuda.wgmma_registers_f16", C.at(j * 4), A.at({a}), B.at({b}), 2, {ta}, {ua}, 1, 64)
"""
RIGHT = {
    "size": "4096",
    "quads": "4",
    "write": "A[tz * 1024 + (r * 8 + ty) * 64 + i // 2 * 8 + tx * 2 + i % 2] = x[i]",
    "then": 'call("weft.barrier.warp")',
    "a": "tz * 1024 + ty * 64 + s * 16",
    "b": "j * 512 + s * 16 + tx * 128",
    "ta": "512",
    "ua": "1",
}


def kernel(**change: str) -> Program:
    return parse_program(KERNEL.format(**{**RIGHT, **change}))


def test_the_order_of_registers() -> None:
    """Pairs of a row, then those of the row 8 further on, then the next 8 terms."""
    found = str(place_fragments(kernel(), SM_90))
    assert 'A = alloc("register", f16[32])' in found
    assert "A[r * 2 + i // 2 * 4 + i % 2] = x[i]" in found
    assert "A.at(s * 8)" in found


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"write": "A[tz * 1024 + (r * 8 + ty) * 64 + i * 4 + tx] = x[i]"}, "is accessed by other threads"),
        (
            {"write": "A[tz * 1024 + (r + ty * 2) * 64 + i // 2 * 8 + tx * 2 + i % 2] = x[i]"},
            "is accessed by other threads",
        ),
        ({"write": "A[(r * 8 + ty) * 64 + i // 2 * 8 + tx * 2 + i % 2] = x[i]"}, "is accessed by other threads"),
        ({"then": "x[tx] = A[tx]"}, "is read, which products alone do"),
        ({"quads": "2"}, "is not accessed by 4 x 8 threads along x and y"),
        ({"a": "tz * 1024 + ty * 64 + s * 8"}, "takes a left factor that is not a whole one"),
        ({"ua": "2"}, "has a left factor whose terms are not side by side"),
        ({"ta": "8"}, "has a left factor whose rows are not whole products apart"),
    ],
)
def test_what_threads_do_not_have(change: dict[str, str], told: str) -> None:
    with pytest.raises(LoweringError, match=told):
        place_fragments(kernel(**change), SM_90)
