"""Statements where they stand: ways in, ways out, and where two part."""

from __future__ import annotations

from weft.ir import INDEX, ONE, Var
from weft.loop import Eval, Stmt, StmtPlace, meet


def chain(stmt: Stmt, parent: StmtPlace | None, length: int) -> StmtPlace:
    """Returns the innermost of *length* places, one in another."""
    for _ in range(length):
        parent = StmtPlace(stmt, parent, parent.depth + 1 if parent else 0)
    assert parent is not None
    return parent


def test_two_places_of_one_statement_meet_where_their_ways_part() -> None:
    s = Eval(Var("i", INDEX) + ONE)
    root = chain(s, None, 3)
    a, b = chain(s, root, 4), chain(s, root, 2)
    assert meet(a, b) is meet(b, a) is root
    assert meet(a, root) is root
    assert meet(a, a) is a


def test_ways_down_and_out() -> None:
    s = Eval(ONE)
    outer = chain(s, None, 2)
    inner = chain(s, outer, 2)
    assert [p.depth for p in inner.outwards()] == [3, 2, 1, 0]
    assert [p.depth for p in inner.below(outer)] == [2, 3]
    assert [p.depth for p in inner.below(None)] == [0, 1, 2, 3]
    assert inner.below(inner) == []
