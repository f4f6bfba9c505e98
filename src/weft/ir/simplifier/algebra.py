"""The rewrite rules of the simplifier, a row each: all laws but those of sums, digits and comparisons of exact integers.

A row belongs to a kind of operand type. "int" rows hold for all integers, "exact" ones only where overflow does not
happen, "wrapping" ones are needed only where it does, since polynomials cover them elsewhere; "float" ones hold to the last
bit, signed zeros and NaN included (a NaN's payload and sign aside).
"""

from __future__ import annotations

from typing import Final

from weft.ir import expr as ir
from weft.ir.simplifier.rule_patterns import (
    LANES,
    Rule,
    constants,
    eq_,
    fold,
    max_,
    min_,
    ne_,
    node_of,
    ramp_,
    rule,
    select_,
    spread,
    table,
    wild,
)

x, y, z, s, p, q, r = wild("x y z s p q r")
a, b, c = constants("a b c")
_last = x + s * (LANES - 1)  # the last lane of ramp(x, s)

CHOICE: Final = table(
    "any",
    rule(select_(True, x, y), x),
    rule(select_(False, x, y), y),
    rule(select_(p, x, x), x),
    rule(select_(~p, x, y), select_(p, y, x)),
    rule(select_(p, select_(p, x, y), z), select_(p, x, z)),
    rule(select_(p, x, select_(p, y, z)), select_(p, x, z)),
    rule(select_(p, x, select_(q, x, y)), select_(p | q, x, y)),
    rule(select_(p, select_(q, x, y), y), select_(p & q, x, y)),
    rule(~eq_(x, y), ne_(x, y)),
    rule(~ne_(x, y), eq_(x, y)),
)

LOGIC: Final = table(
    "bool",
    rule(select_(p, True, False), p),
    rule(select_(p, False, True), ~p),
    rule(select_(p, True, q), p | q),
    rule(select_(p, q, False), p & q),
    rule(p & True, p),
    rule(node_of(ir.And, True, p), p),
    rule(p & False, False),
    rule(node_of(ir.And, False, p), False),
    rule(p & p, p),
    rule(p & ~p, False),
    rule(~p & p, False),
    rule(p & (p & q), p & q),
    rule((p & q) & p, p & q),
    rule((p & q) & q, p & q),
    rule(p & (p | q), p),
    rule((p | q) & p, p),
    rule(p | False, p),
    rule(node_of(ir.Or, False, p), p),
    rule(p | True, True),
    rule(node_of(ir.Or, True, p), True),
    rule(p | p, p),
    rule(p | ~p, True),
    rule(~p | p, True),
    rule(p | (p | q), p | q),
    rule((p | q) | p, p | q),
    rule((p | q) | q, p | q),
    rule(p | (p & q), p),
    rule((p & q) | p, p),
    rule(~~p, p),
    rule(eq_(p, p), True),
    rule(ne_(p, p), False),
    rule(eq_(p, True), p),
    rule(eq_(p, False), ~p),
    rule(ne_(p, True), ~p),
    rule(ne_(p, False), p),
)

INTEGERS: Final = table(
    "int",
    rule(x + 0, x),
    rule(a + x, x + a),
    rule(x - 0, x),
    rule(x - x, 0),
    rule(node_of(ir.Sub, 0, x), -x),
    rule((x + a) + b, x + fold(a + b)),
    rule((x + a) - b, x + fold(a - b)),
    rule((x - a) + b, x + fold(b - a)),
    rule((x - a) - b, x - fold(a + b)),
    rule((x + y) - x, y),
    rule((x + y) - y, x),
    rule(x * 0, 0),
    rule(x * 1, x),
    rule(a * x, x * a),
    rule((x * a) * b, x * fold(a * b)),
    rule(node_of(ir.Neg, -x), x),
    rule(x // 1, x),
    rule(x % 1, 0),
    rule(node_of(ir.TruncDiv, x, 1), x),
    rule(node_of(ir.TruncMod, x, 1), 0),
    rule(node_of(ir.TruncDiv, x, y), x // y, when=(node_of(ir.Le, 0, x)) & (node_of(ir.Lt, 0, y))),
    rule(node_of(ir.TruncMod, x, y), x % y, when=(node_of(ir.Le, 0, x)) & (node_of(ir.Lt, 0, y))),
    rule(min_(x, x), x),
    rule(max_(x, x), x),
    rule(min_(a, x), min_(x, a)),
    rule(max_(a, x), max_(x, a)),
    rule(min_(min_(x, a), b), min_(x, fold(min_(a, b)))),
    rule(max_(max_(x, a), b), max_(x, fold(max_(a, b)))),
    rule(min_(min_(x, y), x), min_(x, y)),
    rule(min_(min_(x, y), y), min_(x, y)),
    rule(min_(x, min_(x, y)), min_(x, y)),
    rule(min_(y, min_(x, y)), min_(x, y)),
    rule(max_(max_(x, y), x), max_(x, y)),
    rule(max_(max_(x, y), y), max_(x, y)),
    rule(max_(x, max_(x, y)), max_(x, y)),
    rule(max_(y, max_(x, y)), max_(x, y)),
    rule(min_(max_(x, y), x), x),
    rule(min_(max_(x, y), y), y),
    rule(max_(min_(x, y), x), x),
    rule(max_(min_(x, y), y), y),
    rule(max_(min_(max_(x, a), b), a), min_(max_(x, a), b), when=a <= b),
    rule(min_(max_(min_(x, b), a), b), max_(min_(x, b), a), when=a <= b),
    rule(select_(x < y, x, y), min_(x, y)),
    rule(select_(x < y, y, x), max_(x, y)),
    rule(select_(x <= y, x, y), min_(x, y)),
    rule(select_(x <= y, y, x), max_(x, y)),
    rule(select_(eq_(x, y), x, y), y),
    rule(select_(ne_(x, y), x, y), x),
    rule(eq_(x, x), True),
    rule(ne_(x, x), False),
    rule(x < x, False),
    rule(x <= x, True),
    rule(~(x < y), y <= x),
    rule(~(x <= y), y < x),
    rule(node_of(ir.BitAnd, x, x), x),
    rule(node_of(ir.BitAnd, x, 0), 0),
    rule(node_of(ir.BitAnd, 0, x), 0),
    rule(node_of(ir.BitOr, x, x), x),
    rule(node_of(ir.BitOr, x, 0), x),
    rule(node_of(ir.BitOr, 0, x), x),
    rule(node_of(ir.BitXor, x, x), 0),
    rule(node_of(ir.BitXor, x, 0), x),
    rule(node_of(ir.BitXor, 0, x), x),
    rule(node_of(ir.ShiftLeft, x, 0), x),
    rule(node_of(ir.ShiftRight, x, 0), x),
)

SIGNED: Final = table(
    "signed",
    rule(x + a, x - fold(-a), when=(a < 0) & node_of(ir.Lt, 0, fold(-a))),
    rule(x - a, x + fold(-a), when=(a < 0) & node_of(ir.Lt, 0, fold(-a))),
)

WRAPPING: Final = table(
    "wrapping",
    rule(min_(x, y), x, when=x <= y),
    rule(min_(x, y), y, when=y <= x),
    rule(max_(x, y), y, when=x <= y),
    rule(max_(x, y), x, when=y <= x),
)

FLOATS: Final = table(
    "float",
    rule(x * 1.0, x),
    rule(node_of(ir.Mul, 1.0, x), x),
    rule(x / 1.0, x),
    rule(x + -0.0, x),
    rule(node_of(ir.Add, -0.0, x), x),
    rule(x - 0.0, x),
    rule(node_of(ir.Neg, -x), x),
    rule(x + (-y), x - y),
    rule(x - (-y), x + y),
    rule(min_(x, x), x),
    rule(max_(x, x), x),
    rule(x < x, False),
)

VECTORS: Final = table(
    "exact",
    rule(ramp_(x, 0), spread(x)),
    rule(ramp_(x, s) + ramp_(y, z), ramp_(x + y, s + z)),
    rule(ramp_(x, s) - ramp_(y, z), ramp_(x - y, s - z)),
    rule(ramp_(x, s) + spread(y), ramp_(x + y, s)),
    rule(spread(y) + ramp_(x, s), ramp_(x + y, s)),
    rule(ramp_(x, s) - spread(y), ramp_(x - y, s)),
    rule(spread(y) - ramp_(x, s), ramp_(y - x, -s)),
    rule(ramp_(x, s) * spread(y), ramp_(x * y, s * y)),
    rule(spread(y) * ramp_(x, s), ramp_(x * y, s * y)),
    rule(-ramp_(x, s), ramp_(-x, -s)),
    rule(ramp_(x, s) // spread(y), spread(x // y), when=eq_(x // y, _last // y)),
    rule(ramp_(x, s) % spread(y), ramp_(x % y, s), when=eq_(x // y, _last // y)),
    rule(ramp_(x, s) // spread(y), ramp_(x // y, s // y), when=eq_(s % y, 0)),
    rule(ramp_(x, s) % spread(y), spread(x % y), when=eq_(s % y, 0)),
    rule(ramp_(x, s) < spread(y), True, when=(x < y) & (_last < y)),
    rule(ramp_(x, s) < spread(y), False, when=(y <= x) & (y <= _last)),
    rule(ramp_(x, s) <= spread(y), True, when=(x <= y) & (_last <= y)),
    rule(ramp_(x, s) <= spread(y), False, when=(y < x) & (y < _last)),
    rule(spread(y) < ramp_(x, s), True, when=(y < x) & (y < _last)),
    rule(spread(y) < ramp_(x, s), False, when=(x <= y) & (_last <= y)),
    rule(spread(y) <= ramp_(x, s), True, when=(y <= x) & (y <= _last)),
    rule(spread(y) <= ramp_(x, s), False, when=(x < y) & (_last < y)),
    rule(min_(ramp_(x, s), spread(y)), ramp_(x, s), when=(x <= y) & (_last <= y)),
    rule(min_(ramp_(x, s), spread(y)), spread(y), when=(y <= x) & (y <= _last)),
    rule(max_(ramp_(x, s), spread(y)), spread(y), when=(x <= y) & (_last <= y)),
    rule(max_(ramp_(x, s), spread(y)), ramp_(x, s), when=(y <= x) & (y <= _last)),
)

ALL: Final[tuple[Rule, ...]] = CHOICE + LOGIC + INTEGERS + SIGNED + WRAPPING + FLOATS + VECTORS

_TRUE_OF: Final = {
    "bool": ("any", "bool"),
    "unsigned": ("any", "int", "wrapping"),
    "narrow": ("any", "int", "wrapping", "signed"),
    "exact": ("any", "exact", "int", "signed"),
    "float": ("any", "float"),
}


KINDS: Final = tuple(_TRUE_OF)


def rules_for(kind: str) -> tuple[Rule, ...]:
    """Returns the rows that are true of operands of *kind*, one of `KINDS`: narrow integers are signed ones that wrap."""
    return tuple([r for r in ALL if r.kind in _TRUE_OF[kind]])
