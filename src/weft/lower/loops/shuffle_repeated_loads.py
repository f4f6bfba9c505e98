"""Loads neighbours once where lanes repeat them: a contiguous load, and a shuffle that spreads it.

    y[ramp(8 * i, 1, 8)] = x[ramp(8 * i, 1, 8) // broadcast(2, 8)]

becomes

    y[ramp(8 * i, 1, 8)] = shuffle(x[ramp(4 * i, 1, 4)], x[ramp(4 * i, 1, 4)], (0, 0, 1, 1, 2, 2, 3, 3))

The lanes, as of an image that is enlarged by repeating its pixels, would be gathered, one by one. Each element that is loaded is
one of those that the lanes read, so nothing outside of the buffer is. Statements under masks are left alone.
"""

from __future__ import annotations

from weft.ir import (
    ONE,
    And,
    Broadcast,
    Const,
    Expr,
    FloorDiv,
    Node,
    Or,
    Ramp,
    Select,
    Shuffle,
    map_nodes,
    post_order,
    simplify,
)
from weft.loop import Load, Program, Stmt, Store, map_stmts, statements
from weft.lower.analysis.lane_masks import lane_of
from weft.lower.stmt_rewriter import map_functions


def shuffle_repeated_loads(program: Program) -> Program:
    """Returns *program*, whose loops are vectorized, with contiguous loads in place of those of lanes that repeat neighbours."""

    def change(s: Stmt) -> Stmt | None:
        if not isinstance(s, Store) or s.mask is not None or not _may_repeat(s.value):
            return None
        return Store(s.buffer, s.indices, map_nodes(s.value, _spread), None)

    def of_body(body: Stmt) -> Stmt:
        return map_stmts(body, change) if any(isinstance(s, Store) for s in statements(body)) else body

    return map_functions(program, lambda f: of_body(f.body))


def _may_repeat(value: Expr) -> bool:
    """Tells whether lanes are read at quotients, and none is left out by a condition."""
    nodes = list(post_order(value))
    quotients = any(isinstance(n, FloorDiv) and n.dtype.lanes > 1 for n in nodes)
    return quotients and not any(isinstance(n, Select | And | Or) for n in nodes)


def _spread(n: Node) -> Node | None:
    """Returns a shuffle for a load whose lanes read each of a few neighbours, in any order; None for any other node."""
    if not isinstance(n, Load) or len(n.indices) != 1 or n.dtype.lanes < 4 or n.buffer.in_registers:
        return None
    at = n.indices[0]
    if isinstance(at, Ramp | Broadcast):
        return None
    first = lane_of(at, 0)
    apart = [simplify(lane_of(at, k) - first) for k in range(at.dtype.lanes)]
    picks = [int(d.value) for d in apart if isinstance(d, Const)]
    width = max(picks, default=0) + 1
    if len(picks) < len(apart) or set(picks) != set(range(width)) or not 2 <= width <= len(picks) // 2:
        return None
    part = Load(n.buffer, (Ramp(first, ONE, width),))
    return Shuffle(part, part, tuple(picks))
