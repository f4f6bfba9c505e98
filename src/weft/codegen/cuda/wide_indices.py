"""Indices without the steps that were narrowed to 32 bits, which are exact, so that proofs see sums and products alone.

i64(i32(b) * i32(256) + i32(t))   ->   b * 256 + t
"""

from __future__ import annotations

from weft.ir import INDEX, Add, Cast, Const, Expr, Mul, Node, Sub, cast, const, map_nodes
from weft.support.dtypes import i32


def widened(e: Expr) -> Expr:
    """Returns an index whose sums, differences and products are of 64 bits again (see `lower.grid.narrow_indices`)."""
    return map_nodes(e, _change)


def _change(n: Node) -> Node | None:
    return _wide(n.a) if isinstance(n, Cast) and n.dtype is INDEX and n.a.dtype is i32 else None


def _wide(e: Expr) -> Expr:
    """Returns an exact integer of 32 bits as one of 64."""
    match e:
        case Const():
            return const(int(e.value), INDEX)
        case Cast(a) if a.dtype is INDEX:
            return a
        case Add(a, b) | Sub(a, b) | Mul(a, b):
            return type(e)(_wide(a), _wide(b))
        case _:
            return cast(e, INDEX)
