"""Dot products across lanes: the one instruction that a machine has for each, where it has it."""

from __future__ import annotations

from typing import Final

from weft.codegen.llvm.core.affine_operands import Operand
from weft.codegen.llvm.core.emitter import Emitter, emits
from weft.codegen.llvm.core.ir_types import register_type
from weft.ir import Dot
from weft.support.dtypes import DType, bf16, f32, i8, i16, i32, u8
from weft.targets import Target

Kind = tuple[DType, DType, DType]

_X86: Final[dict[Kind, str]] = {(u8, i8, i32): "avx512.vpdpbusd", (bf16, bf16, f32): "avx512bf16.dpbf16ps"}
_PAIRS: Final = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}
"""x86's instruction for pairs of i16, by the number of sums; it does not add to anything."""


@emits(Dot)
def dot(f: Emitter, e: Dot, acc: Operand, a: Operand, b: Operand) -> Operand:
    """Emits a dot product that the target has; raises `LoweringError` for any other."""
    kind = e.a.dtype.element, e.b.dtype.element, e.dtype.element
    c, x, y = (f.build.text(v) for v in (acc, a, b))
    if kind == (i16, i16, i32) and _has_pairs(f.target, e.dtype.lanes):
        to = register_type(e.dtype)
        products = _call(f, _PAIRS[e.dtype.lanes], e.dtype, [(e.a.dtype, x), (e.b.dtype, y)])
        return f.build.pure(f"add {to} {products}, {c}", products, c)
    name = _instruction(f.target, kind, e.dtype.lanes)
    if name is None:
        what = f"dot product of {e.a.dtype} and {e.b.dtype}"
        raise f.error(f"the target {f.target.name} has no {what}", hint="tensorize with an intrinsic of this target")
    if kind[0] is not bf16:
        return _call(f, name, e.dtype, [(e.dtype, c), (e.a.dtype, x), (e.b.dtype, y)])
    pairs = f"<{e.a.dtype.lanes} x bfloat>"
    x, y = (f.build.pure(f"bitcast {register_type(e.a.dtype)} {v} to {pairs}", v) for v in (x, y))
    return _declared(f, name, register_type(e.dtype), [(register_type(e.dtype), c), (pairs, x), (pairs, y)])


def _has_pairs(target: Target, lanes: int) -> bool:
    """Tells whether the target multiplies and adds pairs of i16 in vectors of *lanes* sums."""
    feature = {4: "sse3", 8: "avx2", 16: "avx512bw"}.get(lanes)
    return feature is not None and target.has(feature)


def _instruction(target: Target, kind: Kind, lanes: int) -> str | None:
    """Returns LLVM's name for the target's instruction that adds *lanes* sums of products, if it has one."""
    bits = 32 * lanes
    if kind == (i8, i8, i32) and target.has("dotprod") and bits in (64, 128):
        return f"aarch64.neon.sdot.v{lanes}i32.v{4 * lanes}i8"
    if bits not in (128, 256, 512):
        return None
    wide = target.has("avx512vl") and (target.has("avx512vnni") if kind[0] is u8 else target.has("avx512bf16"))
    narrow = kind[0] is u8 and target.has("avxvnni") and bits < 512
    return f"{_X86[kind]}.{bits}" if kind in _X86 and (wide or narrow) else None


def _call(f: Emitter, name: str, result: DType, operands: list[tuple[DType, str]]) -> str:
    return _declared(f, name, register_type(result), [(register_type(t), x) for t, x in operands])


def _declared(f: Emitter, name: str, result: str, operands: list[tuple[str, str]]) -> str:
    """Emits a call of LLVM's pure intrinsic *name*, and declares it."""
    symbol = f"@llvm.{'' if name.startswith('aarch64') else 'x86.'}{name}"
    f.globals[symbol] = f"declare {result} {symbol}({', '.join([t for t, _ in operands])})"
    given = ", ".join([f"{t} {x}" for t, x in operands])
    return f.build.pure(f"call {result} {symbol}({given})", *[x for _, x in operands])
