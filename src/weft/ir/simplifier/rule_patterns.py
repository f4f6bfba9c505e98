"""Patterns of expressions, written as algebra: the vocabulary of the rule tables.

    x, y = wild("x y")
    table("exact", rule(min_(x, x), x), rule(max_(x, y), y, when=x <= y))

A row matches a node whose shape is the left side (a name that occurs twice must be the very same expression), if the
condition is certain, and gives the right side. A name from `constants()` matches a constant, or one in all lanes of
a vector, and the right side may compute with it inside `fold()`. Each row is a value that a test can check alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias, Union

from weft.ir import expr as ir
from weft.ir.expr.base import Value
from weft.ir.expr.node import Node

PatLike: TypeAlias = Union["Pat", Value]


@dataclass(frozen=True, eq=False)
class Pat:
    """A pattern: a wildcard 'x', a constant wildcard 'c', a literal '=', a 'fold', the 'lanes', or a node class."""

    kind: str | type[Node]
    name: str = ""
    value: Value = 0
    kids: tuple[Pat, ...] = ()

    def __add__(self, o: PatLike) -> Pat:
        return node_of(ir.Add, self, o)

    def __sub__(self, o: PatLike) -> Pat:
        return node_of(ir.Sub, self, o)

    def __mul__(self, o: PatLike) -> Pat:
        return node_of(ir.Mul, self, o)

    def __truediv__(self, o: PatLike) -> Pat:
        return node_of(ir.Div, self, o)

    def __floordiv__(self, o: PatLike) -> Pat:
        return node_of(ir.FloorDiv, self, o)

    def __mod__(self, o: PatLike) -> Pat:
        return node_of(ir.FloorMod, self, o)

    def __and__(self, o: PatLike) -> Pat:
        return node_of(ir.And, self, o)

    def __or__(self, o: PatLike) -> Pat:
        return node_of(ir.Or, self, o)

    def __lt__(self, o: PatLike) -> Pat:
        return node_of(ir.Lt, self, o)

    def __le__(self, o: PatLike) -> Pat:
        return node_of(ir.Le, self, o)

    def __neg__(self) -> Pat:
        return node_of(ir.Neg, self)

    def __invert__(self) -> Pat:
        return node_of(ir.Not, self)

    def __str__(self) -> str:
        if isinstance(self.kind, str):
            inner = ", ".join(map(str, self.kids))
            return {"=": repr(self.value), "fold": f"fold({inner})"}.get(self.kind, self.name)
        symbol = getattr(self.kind, "symbol", "")
        if len(self.kids) == 2 and symbol and not symbol.isidentifier():
            return f"({self.kids[0]} {symbol} {self.kids[1]})"
        return f"{symbol or self.kind.__name__.lower()}({', '.join(map(str, self.kids))})"


def node_of(cls: type[Node], *kids: PatLike) -> Pat:
    """Returns the pattern of a node of class *cls*."""
    return Pat(cls, kids=tuple([literal(k) for k in kids]))


def literal(value: PatLike) -> Pat:
    """Returns a pattern for a plain number or truth value; a pattern stays itself."""
    return value if isinstance(value, Pat) else Pat("=", value=value)


def wild(names: str) -> list[Pat]:
    """Returns wildcards, which match any expression."""
    return [Pat("x", n) for n in names.split()]


def constants(names: str) -> list[Pat]:
    """Returns wildcards that match constants only."""
    return [Pat("c", n) for n in names.split()]


def fold(p: Pat) -> Pat:
    """On a right side: the value of *p*, an expression of constants, computed in their type."""
    return Pat("fold", kids=(p,))


def min_(a: PatLike, b: PatLike) -> Pat:
    """Returns the pattern `min(a, b)`."""
    return node_of(ir.Min, a, b)


def max_(a: PatLike, b: PatLike) -> Pat:
    """Returns the pattern `max(a, b)`."""
    return node_of(ir.Max, a, b)


def eq_(a: PatLike, b: PatLike) -> Pat:
    """Returns the pattern `a == b`."""
    return node_of(ir.Eq, a, b)


def ne_(a: PatLike, b: PatLike) -> Pat:
    """Returns the pattern `a != b`."""
    return node_of(ir.Ne, a, b)


def select_(cond: PatLike, then: PatLike, other: PatLike) -> Pat:
    """Returns the pattern `select(cond, then, other)`."""
    return node_of(ir.Select, cond, then, other)


def ramp_(base: PatLike, stride: PatLike) -> Pat:
    """Returns the pattern of a ramp; one that is built has the lanes of the matched node."""
    return node_of(ir.Ramp, base, stride)


def spread(value: PatLike) -> Pat:
    """Returns the pattern of a broadcast; one that is built has the lanes of the matched node."""
    return node_of(ir.Broadcast, value)


LANES: Final = Pat("lanes", "lanes")
"""On a right side or in a condition: the number of lanes of the matched node, in the type of its elements."""


@dataclass(frozen=True, eq=False)
class Rule:
    """One row: *lhs* becomes *rhs* where *when* is certain, for operands of a *kind* of type."""

    lhs: Pat
    rhs: Pat
    when: Pat | None = None
    kind: str = "any"

    def __str__(self) -> str:
        return f"{self.lhs} -> {self.rhs}" + (f" if {self.when}" if self.when else "")


def rule(lhs: Pat, rhs: PatLike, when: Pat | None = None) -> Rule:
    """Returns a row."""
    return Rule(lhs, literal(rhs), when)


def table(kind: str, *rows: Rule) -> tuple[Rule, ...]:
    """Returns *rows* as true of operands of *kind*: any, bool, int, signed, exact, wrapping or float."""
    return tuple([replace(r, kind=kind) for r in rows])
