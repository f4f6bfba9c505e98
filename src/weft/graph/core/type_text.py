"""The text form of sizes, types and attributes in printed graphs and error messages."""

from __future__ import annotations

from collections.abc import Mapping

from weft.ir import Binary, Const, Expr, Var
from weft.ops import TensorType
from weft.support.text import printable_line


def dim_text(e: Expr, names: Mapping[Var, str] | None = None) -> str:
    """Writes an index expression: `3`, `batch`, `(batch * 4)`; *names* renames variables."""
    if isinstance(e, Const):
        return str(e.value)
    if isinstance(e, Var):
        return names[e] if names is not None and e in names else e.name
    parts = [dim_text(k, names) for k in e.children() if isinstance(k, Expr)]
    if isinstance(e, Binary) and e.precedence:
        return f"({parts[0]} {e.symbol} {parts[1]})"
    return f"{e.symbol if isinstance(e, Binary) else type(e).__name__.lower()}({', '.join(parts)})"


def type_text(t: TensorType, names: Mapping[Var, str] | None = None) -> str:
    """Writes a tensor type: `f32[1, 3, 224, 224]`."""
    return f"{t.dtype}[{', '.join(dim_text(s, names) for s in t.shape)}]"


def value_text(name: str, t: TensorType) -> str:
    """Writes a value with its type: `x: f32[1, 3]`."""
    return printable_line(f"{name}: {type_text(t)}")


def attribute_text(value: object, names: Mapping[Var, str] | None = None) -> str:
    """Writes an attribute so that different values have different texts."""
    if isinstance(value, tuple):
        inner = ", ".join(attribute_text(v, names) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, Expr):
        return dim_text(value, names)
    return repr(value)
