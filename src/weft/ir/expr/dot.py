"""Dot products across neighbouring lanes, as vector units have them: `dot(acc, a, b)`.

    dot(acc: i32x16, a: u8x64, b: i8x64)[n] = acc[n] + a[4n]*b[4n] + a[4n+1]*b[4n+1] + a[4n+2]*b[4n+2] + a[4n+3]*b[4n+3]

Integers are summed without loss and wrap in the type of *acc*. Pairs of bf16 are added to f32 as x86's `vdpbf16ps` does, by two
multiply-adds that each round once, to nearest: the odd lane first, then the even one. A number too small to be normal, given or
made, counts as zero. (Intel, "Architecture Instruction Set Extensions Programming Reference", VDPBF16PS.)
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from weft.ir.expr.base import Expr
from weft.ir.expr.node import node
from weft.support.dtypes import DType, bf16, f32, i8, i16, i32, u8
from weft.support.errors import TypeMismatch

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

GROUPS: Final = {(u8, i8, i32): 4, (i8, i8, i32): 4, (i16, i16, i32): 2, (bf16, bf16, f32): 2}
"""How many products go into one sum, by the element types of the two factors and of the sum."""


@node
class Dot(Expr):
    """*acc*, to each lane of which the products of a group of neighbouring lanes of *a* and *b* are added."""

    __derived__ = ("dtype",)
    acc: Expr
    a: Expr
    b: Expr

    def derive(self) -> tuple[DType]:
        """Returns the type of *acc*; raises `TypeMismatch` for types that have no such product, or do not fit."""
        acc, a, b = self.acc.dtype, self.a.dtype, self.b.dtype
        group = GROUPS.get((a.element, b.element, acc.element))
        if group is None or a.lanes != b.lanes or a.lanes != group * acc.lanes:
            raise TypeMismatch(f"there is no dot product of {a} and {b} that is added to {acc}")
        return (acc,)


def dot(acc: Array, a: Array, b: Array) -> Array:
    """Computes `Dot` of NumPy arrays: its reference meaning."""
    if acc.dtype == np.float32:
        x, y = (_normal(np.asarray(v, np.float32)).reshape(-1, 2) for v in (a, b))
        return _multiply_add(x[:, 0], y[:, 0], _multiply_add(x[:, 1], y[:, 1], _normal(acc)))
    products = a.astype(np.int64) * b.astype(np.int64)
    total: Array = (acc.astype(np.int64) + products.reshape(len(acc), -1).sum(1)).astype(acc.dtype)
    return total


def _multiply_add(x: Array, y: Array, c: Array) -> Array:
    """Returns `x * y + c` of float32 arrays, rounded once; the product must be exact in double.

    The sum in double is rounded to odd, so that rounding it once more does no harm (Boldo and Melquiond, 2008).
    """
    with np.errstate(all="ignore"):
        p, wide = x.astype(np.float64) * y, c.astype(np.float64)
        s = p + wide
        back = s - wide
        lost = (p - back) + (wide - (s - back))
        even = s.view(np.int64) & 1 == 0
        inexact = np.isfinite(s) & (lost != 0) & even
        s = np.where(inexact, np.nextafter(s, np.where(lost > 0, np.inf, -np.inf)), s)
        return _normal(s.astype(np.float32))


def _normal(x: Array) -> Array:
    """Returns *x* with numbers below the normal range replaced by zeros of their sign."""
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)
