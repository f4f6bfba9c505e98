"""Numbers that are rarely outside of their limits: one that is sets a flag in the context, and is clamped.

A vector is tested as a whole. Masked-off lanes count, since the elements that they index may be loaded, too.
"""

from __future__ import annotations

from weft.codegen import abi
from weft.codegen.llvm.core.affine_operands import Affine, Operand
from weft.codegen.llvm.core.emitter import Emitter
from weft.codegen.llvm.core.ir_types import mangled, register_type
from weft.codegen.llvm.expressions.conditional_values import branch_if_any
from weft.codegen.llvm.statements.exits import context_field
from weft.ir import INDEX, Apply
from weft.support.dtypes import bool_


def watched(f: Emitter, e: Apply, x: str, low: str, high: str) -> Operand:
    """Emits `watched(x, low, high)`, a range check of an index; the branch in which it fails is marked unlikely."""
    kind, sign = register_type(e.dtype), "u" if e.dtype.kind == "uint" else "s"
    below = f.build.pure(f"icmp {sign}lt {kind} {x}, {low}", x, low)
    above = f.build.pure(f"icmp {sign}gt {kind} {x}, {high}", x, high)
    outside = f.build.pure(f"or {register_type(bool_.with_lanes(e.dtype.lanes))} {below}, {above}", below, above)
    before = f.build.block
    seldom, end = branch_if_any(f, outside, e.dtype.lanes, "outside", "inside")
    with f.build.region(seldom), f.confined():
        f.build.do(f"store i32 1, ptr {context_field(f, abi.OUTSIDE)}, align 4")
        least = _bound(f, e, f"{sign}max", x, low)
        nearest = _bound(f, e, f"{sign}min", least, high)
        f.build.block.end = f"br label %{end}"
    f.build.start(end)
    made = f.build.here(f"phi {kind} [ {x}, %{before.label} ], [ {nearest}, %{seldom} ]")
    return Affine(0, {made: 1}) if e.dtype is INDEX else made


def _bound(f: Emitter, e: Apply, name: str, x: str, limit: str) -> str:
    symbol, kind = f"@llvm.{name}.{mangled(e.dtype)}", register_type(e.dtype)
    f.globals[symbol] = f"declare {kind} {symbol}({kind}, {kind})"
    return f.build.here(f"call {kind} {symbol}({kind} {x}, {kind} {limit})")
