"""Vector values: one-dimensional NumPy arrays, one element a lane.

A mask is an array of bools, or None for all lanes. The result of a masked operation in the other lanes is dead.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from weft.codegen.interp.array_memory import Array
from weft.support.dtypes import DType

Index: TypeAlias = "int | Array"


def ramp(base: int, step: int, dtype: DType) -> Array:
    """Returns `base, base + step, ...` in the lanes of *dtype*."""
    made: Array = np.asarray(base, dtype.numpy) + np.asarray(step, dtype.numpy) * np.arange(dtype.lanes).astype(
        dtype.numpy
    )
    return made


def shuffle(a: Array, b: Array, picks: list[int]) -> Array:
    """Returns the lanes *picks* of *a* followed by *b*."""
    made: Array = np.concatenate((a, b))[picks]
    return made


def gather(source: Array, indices: tuple[Index, ...], mask: Array | None) -> Array:
    """Loads one element of *source*, itself a scalar or a vector, for each lane of the indices.

    Raises `IndexError` if any active lane is outside.
    """
    if mask is not None:
        if not mask.any():
            return np.zeros(len(mask), source.dtype)
        active = _by_element(mask, indices).any(axis=1)
        indices = tuple([i if isinstance(i, int) else np.where(active, i, i[active.argmax()]) for i in indices])
    check_inside(source, indices)
    taken: Array = source[indices]
    return taken.reshape(-1).copy()


def scatter(target: Array, indices: tuple[Index, ...], value: Array, mask: Array | None) -> None:
    """Stores *value*, one element for each lane of the indices, where *mask* holds; of two to one place, the later wins."""
    values = _by_element(value, indices)
    if mask is None:
        check_inside(target, indices)
        target[indices] = values if target.ndim > len(indices) and values.shape[0] > 1 else value
        return
    holds = _by_element(mask, indices)
    for lane in np.flatnonzero(holds.any(axis=1)):
        where = tuple([i if isinstance(i, int) else int(i[lane]) for i in indices])
        check_inside(target, where)
        if target.ndim == len(where):
            target[where] = values[lane, 0]
        else:
            target[where][holds[lane]] = values[lane, holds[lane]]


def _by_element(lanes: Array, indices: tuple[Index, ...]) -> Array:
    """Arranges lanes in rows, one for each element that the indices name."""
    count = next((len(i) for i in indices if not isinstance(i, int)), 1)
    return lanes.reshape(count, -1)


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


def converted(a: Array, dtype: DType) -> Array:
    """Converts each lane."""
    made: Array = a != 0 if dtype.is_bool else a.astype(dtype.numpy)
    return made


def applied(fn: Any, dtype: DType, *args: Array) -> Array:
    """Applies the reference function of an intrinsic to each lane."""
    made: Array = np.asarray(fn(*args)).astype(dtype.numpy, copy=False)
    return made
