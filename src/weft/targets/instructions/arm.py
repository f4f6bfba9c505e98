"""Dot products of AArch64: `sdot`, of signed bytes."""

from __future__ import annotations

from typing import Final

from weft.support.dtypes import i8, i32
from weft.targets.instructions.tensor_intrinsic import DotProduct, TensorIntrinsic

_PARAMETERS = (
    'C: buffer("global", i32[4], strides=(1,)), A: buffer("global", i8[4], strides=(1,)),'
    ' B: buffer("global", i8[4, 4], strides=(4, 1))'
)
_SDOT = f"""
def semantics({_PARAMETERS}):
    for i in range(0, 4):
        for k in range(0, 4):
            with block("dot", vi=spatial(4, i), vk=reduce(4, k)):
                C[vi] = C[vi] + i32(A[vk]) * i32(B[vi, vk])

def implementation({_PARAMETERS}):
    columns = view(B, 0, i8[16])
    row = let(reinterpret(i8x16, broadcast(reinterpret(i32, A[ramp(0, 1, 4)]), 4)))
    C[ramp(0, 1, 4)] = dot(C[ramp(0, 1, 4)], row, columns[ramp(0, 1, 16)])
"""

ARM: Final = (TensorIntrinsic("arm.dot_i8i8_4x4", _SDOT, ("neon", "dotprod"), DotProduct(i8, i8, i32, 4, 4)),)
