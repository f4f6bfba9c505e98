"""Scalar values: Python integers and bools, and NumPy scalars of the exact float type."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir import Const
from weft.support.dtypes import DType

_EXACT = 1 << 53
"""Integers up to here are doubles exactly."""


def wrap(value: int, dtype: DType) -> int:
    """Returns *value* modulo the width of an integer type."""
    low, _ = dtype.int_range
    return (value - low) % (1 << dtype.bits) + low


def truncdiv(a: int, b: int) -> int:
    """Divides towards zero."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def truncmod(a: int, b: int) -> int:
    """Returns the remainder of `truncdiv`."""
    return a - b * truncdiv(a, b)


def to_int(value: Any, dtype: DType) -> int:
    """Converts a float towards zero; a value that is out of range gives the same result as NumPy."""
    try:
        exact = int(value)
    except (ValueError, OverflowError):  # nan, inf
        return int(np.asarray(value, np.float64).astype(dtype.numpy))
    low, high = dtype.int_range
    return exact if low <= exact <= high else int(np.asarray(value, np.float64).astype(dtype.numpy))


def to_float(value: int, dtype: DType) -> Any:
    """Converts an integer to the nearest float, rounding once."""
    if -_EXACT <= value <= _EXACT:
        return dtype.numpy.type(value)
    wide = np.uint64(value) if value >= 1 << 63 else np.int64(value)
    return wide.astype(dtype.numpy)


def plain(value: Any, dtype: DType) -> Any:
    """Returns a NumPy value in the interpreter's form: a Python integer or bool, or a scalar of *dtype*."""
    if dtype.is_float or dtype.is_storage:
        return value if value.dtype == dtype.numpy else value.astype(dtype.numpy)
    return value.item()


def constant(e: Const) -> Any:
    """Returns a constant as a NumPy scalar; one of a storage type has no bit set, which not every such type takes for zero."""
    return np.zeros((), e.dtype.numpy)[()] if e.dtype.is_storage else e.dtype.numpy.type(e.value)


def reinterpret(value: Any, source: DType, target: DType) -> Any:
    """Reads the bits of a scalar or a vector as another type."""
    made = np.atleast_1d(np.asarray(value, source.numpy)).view(target.numpy)
    return made if target.lanes > 1 else plain(made[0], target)
