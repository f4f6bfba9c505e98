"""Lanes picked from two vectors."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.llvm.core.affine_operands import Operand
from weft.codegen.llvm.core.emitter import Emitter, emits
from weft.codegen.llvm.core.ir_types import register_type
from weft.ir import Shuffle
from weft.support.dtypes import DType


@emits(Shuffle)
def picked(f: Emitter, e: Shuffle, a: Operand, b: Operand) -> Operand:
    """Emits a shuffle."""
    return shuffle(f, e.a.dtype, f.build.text(a), f.build.text(b), e.picks)


def shuffle(f: Emitter, dtype: DType, a: str, b: str | None, picks: Sequence[int]) -> str:
    """Returns the lanes *picks* of *a* followed by *b*, both of *dtype*; -1 leaves a lane undefined."""
    kind = register_type(dtype)
    mask = ", ".join(["i32 poison" if p < 0 else f"i32 {p}" for p in picks])
    second = "poison" if b is None else b
    return f.build.pure(f"shufflevector {kind} {a}, {kind} {second}, <{len(picks)} x i32> <{mask}>", a, second)
