"""Blocks become plain loops and guards: their inits, their predicates, and blocks inside blocks."""

from __future__ import annotations

from collections.abc import Callable

from tests.lower.running import before_and_after

from weft.lower.buffers.lower_blocks import lower_blocks

Golden = Callable[[str], None]

TILED_SUM = """
def main(A: f32[30, 6], C: f32[30]):
    for io in range(0, 4):
        for k in range(0, 6):
            for ii in range(0, 8):
                with block("C", vi=spatial(30, io * 8 + ii), vk=reduce(6, k), where=(io * 8 + ii < 30)):
                    reads(A[vi, vk])
                    writes(C[vi])
                    with init():
                        C[vi] = 0.0
                    C[vi] = C[vi] + A[vi, vk]
"""


def test_lower_blocks(golden: Golden) -> None:
    golden(before_and_after(TILED_SUM, lower_blocks))


NESTED = """
def main(A: f32[8, 8], B: f32[8, 8]):
    for i in range(0, 2):
        with block("tile", vt=spatial(2, i)):
            reads(A[vt * 4 : vt * 4 + 4, 0:8])
            writes(B[vt * 4 : vt * 4 + 4, 0:8])
            for p in range(0, 4):
                for q in range(0, 8):
                    with block("B", vi=spatial(8, vt * 4 + p), vj=spatial(8, q)):
                        reads(A[vi, vj])
                        writes(B[vi, vj])
                        B[vi, vj] = A[vi, vj] + 1.0
"""


def test_lower_blocks_inside_blocks(golden: Golden) -> None:
    golden(before_and_after(NESTED, lower_blocks))
