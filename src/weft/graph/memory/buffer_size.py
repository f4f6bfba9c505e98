"""The size of a value's buffer in bytes."""

from __future__ import annotations

from weft.graph.core.graph_values import Value
from weft.graph.core.type_text import dim_text
from weft.ir import ONE, Const, Expr, Mul
from weft.support.alignment import ALIGNMENT


def buffer_size(v: Value) -> tuple[int, Expr]:
    """Returns the size of *v* in bytes, aligned, as a whole number and a symbolic factor."""
    whole, factors = v.dtype.bytes, list[Expr]()
    stack = list(v.shape)
    while stack:
        e = stack.pop()
        if isinstance(e, Const):
            whole *= int(e.value)
        elif isinstance(e, Mul):
            stack += [e.a, e.b]
        else:
            factors.append(e)
    factor: Expr = ONE
    for f in sorted(factors, key=dim_text):
        factor = factor * f
    return -(-whole // ALIGNMENT) * ALIGNMENT, factor
