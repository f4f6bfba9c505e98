"""Interval arithmetic over the integers: bounds of a value by two constants.

Moore, "Interval Analysis" (1966), for the operators of `ir.expr.expr`. An end of None is unbounded. A function here is given
non-empty intervals and returns one that holds every value the operator can take; division by zero has no value.
"""

from __future__ import annotations

from math import inf
from typing import Final, NamedTuple

from weft.support.dtypes import DType


class Interval(NamedTuple):
    """The integers from *lo* to *hi*, both included; None is unbounded."""

    lo: int | None
    hi: int | None

    @property
    def is_point(self) -> bool:
        """Whether it holds exactly one integer."""
        return self.lo is not None and self.lo == self.hi

    def holds(self, value: int) -> bool:
        """Answers whether *value* lies inside."""
        return (self.lo is None or self.lo <= value) and (self.hi is None or value <= self.hi)

    def is_within(self, other: Interval) -> bool:
        """Answers whether *other* holds all of it."""
        return (other.lo is None or (self.lo is not None and self.lo >= other.lo)) and (
            other.hi is None or (self.hi is not None and self.hi <= other.hi)
        )


_FAR: Final = 1 << 128
"""Beyond this an end is left open: a product repeated doubles the digits of its bounds each time."""

EVERYTHING: Final = Interval(None, None)
UNKNOWN_BOOL: Final = Interval(0, 1)
YES: Final = Interval(1, 1)
NO: Final = Interval(0, 0)


def of_type(dtype: DType) -> Interval:
    """Returns the values of a type; those of `i64` and of floats count as unbounded."""
    known = _OF_TYPE.get(dtype)
    if known is None:
        known = _OF_TYPE[dtype] = _range(dtype)
    return known


_OF_TYPE: Final[dict[DType, Interval]] = {}


def _range(dtype: DType) -> Interval:
    if dtype.is_bool:
        return UNKNOWN_BOOL
    if not dtype.is_int or (dtype.kind == "int" and dtype.bits >= 64):
        return EVERYTHING
    return Interval(*dtype.int_range)


def wrap(value: Interval, dtype: DType) -> Interval:
    """Returns *value* if *dtype* holds all of it, else the whole range of *dtype*, as the result may have wrapped."""
    limits = of_type(dtype)
    return value if value.is_within(limits) else limits


def near(a: Interval) -> Interval:
    """Returns *a* with its ends open where they are beyond all numbers in use."""
    lo, hi = a
    if (lo is None or -_FAR < lo < _FAR) and (hi is None or -_FAR < hi < _FAR):
        return a
    return Interval(
        None if lo is None or lo <= -_FAR else min(lo, _FAR), None if hi is None or hi >= _FAR else max(hi, -_FAR)
    )


def union(a: Interval, b: Interval) -> Interval:
    """Returns the smallest interval that holds both."""
    return Interval(_low(a.lo, b.lo), _high(a.hi, b.hi))


def _low(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else min(a, b)


def _high(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else max(a, b)


def add(a: Interval, b: Interval) -> Interval:
    """Bounds `a + b`."""
    (al, ah), (bl, bh) = a, b
    return Interval(None if al is None or bl is None else al + bl, None if ah is None or bh is None else ah + bh)


def neg(a: Interval) -> Interval:
    """Bounds `-a`."""
    return Interval(None if a.hi is None else -a.hi, None if a.lo is None else -a.lo)


def sub(a: Interval, b: Interval) -> Interval:
    """Bounds `a - b`."""
    return add(a, neg(b))


def _open(a: Interval) -> tuple[float, float]:
    """The ends as numbers: ints, or infinities, which compare and multiply with ints exactly."""
    return (-inf if a.lo is None else a.lo), (inf if a.hi is None else a.hi)


def _closed(lo: float, hi: float) -> Interval:
    return Interval(lo if isinstance(lo, int) else None, hi if isinstance(hi, int) else None)


def mul(a: Interval, b: Interval) -> Interval:
    """Bounds `a * b`."""
    products = [x * y if x and y else 0 for x in _open(a) for y in _open(b)]
    return _closed(min(products), max(products))


def minimum(a: Interval, b: Interval) -> Interval:
    """Bounds `min(a, b)`."""
    hi = b.hi if a.hi is None else a.hi if b.hi is None else min(a.hi, b.hi)
    return Interval(_low(a.lo, b.lo), hi)


def maximum(a: Interval, b: Interval) -> Interval:
    """Bounds `max(a, b)`."""
    lo = b.lo if a.lo is None else a.lo if b.lo is None else max(a.lo, b.lo)
    return Interval(lo, _high(a.hi, b.hi))


def _signs(b: Interval) -> tuple[Interval | None, Interval | None]:
    """Splits a divisor into its positive values and the magnitudes of its negative ones."""
    lo, hi = _open(b)
    above = _closed(max(lo, 1), hi) if hi >= 1 else None
    below = _closed(max(-hi, 1), -lo) if lo <= -1 else None
    return above, below


def _either(a: Interval | None, b: Interval | None) -> Interval:
    if a is None or b is None:
        return a or b or EVERYTHING
    return union(a, b)


def floordiv(a: Interval, b: Interval) -> Interval:
    """Bounds `a // b`."""
    above, below = _signs(b)
    return _either(above and _floordiv_positive(a, above), below and _floordiv_positive(neg(a), below))


def _floordiv_positive(a: Interval, b: Interval) -> Interval:
    (al, ah), (bl, bh) = _open(a), _open(b)
    return _closed(_quotient(al, bl if al < 0 else bh), _quotient(ah, bh if ah < 0 else bl))


def _quotient(a: float, b: float) -> float:
    if isinstance(a, int):
        return a // b if isinstance(b, int) else -1 if a < 0 else 0
    return a


def floormod(a: Interval, b: Interval) -> Interval:
    """Bounds `a % b`."""
    above, below = _signs(b)
    return _either(above and _floormod_positive(a, above), below and neg(_floormod_positive(neg(a), below)))


def _floormod_positive(a: Interval, b: Interval) -> Interval:
    (al, ah), (bl, bh) = _open(a), _open(b)
    if al >= 0 and ah < bl:
        return a
    if bl == bh and isinstance(al, int) and isinstance(ah, int) and al // b.lo == ah // b.lo:  # type: ignore[operator]
        return Interval(al % int(bl), ah % int(bl))
    return _closed(0, min(bh - 1, ah) if al >= 0 else bh - 1)


def truncdiv(a: Interval, b: Interval) -> Interval:
    """Bounds `a / b` rounded towards zero."""
    above, below = _signs(b)
    return _either(above and _truncdiv_positive(a, above), below and neg(_truncdiv_positive(a, below)))


def _truncdiv_positive(a: Interval, b: Interval) -> Interval:
    """Rounding towards zero is odd: `-((-a) / b)` for the negative side."""
    parts = []
    lo, hi = _open(a)
    if hi >= 0:
        parts.append(_floordiv_positive(_closed(max(lo, 0), hi), b))
    if lo < 0:
        parts.append(neg(_floordiv_positive(_closed(max(-hi, 0), -lo), b)))
    return parts[0] if len(parts) == 1 else union(*parts)


def truncmod(a: Interval, b: Interval) -> Interval:
    """Bounds the remainder of `truncdiv`, which has the sign of *a*."""
    lo, hi = _open(a)
    bl, bh = _open(b)
    most = max(abs(bl), abs(bh)) - 1
    return _closed(max(lo, -most) if lo < 0 else 0, min(hi, most) if hi > 0 else 0)


def bitand(a: Interval, b: Interval) -> Interval:
    """Bounds `a & b`: one operand that is not negative bounds the result."""
    tops = [x.hi for x in (a, b) if x.lo is not None and x.lo >= 0]
    if not tops:
        return Interval(None, None if a.hi is None or b.hi is None else max(a.hi, b.hi, 0))
    known = [t for t in tops if t is not None]
    return Interval(0, min(known) if known else None)


def bitor(a: Interval, b: Interval) -> Interval:
    """Bounds `a | b` and `a ^ b` of operands that are not negative: no new high bit appears."""
    if a.lo is None or b.lo is None or min(a.lo, b.lo) < 0:
        return EVERYTHING
    if a.hi is None or b.hi is None:
        return Interval(0, None)
    return Interval(0, (1 << max(a.hi, b.hi).bit_length()) - 1)


def _powers(b: Interval) -> Interval:
    """The powers of two for shift counts in *b*, which lie in 0 .. 63."""
    return Interval(1 << min(max(b.lo or 0, 0), 63), 1 << min(63 if b.hi is None else max(b.hi, 0), 63))


def shift_left(a: Interval, b: Interval) -> Interval:
    """Bounds `a << b`."""
    return mul(a, _powers(b))


def shift_right(a: Interval, b: Interval) -> Interval:
    """Bounds `a >> b`."""
    return floordiv(a, _powers(b))


def less(a: Interval, b: Interval) -> Interval:
    """Decides `a < b` where the intervals do not overlap."""
    if a.hi is not None and b.lo is not None and a.hi < b.lo:
        return YES
    return NO if a.lo is not None and b.hi is not None and a.lo >= b.hi else UNKNOWN_BOOL


def less_equal(a: Interval, b: Interval) -> Interval:
    """Decides `a <= b` where the intervals do not overlap."""
    return _flip(less(b, a))


def equal(a: Interval, b: Interval) -> Interval:
    """Decides `a == b` of two points, or of intervals that do not meet."""
    if a.is_point and a == b:
        return YES
    return NO if less(a, b) is YES or less(b, a) is YES else UNKNOWN_BOOL


def not_equal(a: Interval, b: Interval) -> Interval:
    """Decides `a != b`."""
    return _flip(equal(a, b))


def _flip(a: Interval) -> Interval:
    """Bounds `not a` of a truth value."""
    return NO if a is YES else YES if a is NO else UNKNOWN_BOOL
