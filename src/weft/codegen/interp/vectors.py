"""Vector values: one-dimensional NumPy arrays, one element a lane.

A mask is an array of bools, or None for all lanes. What a masked operation returns in the other lanes is never looked at.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from weft.codegen.interp.memory import Array
from weft.support.dtypes import DType

Index: TypeAlias = "int | Array"


def ramp(base: int, step: int, dtype: DType) -> Array:
    """Returns `base, base + step, ...` in the lanes of *dtype*."""
    made: Array = np.asarray(base, dtype.numpy) + np.asarray(step, dtype.numpy) * np.arange(dtype.lanes).astype(
        dtype.numpy
    )
    return made


def gather(source: Array, indices: tuple[Index, ...], mask: Array | None) -> Array:
    """Loads one element a lane; raises `IndexError` if any active lane is outside of *source*."""
    if mask is not None:
        if not mask.any():
            return np.zeros(len(mask), source.dtype)
        indices = tuple([i if isinstance(i, int) else np.where(mask, i, i[mask.argmax()]) for i in indices])
    check_inside(source, indices)
    taken: Array = source[indices]
    return taken.reshape(-1).copy()


def scatter(target: Array, indices: tuple[Index, ...], value: Array, mask: Array | None) -> None:
    """Stores one element a lane, in the lanes of *mask*; later lanes win where two write one element."""
    lanes = next((len(i) for i in indices if not isinstance(i, int)), None)
    if lanes is None:  # a vector element
        check_inside(target, indices)
        element = target[indices]
        element[slice(None) if mask is None else mask] = value if mask is None else value[mask]
        return
    values = value.reshape(lanes, -1) if target.ndim > len(indices) else value
    if mask is not None:
        if not mask.any():
            return
        indices = tuple([i if isinstance(i, int) else i[mask] for i in indices])
        values = values[mask]
    check_inside(target, indices)
    target[indices] = values


def check_inside(array: Array, indices: tuple[Index, ...]) -> None:
    """Raises `IndexError` unless all indices are within the dimensions of *array*."""
    for size, i in zip(array.shape, indices, strict=False):
        if isinstance(i, int):
            inside = 0 <= i < size
        else:
            inside = bool(i.min() >= 0 and i.max() < size)
        if not inside:
            raise IndexError("index out of bounds")


def truncdiv(a: Array, b: Array) -> Array:
    """Divides towards zero."""
    q = np.floor_divide(a, b)
    inexact = (np.mod(a, b) != 0) & ((a < 0) != (b < 0))
    made: Array = (q + inexact).astype(a.dtype)
    return made


def shifted(a: Array, b: Array, left: bool) -> Array:
    """Shifts each lane by as many bits as the same lane of *b* says."""
    made: Array = np.left_shift(a, b) if left else np.right_shift(a, b)
    return made


def converted(a: Array, dtype: DType) -> Array:
    """Converts each lane."""
    made: Array = a != 0 if dtype.is_bool else a.astype(dtype.numpy)
    return made


def applied(fn: Any, dtype: DType, *args: Array) -> Array:
    """Applies the reference function of an intrinsic to each lane."""
    made: Array = np.asarray(fn(*args)).astype(dtype.numpy, copy=False)
    return made
