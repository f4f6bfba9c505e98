"""A divisor of an integer that the form of its expression tells, whatever the values of its variables are."""

from __future__ import annotations

from math import gcd

from weft.ir.expr.base import Expr
from weft.ir.expr.binary import Add, FloorDiv, FloorMod, Max, Min, Mul, Sub
from weft.ir.expr.nodes import Cast, Const, Neg, Select


def known_divisor(e: Expr) -> int:
    """Returns a number that certainly divides *e*, an integer: 12 for `x * 24 + y * 12`, 0 for zero, 1 where nothing is known."""
    match e:
        case Const(value):
            return abs(int(value))
        case Add(a, b) | Sub(a, b) | Min(a, b) | Max(a, b) | Select(_, a, b) | FloorMod(a, b):
            return gcd(known_divisor(a), known_divisor(b))
        case Mul(a, b):
            return known_divisor(a) * known_divisor(b)
        case FloorDiv(a, Const(value)) if int(value) and known_divisor(a) % int(value) == 0:
            return known_divisor(a) // abs(int(value))
        case Neg(a):
            return known_divisor(a)
        case Cast(a, _) if e.dtype.is_int and a.dtype.is_int and e.dtype.bits >= a.dtype.bits:
            return known_divisor(a)
        case _:
            return 1
