"""Variables of 64 bits that are of 32 in the text, where indices are narrowed and all values are known to fit.

for k in range(0, i64(i32(n) // 4)):        for (int32_t k = 0; k < n / 4; k++)
    x[i64(i32(k) * 8)] = ...           ->     x[(int64_t)(k * 8)] = ...;
"""

from __future__ import annotations

from weft.codegen.c_family.c_types import scalar_type
from weft.codegen.c_family.writer import Writer
from weft.ir import INDEX, ZERO, Cast, Const, Expr, Var
from weft.loop import For
from weft.support.dtypes import i32


def narrow_form(e: Expr) -> Expr | None:
    """Returns the integer of 32 bits of which one of 64 was made, None for others."""
    return e.a if isinstance(e, Cast) and e.dtype is INDEX and e.a.dtype is i32 else None


def is_narrow_loop(f: Writer, s: For) -> bool:
    """Tells whether the variable of a loop, and the loop's end, are known to fit 32 bits."""
    if not f.narrows or s.begin is not ZERO:
        return False
    return (isinstance(s.extent, Const) and int(s.extent.value) in range(1 << 31)) or narrow_form(s.extent) is not None


def declare_counter(f: Writer, var: Var, *, narrow: bool) -> tuple[str, str]:
    """Returns the type and the new name of a variable of 64 bits, which is of 32 in the text if it is *narrow*."""
    if narrow:
        f.narrow.add(var)
    return scalar_type(i32 if narrow else INDEX), f.declare(var)
