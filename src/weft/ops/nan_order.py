"""The order of numbers with NaN among them: that of NumPy, where NaN is above all numbers, and one NaN is as good as another."""

from __future__ import annotations

from weft.ir import Cast, Expr, Reinterpret, const, ne, select
from weft.support.dtypes import f32, f64, i32, i64


def order_key(e: Expr, *, nan_first: bool = False) -> Expr:
    """Returns an integer for each number that is greater just where the number is; for NaN, the largest that there is.

    With *nan_first* it is the smallest. Zeros are equal, whatever their sign. Integers are their own keys.

    A float's bits without the sign are in the order of its magnitude: with the sign as an integer has it, in that of the numbers.
    """
    if not e.dtype.is_float:
        return e
    wide = e if e.dtype is f64 else Cast(e, f32) if e.dtype is not f32 else e
    word = i64 if wide.dtype is f64 else i32
    low, high = word.int_range
    bits = Reinterpret(wide, word)
    sign = bits >> (word.bits - 1)  # all ones where negative
    number = ((bits & high) ^ sign) - sign
    return select(ne(wide, wide), const(low if nan_first else high, word), number)
