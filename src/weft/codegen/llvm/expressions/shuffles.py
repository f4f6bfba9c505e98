"""Lanes picked from two vectors.

A `Shuffle` of a program is part of a network that transposes a tile, and one instruction. LLVM's instruction selection tries to
merge each with those before it, through as many levels as there are, and finds nothing: half of the time that it takes for a
convolution with its packing went into 64 shuffles. So after two levels a value goes through a fence, which is no instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.llvm.core.affine_operands import Operand
from weft.codegen.llvm.core.emitter import Emitter, emits
from weft.codegen.llvm.core.ir_types import is_half, register_type
from weft.ir import Shuffle
from weft.support.dtypes import DType

MERGED_SHUFFLES: Final = 2
"""The levels of a network of shuffles that LLVM may look at together."""


@emits(Shuffle)
def picked(f: Emitter, e: Shuffle, a: Operand, b: Operand) -> Operand:
    """Emits a shuffle, and behind every second of a chain a fence that LLVM does not look through."""
    x, y = f.build.text(a), f.build.text(b)
    made = shuffle(f, e.a.dtype, x, y, e.picks)
    level = 1 + max(f.shuffle_levels.get(x, 0), f.shuffle_levels.get(y, 0))
    if level == MERGED_SHUFFLES and e.dtype.is_float and not is_half(e.dtype):
        return f.intrinsic("arithmetic.fence", e.dtype, made)
    f.shuffle_levels[made] = level
    return made


def shuffle(f: Emitter, dtype: DType, a: str, b: str | None, picks: Sequence[int]) -> str:
    """Returns the lanes *picks* of *a* followed by *b*, both of *dtype*; -1 leaves a lane undefined."""
    kind = register_type(dtype)
    mask = ", ".join(["i32 poison" if p < 0 else f"i32 {p}" for p in picks])
    second = "poison" if b is None else b
    return f.build.pure(f"shufflevector {kind} {a}, {kind} {second}, <{len(picks)} x i32> <{mask}>", a, second)
