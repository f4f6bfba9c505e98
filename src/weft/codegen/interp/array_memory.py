"""Memory as interpreted programs see it: flat NumPy arrays, pointers into them, and windows on them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from weft.support.dtypes import DType

Array: TypeAlias = npt.NDArray[Any]
Pointer: TypeAlias = tuple[Array, int]
"""A flat array and the number of the element in it that is pointed at."""

_GARBAGE = 0xA5
"""Every byte of fresh integer memory: no small number, and negative where there is a sign."""


def undefined(dtype: DType, count: int) -> Array:
    """Returns fresh flat memory with contents that are conspicuous when used: NaN, or large odd integers."""
    if dtype.is_float:
        return np.full(count, np.nan, dtype.numpy)
    if dtype.is_bool:
        return np.ones(count, np.bool_)
    return np.full(count * dtype.numpy.itemsize, _GARBAGE, np.uint8).view(dtype.numpy)


def allocate(dtype: DType, shape: Sequence[int], strides: Sequence[int] | None) -> tuple[Array, Array]:
    """Returns fresh memory for a buffer of *dtype*, flat and as an array of *shape*."""
    return window((undefined(dtype, span(dtype, shape, strides)), 0), dtype, shape, strides)


def span(dtype: DType, shape: Sequence[int], strides: Sequence[int] | None) -> int:
    """Returns how many scalars lie between the first and the last element of a buffer, both included."""
    if 0 in shape:
        return 0
    if strides is None:
        return prod(shape) * dtype.lanes
    return (1 + sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)])) * dtype.lanes


def window(pointer: Pointer, dtype: DType, shape: Sequence[int], strides: Sequence[int] | None) -> tuple[Array, Array]:
    """Returns the memory from *pointer* on as a buffer of *dtype*, flat and as an array of *shape*.

    Bytes are reinterpreted as *dtype*. Vector elements become a last dimension of lanes. Raises `IndexError`
    where the buffer would reach outside of its memory.
    """
    memory, offset = pointer
    size = span(dtype, shape, strides)
    if memory.dtype != dtype.numpy:
        offset *= memory.dtype.itemsize
        size *= dtype.numpy.itemsize
        memory = memory.view(np.uint8)
    if offset < 0 or offset + size > len(memory):
        held = f"{len(memory)} {'bytes' if memory.dtype != dtype.numpy else 'elements'}"
        raise IndexError(f"a buffer of {size} at {offset} reaches outside of memory of {held}")
    flat = memory[offset : offset + size].view(dtype.numpy)
    lanes = () if dtype.lanes == 1 else (dtype.lanes,)
    if strides is None:
        return flat, flat.reshape((*shape, *lanes))
    steps = [s * dtype.bytes for s in strides] + [dtype.numpy.itemsize for _ in lanes]
    return flat, as_strided(flat, (*shape, *lanes), steps)


def copy_elements(to: Pointer, source: Pointer, count: int) -> None:
    """Copies *count* scalars from *source* to *to*.

    Raises `IndexError` where they reach outside of their memory, `ValueError` where they overlap.
    """
    (written, at), (read, begin) = to, source
    for memory, first in (to, source):
        if count < 0 or first < 0 or first + count > len(memory):
            raise IndexError(f"a copy of {count} elements at {first} reaches outside of memory of {len(memory)}")
    target, given = written[at : at + count], read[begin : begin + count]
    if np.may_share_memory(target, given):
        raise ValueError("a copy overlaps the elements that it reads")
    target[:] = given
