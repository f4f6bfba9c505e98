"""The pure functions an expression may apply, each declared once with its reference meaning in NumPy.

    exp = declare("exp", 1, np.exp)

declares the name for `Apply("exp", (x,))`, the printer, the parser, constant folding and the interpreter alike.
How a target computes it is the business of `lower` (expansion to polynomials) and of the target's native list.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import ml_dtypes
import numpy as np

from weft.support.dtypes import DType

Operands: TypeAlias = Literal["floats", "integers", "numbers", "bools"]
"""The operand types of an intrinsic; numbers are floats and integers."""


@dataclass(frozen=True)
class Intrinsic:
    """A pure function: its arity, its meaning on NumPy values, and whether it answers a bool.

    `unlikely` returns its operand, a bool that is rarely true: of a `Select` on it, a backend may skip the operand that no lane
    chooses.
    `watched(x, low, high)` is `min(max(x, low), high)`, which rarely differs from *x*; a backend may report to its caller where
    it differs, and such a report may be a false alarm.
    `exp2_flushed` is the power of two where that is a normal number, else zero.
    `exp_flushed` is the exponential of a number of at most 88; where that is no normal number, it may be zero.
    `max_number` is the larger operand; where one is NaN, it may be the other.
    `round_tf32` returns its operand in the 11 significant bits of tf32, ties to even, as `cvt.rn.tf32` does.
    `rounded` returns its operand, a sum as it was rounded: a compiler that may reassociate is kept from looking through it.
    """

    name: str
    arity: int
    reference: Callable[..., Any]
    predicate: bool = False
    takes: Operands = "floats"

    def accepts(self, operand: DType) -> bool:
        """Tells whether the function is one of operands of type *operand*."""
        kind: Operands = "floats" if operand.is_float else "bools" if operand.is_bool else "integers"
        return self.takes == kind or (self.takes == "numbers" and kind != "bools")

    def result(self, operand: DType) -> DType:
        """Returns the type of the result for operands of type *operand*."""
        return DType("bool", 1, operand.lanes) if self.predicate else operand


INTRINSICS: Final[dict[str, Intrinsic]] = {}


def declare(
    name: str, arity: int, reference: Callable[..., Any], *, predicate: bool = False, takes: Operands = "floats"
) -> Intrinsic:
    """Declares a pure intrinsic; all operands share one type."""
    made = INTRINSICS[name] = Intrinsic(name, arity, reference, predicate, takes)
    return made


def _in_double(fn: Callable[[float], float]) -> Callable[[Any], Any]:
    """Lifts a scalar function of `math` to NumPy values, computed in double and rounded once."""
    lifted = np.vectorize(fn, otypes=[np.float64])

    def reference(x: Any) -> Any:
        return lifted(np.asarray(x, np.float64)).astype(np.asarray(x).dtype)[()]

    return reference


def _sigmoid(x: Any) -> Any:
    wide = np.asarray(x, np.float64)
    with np.errstate(over="ignore"):
        return (1.0 / (1.0 + np.exp(-wide))).astype(np.asarray(x).dtype)[()]


def _fma(a: Any, b: Any, c: Any) -> Any:
    """Rounds `a * b + c` once; float32 products are exact in double, so one more rounding is all that differs."""
    dtype = np.asarray(a).dtype
    wide = np.longdouble if dtype == np.float64 else np.float64
    return (np.asarray(a, wide) * np.asarray(b, wide) + np.asarray(c, wide)).astype(dtype)[()]


def _exp2_flushed(x: Any) -> Any:
    made = np.exp2(x)
    return np.where(made < ml_dtypes.finfo(made.dtype).smallest_normal, np.zeros_like(made), made)[()]


def _rsqrt(x: Any) -> Any:
    return (1.0 / np.sqrt(np.asarray(x, np.float64))).astype(np.asarray(x).dtype)[()]


def _ldexp(x: Any, n: Any) -> Any:
    """Returns x * 2^n, rounded once, for a whole number n."""
    dtype = np.asarray(x).dtype
    exponents = np.clip(np.asarray(n, np.float64), -4096, 4096).astype(np.int32)  # beyond that nothing changes
    with np.errstate(over="ignore"):
        return np.ldexp(np.asarray(x, np.float64), exponents).astype(dtype)[()]


def _round_away(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _round_tf32(x: Any) -> Any:
    given = np.asarray(x)
    wide = given if given.dtype == np.float64 else given.astype(np.float32)
    lost = 42 if wide.dtype == np.float64 else 13
    word = np.dtype(f"u{wide.itemsize}")
    bits = wide.view(word)
    bits = (bits + word.type((1 << (lost - 1)) - 1) + (bits >> lost & 1)) >> lost << lost
    return np.where(np.isnan(wide), np.nan, bits.view(wide.dtype)).astype(given.dtype)[()]


for _name in ("exp", "exp2", "log", "log2", "log1p", "expm1", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"):
    declare(_name, 1, getattr(np, _name))
for _name, _reference in {
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}.items():
    declare(_name, 1, _reference)
declare("exp2_flushed", 1, _exp2_flushed)
declare("exp_flushed", 1, np.exp)
declare("max_number", 2, np.fmax)
declare("rounded", 1, lambda x: x)
declare("erf", 1, _in_double(math.erf))
declare("sigmoid", 1, _sigmoid)
declare("rsqrt", 1, _rsqrt)
declare("pow", 2, np.power)
declare("fma", 3, _fma)
declare("ldexp", 2, _ldexp)
declare("fmod", 2, np.fmod)
declare("floor", 1, np.floor)
declare("ceil", 1, np.ceil)
declare("trunc", 1, np.trunc)
declare("round_even", 1, np.rint)
declare("round_away", 1, _round_away)
declare("round_tf32", 1, _round_tf32)
declare("copysign", 2, np.copysign)
declare("abs", 1, np.abs, takes="numbers")
declare("unlikely", 1, lambda cond: cond, predicate=True, takes="bools")
declare("watched", 3, lambda x, low, high: np.minimum(np.maximum(x, low), high), takes="integers")
declare("is_nan", 1, np.isnan, predicate=True)
declare("is_inf", 1, np.isinf, predicate=True)
