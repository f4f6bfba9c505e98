"""The pure functions a target computes itself, each as one of LLVM's intrinsics or a few instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.codegen.llvm.affine import Affine, Operand
from weft.codegen.llvm.casts import narrow, widen, widened
from weft.codegen.llvm.emitter import Emitter, emits
from weft.codegen.llvm.types import filled, mangled, register_type
from weft.ir.expr import INDEX, Apply
from weft.support.dtypes import DType

_LLVM: Final = {
    "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round_even": "roundeven",
    "abs": "fabs", "copysign": "copysign", "fma": "fma",
}  # fmt: skip


@emits(Apply)
def apply(f: Emitter, e: Apply, *operands: Operand) -> Operand:
    """Emits a function that the target has; raises `LoweringError` for one that had to be expanded before."""
    if e.fn not in f.target.native:
        raise f.error(f"the target {f.target.name} has no {e.fn}", hint="expand it before code generation")
    operand = e.args[0].dtype
    texts = [f.build.text(x) for x in operands]
    if not operand.is_float:
        return _integer_abs(f, operand, texts[0])
    wide = widened(operand)
    texts = [widen(f, x, operand) for x in texts]
    if e.fn == "ldexp":
        return narrow(f, _ldexp(f, wide, *texts), operand)
    if e.fn in _PREDICATES:
        return _PREDICATES[e.fn](f, wide, texts[0])
    return narrow(f, f.intrinsic(_LLVM[e.fn], wide, *texts), operand)


def _integer_abs(f: Emitter, dtype: DType, x: str) -> Operand:
    if dtype.kind == "uint":
        return x
    symbol, kind = f"@llvm.abs.{mangled(dtype)}", register_type(dtype)
    f.globals[symbol] = f"declare {kind} {symbol}({kind}, i1 immarg)"
    made = f.build.pure(f"call {kind} {symbol}({kind} {x}, i1 false)", x)
    return Affine(0, {made: 1}) if dtype is INDEX else made


def _ldexp(f: Emitter, dtype: DType, x: str, n: str) -> str:
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
        made = _shuffled(f, dtype, made, _lanes(f, piece, part, range(lanes)), picked)
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
    return _shuffled(f, dtype, x, "poison", [i if i < dtype.lanes else None for i in wanted])


def _shuffled(f: Emitter, dtype: DType, a: str, b: str, picked: Sequence[int | None]) -> str:
    kind, lanes = register_type(dtype), ", ".join(["i32 poison" if i is None else f"i32 {i}" for i in picked])
    return f.build.pure(f"shufflevector {kind} {a}, {kind} {b}, <{len(picked)} x i32> <{lanes}>", a, b)


def _is_nan(f: Emitter, dtype: DType, x: str) -> str:
    return f.build.pure(f"fcmp uno {register_type(dtype)} {x}, {filled(0.0, dtype)}", x)


def _is_inf(f: Emitter, dtype: DType, x: str) -> str:
    size = f.intrinsic("fabs", dtype, x)
    return f.build.pure(f"fcmp oeq {register_type(dtype)} {size}, {filled(float('inf'), dtype)}", size)


_PREDICATES: Final[dict[str, Callable[[Emitter, DType, str], str]]] = {"is_nan": _is_nan, "is_inf": _is_inf}
