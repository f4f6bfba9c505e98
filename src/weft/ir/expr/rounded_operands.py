"""Conversions of numbers to fewer bits: to a narrow type, and to the bits of tf32."""

from __future__ import annotations

from weft.ir.expr.base import Expr
from weft.ir.expr.nodes import Apply, Cast, Reinterpret


def rounded_operand(e: Expr) -> Expr | None:
    """Returns the number that *e* converts to another type, or rounds to the bits of tf32; None where it does neither."""
    if isinstance(e, Cast):
        return e.a
    rounding = e.a if isinstance(e, Reinterpret) else None
    return rounding.args[0] if isinstance(rounding, Apply) and rounding.fn == "round_tf32" else None


def rounded_like(e: Expr, x: Expr) -> Expr:
    """Returns *x* converted, or rounded, as *e* does to its `rounded_operand`."""
    return Cast(x, e.dtype) if isinstance(e, Cast) else Reinterpret(Apply("round_tf32", (x,)), e.dtype)
