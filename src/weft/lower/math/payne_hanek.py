"""Range reduction of large angles by integer arithmetic (Payne and Hanek, "Radian reduction for trigonometric functions", 1983).

A number x = m * 2^q of an integer m is n * pi + r where n + r / pi = x / pi. Of 1 / pi, the bits that m * 2^q makes multiples of
two change neither the parity of n nor r, and those far behind the point do not reach r: three words of it are enough,
beginning at a bit that the exponent names.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import Final

from weft.ir import Expr, const, select
from weft.lower.math.kit import Kit
from weft.support.dtypes import DType, f32, f64

FAST: Final[dict[DType, float]] = {f32: 1e5, f64: 1e6}
"""Up to here pi times an integer is subtracted in parts with no loss (Cody and Waite); beyond, angles are large."""

_LEAD: Final[dict[DType, int]] = {f32: 8, f64: 33}
"""Zeros of the table of 1 / pi before the one ahead of the point: the window of the smallest large angle begins inside."""

_WINDOW: Final = 3
"""Words of 1 / pi that are multiplied: a bit before the point, those that m shifts out, and 70 (float64: 138) for r.

No float is nearer to a multiple of pi / 2 than 2^-31 (float64: 2^-62) without being one, so that half of these remain.
"""


@cache
def pi_bits(count: int) -> int:
    """Returns pi * 2^count, rounded down (Machin, 1706: pi / 4 = 4 atan(1/5) - atan(1/239))."""
    guard = 32

    def inverse_tangent(d: int) -> int:
        power = (1 << (count + guard)) // d
        total, k, sign = power, 1, 1
        while power:
            power //= d * d
            k, sign = k + 2, -sign
            total += sign * (power // k)
        return total

    return 4 * (4 * inverse_tangent(5) - inverse_tangent(239)) >> guard


@cache
def _table(element: DType, width: int) -> tuple[int, ...]:
    """Returns the words of 1 / pi behind the leading zeros, as many as the largest exponent reaches."""
    words = _WINDOW + 1 + (1 << _index_bits(element, width)) - 1
    bits = width * words - _LEAD[element] - 1
    inverse = (1 << 2 * bits) // pi_bits(bits)
    return tuple([(inverse >> width * (words - 1 - k)) & ((1 << width) - 1) for k in range(words)])


def _index_bits(element: DType, width: int) -> int:
    """Returns how many bits number the word in which the window of the largest number begins."""
    mantissa, top = (23, 127) if element is f32 else (52, 1023)
    return ((top - mantissa + _LEAD[element]) // width).bit_length()


def reduce_large(kit: Kit, x: Expr, turns: int = 1, *, shifted: bool = False) -> tuple[Expr, Expr]:
    """Returns a word with the parity of n in its lowest bit, and r, where |x| = n * pi / turns + r and |r| <= pi / turns / 2.

    *turns* is 1 or 2. With *shifted*, pi / 2 is added to |x| first. *x* must be finite and beyond `FAST`, or the results mean
    nothing.
    """
    width = kit.format.word.bits
    bits = kit.bits(x) & (kit.sign_mask - 1)
    m = (bits & kit.mantissa_mask) | (1 << kit.format.mantissa)
    start = (bits >> kit.format.mantissa) + (_LEAD[kit.element] - kit.format.bias - kit.format.mantissa) % (1 << width)
    top, middle = _product(kit, m, _window(kit, start))
    if shifted:
        top = top + (1 << (width - 2))
    if turns == 2:
        top, middle = (top << 1) | (middle >> (width - 1)), middle << 1
    high, low = (top << 1) | (middle >> (width - 1)), middle << 1
    negative = high >> (width - 1)
    flip = negative * ((1 << width) - 1)  # the complement, which is off by less than r's last bit
    r = _angle(kit, high ^ flip, low ^ flip, turns)
    return (top >> (width - 1)) + negative, kit.with_sign(r, negative << (width - 1))


def _window(kit: Kit, start: Expr) -> list[Expr]:
    """Returns the words of 1 / pi from bit *start* of the table on."""
    width = kit.format.word.bits
    index_bits = _index_bits(kit.element, width)
    words: list[Expr] = [const(w, kit.word) for w in _table(kit.element, width)]
    index = start >> (width.bit_length() - 1)
    for bit in reversed(range(index_bits)):  # a barrel shifter, by whole words
        step = 1 << bit
        odd = (index & step) > 0
        words = [select(odd, words[k + step], words[k]) for k in range(_WINDOW + step)]
    shift = start & (width - 1)
    return [(a << shift) | ((b >> 1) >> ((width - 1) - shift)) for a, b in pairwise(words)]


def _product(kit: Kit, m: Expr, window: list[Expr]) -> tuple[Expr, Expr]:
    """Returns the upper two words of m times the window, without the words that overflow."""
    first, second, third = window
    carried = _high_product(kit, m, third)
    low = m * second
    middle = low + carried
    carry = select(middle < low, const(1, kit.word), const(0, kit.word))
    return m * first + _high_product(kit, m, second) + carry, middle


def _high_product(kit: Kit, a: Expr, b: Expr) -> Expr:
    """Returns the upper word of a product of two words, from products of half words."""
    half = kit.format.word.bits // 2
    mask = (1 << half) - 1
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    low, cross, other = a0 * b0, a0 * b1, a1 * b0
    middle = (low >> half) + (cross & mask) + (other & mask)
    return a1 * b1 + (cross >> half) + (other >> half) + (middle >> half)


def _angle(kit: Kit, high: Expr, low: Expr, turns: int) -> Expr:
    """Returns the fraction of pi / turns in the two words, with its rounding error compensated."""
    width = kit.format.word.bits
    spare = (1 << (width - kit.format.mantissa - 1)) - 1
    scale = math.ldexp(1.0, -width)
    head = kit.real_of(high & ((1 << width) - 1 - spare))
    rest = kit.fma(kit.real_of(low), scale, kit.real_of(high & spare))
    exact = pi_bits(256)
    near = float(kit.element.numpy.type(math.ldexp(exact >> 192, -64)))
    error = math.ldexp(float((exact >> 128) - int(math.ldexp(near, 128))), -128)
    unit = scale / turns
    return kit.fma(head, near * unit, kit.fma(head, error * unit, rest * (near * unit)))
