"""Dot products of x86: AVX-512 VNNI and BF16, and equivalent code for AVX2 alone.

Each multiplies a few neighbouring elements of a row of A, broadcast, with as many of each of 8 or 16 columns of B, which lie
side by side: B has been packed `[column][k]`. Sums of integers are exact. Those of bf16 round as `ir.Dot` says with BF16; with
AVX2, the odd product is added first too, and numbers below the normal range are kept.
"""

from __future__ import annotations

from typing import Final

from weft.targets.instructions.tensor_intrinsic import TensorIntrinsic

_PARAMETERS = (
    'C: buffer("global", {c}[{n}], strides=(1,)), A: buffer("global", {a}[{g}], strides=(1,)),'
    ' B: buffer("global", {b}[{n}, {g}], strides=({g}, 1))'
)
_SEMANTICS = f"""
def semantics({_PARAMETERS}):
    for i in range(0, {{n}}):
        for k in range(0, {{g}}):
            with block("dot", vi=spatial({{n}}, i), vk=reduce({{g}}, k)):
                C[vi] = C[vi] + {{c}}(A[vk]) * {{c}}(B[vi, vk])
"""
_NATIVE = f"""
def implementation({_PARAMETERS}):
    columns = view(B, 0, {{b}}[{{lanes}}])
    row = let(reinterpret({{a}}x{{lanes}}, broadcast(reinterpret(i32, A[ramp(0, 1, {{g}})]), {{n}})))
    C[ramp(0, 1, {{n}})] = dot(C[ramp(0, 1, {{n}})], row, columns[ramp(0, 1, {{lanes}})])
"""
_BYTES_IN_PAIRS = f"""
def implementation({_PARAMETERS}):
    columns = view(B, 0, i8[32])
    row = let(reinterpret(i16x16, broadcast(reinterpret(i32, A[ramp(0, 1, 4)]), 8)))
    pairs = let(reinterpret(i16x16, columns[ramp(0, 1, 32)]))
    even = let(dot(C[ramp(0, 1, 8)], row & broadcast(i16(255), 16), (pairs << broadcast(i16(8), 16)) >> broadcast(i16(8), 16)))
    odd = let(row >> broadcast(i16(8), 16) & broadcast(i16(255), 16))
    C[ramp(0, 1, 8)] = dot(even, odd, pairs >> broadcast(i16(8), 16))
"""
_HALVES_WIDENED = f"""
def implementation({_PARAMETERS}):
    columns = view(B, 0, bf16[16])
    row = let(broadcast(reinterpret(u32, A[ramp(0, 1, 2)]), 8))
    pairs = let(reinterpret(u32x8, columns[ramp(0, 1, 16)]))
    high = let(broadcast(u32(4294901760), 8))
    odd = let(C[ramp(0, 1, 8)] + reinterpret(f32x8, row & high) * reinterpret(f32x8, pairs & high))
    shift = let(broadcast(u32(16), 8))
    C[ramp(0, 1, 8)] = odd + reinterpret(f32x8, row << shift) * reinterpret(f32x8, pairs << shift)
"""


def _dot(name: str, implementation: str, features: tuple[str, ...], **types: str | int) -> TensorIntrinsic:
    n, g = int(types["n"]), int(types["g"])
    text = (_SEMANTICS + implementation).format(lanes=n * g, **types)
    return TensorIntrinsic(name, text, features)


X86: Final = (
    _dot("x86.dot_u8i8_16x4", _NATIVE, ("avx512vnni", "avx512vl"), n=16, g=4, a="u8", b="i8", c="i32"),
    _dot("x86.dot_u8i8_8x4", _BYTES_IN_PAIRS, ("avx2",), n=8, g=4, a="u8", b="i8", c="i32"),
    _dot("x86.dot_bf16_16x2", _NATIVE, ("avx512bf16", "avx512vl"), n=16, g=2, a="bf16", b="bf16", c="f32"),
    _dot("x86.dot_bf16_8x2", _HALVES_WIDENED, ("avx2",), n=8, g=2, a="bf16", b="bf16", c="f32"),
)
