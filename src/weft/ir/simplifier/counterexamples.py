"""Counterexamples to inequalities: sample points of the variables' ranges, evaluated before a proof is looked for.

Most inequalities that the simplifier asks about do not hold, such as one of `a <= b` and `b <= a`. A search for a proof ends only
when all of its ways have been tried; one point at which the inequality fails tells at once that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from weft.ir.bounds.bounds import Bounds
from weft.ir.bounds.polynomial import Poly
from weft.ir.expr.base import INDEX, Expr
from weft.ir.expr.binary import Add, And, Eq, FloorDiv, FloorMod, Le, Lt, Max, Min, Mul, Ne, Or, Sub
from weft.ir.expr.node import Node
from weft.ir.expr.nodes import Cast, Const, Neg, Not, Select

_ENDS: Final = (0.0, 1.0)
_PARTS: Final = (*_ENDS, 0.5, 0.2, 0.8)
"""How far in its range a variable is at a point, as a part of the range."""

_POINTS: Final = 8
"""Points of each environment: all variables at their low ends, all at the high ends, and mixtures."""

_REACH: Final = 300
"""The length that a range without an end is taken to have."""

_MOST_REMEMBERED: Final = 50_000
"""Expressions after which the points of an environment are made anew: a long-lived one keeps no endless past alive."""

_Point = dict[Expr, int | None]
"""What expressions are at a point; None where that is not known."""


def is_refuted(p: Poly, least: int, bounds: Bounds) -> bool:
    """Tells whether a point within *bounds* was found at which *p* is less than *least*."""
    for point in _points(bounds) if bounds.ranges else ():
        value = _value(p, point)
        if value is not None and value < least:
            return True
    return False


def _value(p: Poly, point: _Point) -> int | None:
    total = 0
    for m, k in p.items():
        for atom in m:
            found = point[atom] if atom in point else _evaluated(atom, point)
            if found is None:
                return None
            k *= found
        total += k
    return total


def _points(bounds: Bounds) -> Iterator[_Point]:
    """Yields the points of an environment; those not needed before are made now."""
    memo = bounds.memo_for("counterexamples")
    for number in range(_POINTS):
        if number not in memo or len(memo[number]) > _MOST_REMEMBERED:
            memo[number] = _point(bounds, number)
        if memo[number]:
            yield memo[number]


def _point(bounds: Bounds, number: int) -> _Point:
    """Returns a point within *bounds*, an empty one where some variable has no value there."""
    point: _Point = {}
    for place, (v, (low, high)) in enumerate(bounds.ranges.items()):
        first = None if low is None else _evaluated(low, point)
        last = (0 if first is None else first) + _REACH if high is None else _evaluated(high, point)
        if first is None and low is None and last is not None:
            first = last - _REACH
        if first is None or last is None or last < first:
            return {}
        part = _PARTS[number if number < len(_ENDS) else (number * (place + 1) + place) % len(_PARTS)]
        point[v] = first + int((last - first) * part)
    return point


def _evaluated(root: Expr, point: _Point) -> int | None:
    """Returns what *root* is at *point*, and remembers it there; None for memory and functions, whose values are not known."""
    stack: list[Node] = [root]
    while stack:
        e = stack[-1]
        if e in point:
            stack.pop()
            continue
        missing = [k for k in e.children() if k not in point] if _handler(e) is not None else []
        stack += missing
        if not missing:
            assert isinstance(e, Expr)
            point[e] = _from_children(e, point)
            stack.pop()
    return point[root]


def _handler(e: Node) -> Callable[..., Any] | None:
    """Returns the function that computes *e* of its children's values, if it is arithmetic on indices or conditions."""
    known = isinstance(e, Expr) and (e.dtype is INDEX or (e.dtype.is_bool and type(e) is not Cast))
    return _HANDLERS.get(type(e)) if known else None


def _from_children(e: Expr, point: _Point) -> int | None:
    handler = _handler(e)
    if handler is None:
        return int(e.value) if type(e) is Const and not e.dtype.is_float else None
    values = [point[k] for k in e.children()]  # type: ignore[index]
    found: int | None = None if None in values else handler(*values)
    return found


def _quotient(a: int, b: int) -> int | None:
    return a // b if b > 0 else None


def _remainder(a: int, b: int) -> int | None:
    return a % b if b > 0 else None


_HANDLERS: Final[dict[type[Node], Callable[..., Any]]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: lambda a, b: a * b,
    Neg: lambda a: -a,
    FloorDiv: _quotient,
    FloorMod: _remainder,
    Min: min,
    Max: max,
    Lt: lambda a, b: int(a < b),
    Le: lambda a, b: int(a <= b),
    Eq: lambda a, b: int(a == b),
    Ne: lambda a, b: int(a != b),
    And: lambda a, b: a & b,
    Or: lambda a, b: a | b,
    Not: lambda a: 1 - a,
    Select: lambda cond, then, other: then if cond else other,
    Cast: lambda a: a,
}
