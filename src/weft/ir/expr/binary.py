"""Operators of two operands: arithmetic, comparisons, logic and bits.

Integers wrap in their width, except that overflow of `i32` and `i64` is taken not to happen, as in C. `FloorDiv` and `FloorMod`
round towards minus infinity (Python's `//` and `%`), `TruncDiv` and `TruncMod` towards zero. `Min` and `Max` of floats propagate
NaN. `And` and `Or` stop early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from weft.ir.expr.base import Expr
from weft.ir.expr.node import DIVIDES, node
from weft.support.dtypes import DType, bool_
from weft.support.errors import TypeMismatch


class Binary(Expr):
    """An operator of two operands of one type; `symbol` is its text form, `numpy` its reference meaning."""

    __slots__ = ()
    symbol: ClassVar[str]
    numpy: ClassVar[Any]
    precedence: ClassVar[int]
    commutative: ClassVar[bool] = False
    kinds: ClassVar[str] = "number"  # which operand types it takes: number, int, float, bool, any
    a: Expr
    b: Expr

    if TYPE_CHECKING:

        def __init__(self, a: Expr, b: Expr) -> None: ...

    def derive(self) -> tuple[DType]:
        """Returns the result's type, which is the operands'; raises `TypeMismatch` where they differ."""
        dtype = self.a.dtype
        if dtype is not self.b.dtype or not _ALLOWED[self.kinds](dtype):
            raise _mismatch(self)
        return (dtype,)


class Comparison(Binary):
    """A comparison, which answers a bool for each lane."""

    __slots__ = ()
    precedence = 4

    def derive(self) -> tuple[DType]:
        """Returns bool, with the operands' lanes."""
        return (bool_.with_lanes(super().derive()[0].lanes),)


_ALLOWED: Final[dict[str, Callable[[DType], bool]]] = {
    "number": lambda t: t.is_int or t.is_float,
    "int": lambda t: t.is_int,
    "float": lambda t: t.is_float,
    "bool": lambda t: t.is_bool,
    "any": lambda t: True,
}


def _mismatch(e: Binary) -> TypeMismatch:
    dtype = e.a.dtype
    if dtype is e.b.dtype:
        return TypeMismatch(f"`{e.symbol}` does not take {dtype}, only {e.kinds} types")
    return TypeMismatch(
        f"`{e.symbol}` takes two operands of one type, not {dtype} and {e.b.dtype}", hint="cast one of them"
    )


@node
class Add(Binary):
    """`a + b`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, commutative = "+", np.add, 6, True
    a: Expr
    b: Expr


@node
class Sub(Binary):
    """`a - b`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence = "-", np.subtract, 6
    a: Expr
    b: Expr


@node
class Mul(Binary):
    """`a * b`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, commutative = "*", np.multiply, 7, True
    a: Expr
    b: Expr


@node
class Div(Binary):
    """`a / b` of floats."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "/", np.divide, 7, "float"
    a: Expr
    b: Expr


@node
class FloorDiv(Binary):
    """`a // b` of integers, rounded towards minus infinity."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "//", np.floor_divide, 7, "int"
    trait = DIVIDES
    a: Expr
    b: Expr


@node
class FloorMod(Binary):
    """`a % b` of integers, with the sign of *b*."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "%", np.mod, 7, "int"
    trait = DIVIDES
    a: Expr
    b: Expr


def _trunc_div(a: Any, b: Any) -> Any:
    q = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -q, q).astype(np.asarray(a).dtype)[()]


@node
class TruncDiv(Binary):
    """`a / b` of integers, rounded towards zero; text form `truncdiv(a, b)`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "truncdiv", _trunc_div, 0, "int"
    trait = DIVIDES
    a: Expr
    b: Expr


@node
class TruncMod(Binary):
    """The remainder of `TruncDiv`, with the sign of *a*; text form `truncmod(a, b)`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "truncmod", np.fmod, 0, "int"
    trait = DIVIDES
    a: Expr
    b: Expr


DIVISIONS: Final = (FloorDiv, FloorMod, TruncDiv, TruncMod)
"""The operators that have no value where the divisor is zero."""


@node
class Min(Binary):
    """`min(a, b)`; of floats, NaN if either is."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, commutative = "min", np.minimum, 0, True
    a: Expr
    b: Expr


@node
class Max(Binary):
    """`max(a, b)`; of floats, NaN if either is."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, commutative = "max", np.maximum, 0, True
    a: Expr
    b: Expr


@node
class Lt(Comparison):
    """`a < b`."""

    __derived__ = ("dtype",)
    symbol, numpy = "<", np.less
    a: Expr
    b: Expr


@node
class Le(Comparison):
    """`a <= b`."""

    __derived__ = ("dtype",)
    symbol, numpy = "<=", np.less_equal
    a: Expr
    b: Expr


@node
class Eq(Comparison):
    """`a == b`; built by `eq(a, b)`."""

    __derived__ = ("dtype",)
    symbol, numpy, commutative, kinds = "==", np.equal, True, "any"
    a: Expr
    b: Expr


@node
class Ne(Comparison):
    """`a != b`; built by `ne(a, b)`."""

    __derived__ = ("dtype",)
    symbol, numpy, commutative, kinds = "!=", np.not_equal, True, "any"
    a: Expr
    b: Expr


@node
class And(Binary):
    """`a and b`; *b* is evaluated only where *a* holds."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "and", np.logical_and, 2, "bool"
    a: Expr
    b: Expr


@node
class Or(Binary):
    """`a or b`; *b* is evaluated only where *a* does not hold."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "or", np.logical_or, 1, "bool"
    a: Expr
    b: Expr


@node
class BitAnd(Binary):
    """`a & b`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, commutative, kinds = "&", np.bitwise_and, 5, True, "int"
    a: Expr
    b: Expr


@node
class BitOr(Binary):
    """`a | b`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, commutative, kinds = "|", np.bitwise_or, 5, True, "int"
    a: Expr
    b: Expr


@node
class BitXor(Binary):
    """`a ^ b`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, commutative, kinds = "^", np.bitwise_xor, 5, True, "any"
    a: Expr
    b: Expr


@node
class ShiftLeft(Binary):
    """`a << b`, for 0 <= b < bits."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "<<", np.left_shift, 5, "int"
    a: Expr
    b: Expr


@node
class ShiftRight(Binary):
    """`a >> b`, for 0 <= b < bits; keeps the sign of a signed *a*."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = ">>", np.right_shift, 5, "int"
    a: Expr
    b: Expr
