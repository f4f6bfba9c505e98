"""The type in which sums are kept: 32 bits for 16-bit floats, which would lose the small terms of a long sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir.expr import Expr, cast
from weft.support.dtypes import DType, f32
from weft.te import ReduceAxis, Reduction, Tensor, compute, sum_


def accumulator(dtype: DType) -> DType:
    """Returns the type that sums of *dtype* are kept in."""
    return f32 if dtype.is_float and dtype.bits < f32.bits else dtype


def wide(e: Expr) -> Expr:
    """Returns *e* in the type that its sums are kept in."""
    return cast(e, accumulator(e.dtype))


def sum_of_products(a: Expr, b: Expr, axes: Sequence[ReduceAxis]) -> Reduction:
    """Returns the sum of `a * b`, for `accumulated`."""
    return sum_(wide(a) * wide(b), axes)


def accumulated(shape: Sequence[Expr], fn: Callable[..., object], name: str, dtype: DType) -> Tensor:
    """Computes the sums that *fn* describes in the type they are kept in, then rounds them to *dtype*."""
    kept = accumulator(dtype)
    y = compute(shape, fn, name, dtype=kept)
    return y if kept is dtype else compute(shape, lambda *i: cast(y[i], dtype), f"{name}_rounded", dtype=dtype)
