"""Constants in the text of a module: lists of numbers, or their bytes in hexadecimal digits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from weft.frontends.jax.text.attribute_values import Dense
from weft.frontends.jax.text.operations import TensorText, tensor_type
from weft.graph import Array
from weft.support.dtypes import DType, bool_

_RESOURCE_HEAD: Final = 8
"""Digits before the bytes of a resource: its alignment, 4 bytes."""


_WORD: Final = (1 << 64) - 1


class DamagedConstant(Exception):
    """The elements of a constant are not those of its type."""


def splat_or_array(dense: Dense, resources: Mapping[str, str]) -> tuple[TensorText, DType, Array]:
    """Returns the type of a constant, and its elements: one alone where all are the same.

    Raises `DamagedConstant` for elements that are not those of the type, or whose type Weft lacks.
    """
    type_ = tensor_type(dense.type)
    if type_ is None or type_.dtype is None or None in type_.shape:
        raise DamagedConstant(f"constants of the type {dense.type} are not supported")
    dtype, shape = type_.dtype, tuple([s for s in type_.shape if s is not None])
    count = math.prod(shape)
    flat = _elements(dense, dtype, count, resources)
    if flat.size not in (1, count):
        raise DamagedConstant(f"the constant has {flat.size} elements, and its type {dense.type} {count}")
    return type_, dtype, flat.reshape(shape if flat.size == count else ())


def _elements(dense: Dense, dtype: DType, count: int, resources: Mapping[str, str]) -> Array:
    """Returns the elements one after another, or one for all."""
    elements = dense.elements
    if dense.resource:
        found = resources.get(str(elements), "")
        return _from_bytes(found.removeprefix("0x")[_RESOURCE_HEAD:], dtype, count)
    if isinstance(elements, str) and elements.startswith("0x"):
        return _from_bytes(elements[2:], dtype, count)
    if elements == "":
        return np.zeros(0, dtype.numpy)
    return _from_numbers(elements, dtype)


def _from_bytes(digits: str, dtype: DType, count: int) -> Array:
    try:
        data = bytes.fromhex(digits)
    except ValueError as error:
        raise DamagedConstant("the bytes of the constant are damaged") from error
    if dtype is bool_:
        given = np.frombuffer(data, np.uint8)
        is_packed = len(data) == -(-count // 8) > 1  # as MLIR printed them until 2025: now each has a byte
        return np.asarray((np.unpackbits(given, bitorder="little", count=count) if is_packed else given) != 0)
    if len(data) % dtype.numpy.itemsize:
        raise DamagedConstant("the bytes of the constant are damaged")
    return np.frombuffer(data, dtype.numpy)


def _from_numbers(elements: Any, dtype: DType) -> Array:
    """Returns nested lists of numbers; an integer among floats is the bits of one."""
    flat = _flattened(elements)
    try:
        if dtype is bool_:
            return np.array([bool(v) for v in flat])
        if not dtype.is_int and not dtype.is_storage:
            return np.array([_float(v, dtype) for v in flat], dtype.numpy)
        if dtype.bits == 64 and all(
            isinstance(v, int) for v in flat
        ):  # NumPy makes floats of large ones among small ones
            return np.array([v & _WORD for v in flat], np.uint64).astype(dtype.numpy)
        return np.array(flat).astype(dtype.numpy)
    except (TypeError, ValueError, OverflowError) as error:
        raise DamagedConstant(f"the elements of the constant are damaged ({error})") from error


def _float(value: Any, dtype: DType) -> Any:
    if isinstance(value, int):
        return np.frombuffer(value.to_bytes(dtype.numpy.itemsize, "little"), dtype.numpy)[0]
    return float(value)


def _flattened(elements: Any) -> list[Any]:
    made = [elements]
    while any(isinstance(v, list) for v in made):
        made = [e for v in made for e in (v if isinstance(v, list) else [v])]
    return made
