"""Multiplying by powers of two, with the instruction that AVX-512 has for it: one for each kind of vector, none for longer ones.

LLVM's own intrinsic takes whole numbers, to which exponents that are floats would have to be converted and back.
"""

from __future__ import annotations

from weft.codegen.llvm.core.emitter import Emitter
from weft.codegen.llvm.core.ir_types import register_type
from weft.codegen.llvm.expressions.shuffles import shuffle
from weft.support.dtypes import DType


def scaled(f: Emitter, dtype: DType, x: str, n: str) -> str:
    """Emits x * 2^n by AVX-512's instruction, for as many vectors as it takes; n may be infinite or no number, as x may."""
    vector = 512 // dtype.bits
    if dtype.lanes <= vector:
        return _scale(f, dtype, x, n)
    made, lanes = "poison", dtype.lanes
    for at in range(0, lanes, vector):
        inside = range(at, min(at + vector, lanes))
        part = dtype.with_lanes(len(inside))
        piece = _scale(f, part, *[_lanes(f, v, dtype, inside) for v in (x, n)])
        picked = [lanes + i - at if i in inside else i for i in range(lanes)]
        made = shuffle(f, dtype, made, _lanes(f, piece, part, range(lanes)), picked)
    return made


def _scale(f: Emitter, dtype: DType, x: str, n: str) -> str:
    """Emits x * 2^n for no more lanes than one vector has."""
    wide = dtype.with_lanes(max(128 // dtype.bits, 1 << (dtype.lanes - 1).bit_length()))
    kind, bits = register_type(wide), wide.lanes * wide.bits
    suffix, mask = "ps" if dtype.bits == 32 else "pd", f"i{max(8, wide.lanes)}"
    symbol = f"@llvm.x86.avx512.mask.scalef.{suffix}.{bits}"
    rounding = bits == 512  # by the current mode, as elsewhere
    f.globals[symbol] = f"declare {kind} {symbol}({kind}, {kind}, {kind}, {mask}{', i32 immarg' if rounding else ''})"
    a, b = (_lanes(f, v, dtype, range(wide.lanes)) for v in (x, n))
    text = f"call {kind} {symbol}({kind} {a}, {kind} {b}, {kind} zeroinitializer, {mask} -1{', i32 4' if rounding else ''})"
    return _lanes(f, f.build.pure(text, a, b), wide, range(dtype.lanes))


def _lanes(f: Emitter, x: str, dtype: DType, wanted: range) -> str:
    """Emits a vector of the *wanted* lanes of *x*, those beyond its own being anything; a scalar is a vector of one lane."""
    element = register_type(dtype.element)
    if wanted == range(dtype.lanes):
        return x
    if dtype.lanes == 1:
        return f.build.pure(f"insertelement <{len(wanted)} x {element}> poison, {element} {x}, i32 0", x)
    if len(wanted) == 1:
        return f.build.pure(f"extractelement {register_type(dtype)} {x}, i32 {wanted[0]}", x)
    return shuffle(f, dtype, x, None, [i if i < dtype.lanes else -1 for i in wanted])
