"""Dot products of x86: AVX-512 VNNI and BF16, AVX-VNNI, and equivalent code for AVX2 and AVX-512 alone.

Without VNNI, `vpmaddwd` multiplies, two terms of 16 bits at a time. Where rows have been widened to these before, only columns
are converted, once for all rows of a tile; taking bytes of both apart leaves fewer registers for sums.

Each multiplies a few neighbouring elements of a row of A, broadcast, with as many of each of 8 or 16 columns of B, which lie
side by side: B has been packed `[column][k]`. Sums of integers are exact. Those of bf16 round as `ir.Dot` says with BF16; with
AVX2, the odd product is added first too, and numbers below the normal range are kept.
"""

from __future__ import annotations

from typing import Final

from weft.support.dtypes import bf16, f32, i8, i16, i32, u8
from weft.targets.instructions.tensor_intrinsic import DotProduct, TensorIntrinsic

PORTS: Final = 3
"""Units of a core that add vectors of 256 bits, of which two multiply: as many as Intel's have; AMD's have four."""

PAIR_CYCLES: Final = 4 / PORTS
"""The multiply-adds that a product of 16-bit pairs with an addition takes as long as: two operations of these units, where a
multiply-add of floats is one of two. A dot product of bytes is made of two such."""

WIDE_PAIR_CYCLES: Final = 2.0
"""`PAIR_CYCLES` in vectors of 512 bits, which two units add and multiply."""

PAIRS_TEMPORARIES: Final = 6
"""Registers that it needs beside sums and operands: two halves of a row and of a column, and a mask."""

TAKEN_APART: Final = (2, 3)
"""Operations that take apart a row of bytes, a mask and a shift, and a vector of columns, whose signs are extended."""

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
    columns = view(B, 0, i8[{{lanes}}])
    row = let(reinterpret(i16x{{pairs}}, broadcast(reinterpret(i32, A[ramp(0, 1, 4)]), {{n}})))
    pairs = let(reinterpret(i16x{{pairs}}, columns[ramp(0, 1, {{lanes}})]))
    byte = let(broadcast(i16(8), {{pairs}}))
    low = let(broadcast(i16(255), {{pairs}}))
    even = let(dot(C[ramp(0, 1, {{n}})], row & low, (pairs << byte) >> byte))
    odd = let(row >> byte & low)
    C[ramp(0, 1, {{n}})] = dot(even, odd, pairs >> byte)
"""
_BYTES_BY_WIDE_ROWS = f"""
def implementation({_PARAMETERS}):
    columns = view(B, 0, i8[{{lanes}}])
    row = let(reinterpret(i16x{{lanes}}, broadcast(reinterpret(i32, A[ramp(0, 1, 2)]), {{n}})))
    C[ramp(0, 1, {{n}})] = dot(C[ramp(0, 1, {{n}})], row, i16x{{lanes}}(columns[ramp(0, 1, {{lanes}})]))
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


def _dot(implementation: str, features: tuple[str, ...], shape: DotProduct, name: str = "") -> TensorIntrinsic:
    """Declares a dot product; *name* tells it from others of its shape."""
    n, g = shape.lanes, shape.group
    types = {"a": shape.a, "b": shape.b, "c": shape.sums, "n": n, "g": g, "lanes": n * g, "pairs": n * g // 2}
    text = (_SEMANTICS + implementation).format(**types)
    kind = "bf16" if shape.a is bf16 else f"{shape.a}{shape.b}"
    return TensorIntrinsic(f"x86.dot_{kind}_{n}x{g}{name}", text, features, shape)


def _bytes(lanes: int) -> DotProduct:
    return DotProduct(u8, i8, i32, lanes, 4)


def _pairs(lanes: int, cycles: float) -> DotProduct:
    return DotProduct(u8, i8, i32, lanes, 4, 2 * cycles, PAIRS_TEMPORARIES, *TAKEN_APART)


def _words(lanes: int, cycles: float) -> DotProduct:
    return DotProduct(i16, i16, i32, lanes, 2, cycles)


def _wide_rows(lanes: int, cycles: float) -> DotProduct:
    return DotProduct(i16, i8, i32, lanes, 2, cycles, column_operations=1)


X86: Final = (
    _dot(_NATIVE, ("avx512vnni", "avx512vl"), _bytes(16)),
    _dot(_BYTES_BY_WIDE_ROWS, ("avx2",), _wide_rows(8, PAIR_CYCLES)),
    _dot(_NATIVE, ("avx2",), _words(8, PAIR_CYCLES)),
    _dot(_BYTES_IN_PAIRS, ("avx2",), _pairs(8, PAIR_CYCLES)),
    _dot(_NATIVE, ("avxvnni",), _bytes(8), "_vnni"),
    _dot(_BYTES_BY_WIDE_ROWS, ("avx512bw",), _wide_rows(16, WIDE_PAIR_CYCLES)),
    _dot(_NATIVE, ("avx512bw",), _words(16, WIDE_PAIR_CYCLES)),
    _dot(_BYTES_IN_PAIRS, ("avx512bw",), _pairs(16, WIDE_PAIR_CYCLES), "_pairs"),
    _dot(_NATIVE, ("avx512bf16", "avx512vl"), DotProduct(bf16, bf16, f32, 16, 2)),
    _dot(_HALVES_WIDENED, ("avx2",), DotProduct(bf16, bf16, f32, 8, 2, 4.0, 5)),
)
