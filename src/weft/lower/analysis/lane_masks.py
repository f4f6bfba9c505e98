"""The lanes in which the loads of a statement are wanted, as far as they are known while compiling.

    B[ramp(0, 1, 4)] = select(ramp(0, 1, 4) < broadcast(3, 4), A[ramp(i, n, 4)], broadcast(0.0, 4))

reads three lanes of A.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, TypeAlias

from weft.ir import (
    Add,
    And,
    Broadcast,
    Comparison,
    Const,
    Expr,
    Mul,
    Node,
    Not,
    Or,
    Ramp,
    Select,
    Sub,
    Var,
    index,
    map_nodes,
    post_order,
    simplify,
)
from weft.loop import Load, Stmt, own_exprs, statements

Lanes: TypeAlias = tuple[bool, ...]

_Guards: TypeAlias = tuple[tuple[Expr, bool], ...]
"""Conditions of vectors, and whether they are to hold."""

_LANE_BY_LANE: Final = (Comparison, And, Or, Not, Add, Sub, Mul)


def guarded_loads(root: Stmt, wanted: Collection[Load]) -> dict[Load, Lanes]:
    """Returns in which lanes each of the *wanted* loads in *root* is wanted anywhere; without those of which that is not known.

    No condition of a scalar may guard them.
    """
    found: dict[Load, Lanes | None] = {}
    for s in statements(root):
        for e in own_exprs(s):
            for load, guards in _contexts(e, wanted):
                lanes = _holding(guards, load.dtype.lanes)
                before = found.get(load, (False,) * load.dtype.lanes)
                known = lanes is not None and before is not None
                found[load] = tuple([a or b for a, b in zip(lanes, before, strict=True)]) if known else None  # type: ignore[arg-type]
    return {n: lanes for n, lanes in found.items() if lanes is not None}


def _contexts(root: Expr, wanted: Collection[Load]) -> Iterator[tuple[Load, _Guards]]:
    """Yields each of *wanted* in *root* with the conditions that guard it, once for each of these."""
    seen: set[tuple[Node, _Guards]] = set()
    stack: list[tuple[Node, _Guards]] = [(root, ())]
    while stack:
        at = stack.pop()
        if at in seen:
            continue
        seen.add(at)
        n, guards = at
        if isinstance(n, Load) and n in wanted:
            yield n, guards
        if isinstance(n, Select):
            stack += [(n.cond, guards), (n.then, (*guards, (n.cond, True))), (n.other, (*guards, (n.cond, False)))]
        elif isinstance(n, And | Or):
            stack += [(n.a, guards), (n.b, (*guards, (n.a, isinstance(n, And))))]
        else:
            stack += [(k, guards) for k in n.children()]


def _holding(guards: _Guards, lanes: int) -> Lanes | None:
    """Returns the lanes in which all *guards* are as they are to be; None where that is not known."""
    made = (True,) * lanes
    for cond, wanted in guards:
        known = decided_lanes(cond)
        if known is None or len(known) != lanes:
            return None
        made = tuple([a and b is wanted for a, b in zip(made, known, strict=True)])
    return made


def decided_lanes(cond: Expr) -> Lanes | None:
    """Returns the lanes of a vector of bools; None if one of them is not known while compiling."""
    if any(isinstance(n, Var) or not _is_known_by_lane(n) for n in post_order(cond)):
        return None
    made = [lane_of(cond, i) for i in range(cond.dtype.lanes)]
    known = tuple([bool(x.value) for x in made if isinstance(x, Const)])
    return known if len(known) == len(made) else None


def _is_known_by_lane(n: Node) -> bool:
    return isinstance(n, (*_LANE_BY_LANE, Ramp, Broadcast, Const))


def lane_of(e: Expr, lane: int) -> Expr:
    """Returns a lane of a vector of ramps and broadcasts, simplified."""

    def change(n: Node) -> Node | None:
        if isinstance(n, Ramp):
            return n.base + index(lane) * n.stride
        return n.value if isinstance(n, Broadcast) else None

    return simplify(map_nodes(e, change))
