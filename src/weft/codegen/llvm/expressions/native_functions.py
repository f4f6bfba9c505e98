"""The pure functions a target computes itself, each as one of LLVM's intrinsics or a few instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.codegen.llvm.core.affine_operands import Affine, Operand
from weft.codegen.llvm.core.emitter import Emitter, emits
from weft.codegen.llvm.core.ir_types import filled, mangled, register_type
from weft.codegen.llvm.expressions.conversions import narrow, widen, widened
from weft.codegen.llvm.expressions.operators import larger_number
from weft.codegen.llvm.expressions.power_scaling import scaled
from weft.codegen.llvm.expressions.watched_indices import watched
from weft.ir import INDEX, Apply
from weft.support.dtypes import DType

_LLVM: Final = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round_even": "roundeven",
    "abs": "fabs",
    "copysign": "copysign",
    "fma": "fma",
}


@emits(Apply)
def apply(f: Emitter, e: Apply, *operands: Operand) -> Operand:
    """Emits a function that the target has; raises `LoweringError` for one that had to be expanded before."""
    if e.fn not in f.target.isa.native:
        raise f.error(f"the target {f.target.name} has no {e.fn}", hint="expand it before code generation")
    if e.fn == "unlikely":
        return operands[0]
    operand = e.args[0].dtype
    texts = [f.build.text(x) for x in operands]
    if e.fn == "watched":
        return watched(f, e, *texts)
    if not operand.is_float:
        return _integer_abs(f, operand, texts[0])
    wide = widened(operand)
    texts = [widen(f, x, operand) for x in texts]
    if e.fn == "ldexp":
        return narrow(f, scaled(f, wide, *texts), operand)
    if e.fn == "max_number":
        return narrow(f, larger_number(f, wide, *texts), operand)
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


def _is_nan(f: Emitter, dtype: DType, x: str) -> str:
    return f.build.pure(f"fcmp uno {register_type(dtype)} {x}, {filled(0.0, dtype)}", x)


def _is_inf(f: Emitter, dtype: DType, x: str) -> str:
    size = f.intrinsic("fabs", dtype, x)
    return f.build.pure(f"fcmp oeq {register_type(dtype)} {size}, {filled(float('inf'), dtype)}", size)


_PREDICATES: Final[dict[str, Callable[[Emitter, DType, str], str]]] = {"is_nan": _is_nan, "is_inf": _is_inf}
