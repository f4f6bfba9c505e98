"""TensorFlow's tensors: element types, shapes, and constants as views into the file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from weft.frontends.protobuf_message import Message
from weft.frontends.string_ids import ENCODING
from weft.frontends.wire_format import Malformed
from weft.graph import Array
from weft.ops import MOST_DIMENSIONS
from weft.support.dtypes import SCALARS, DType

TYPES: Final[dict[int, DType]] = {
    1: SCALARS["f32"],
    2: SCALARS["f64"],
    3: SCALARS["i32"],
    4: SCALARS["u8"],
    5: SCALARS["i16"],
    6: SCALARS["i8"],
    9: SCALARS["i64"],
    10: SCALARS["bool"],
    14: SCALARS["bf16"],
    17: SCALARS["u16"],
    19: SCALARS["f16"],
    22: SCALARS["u32"],
    23: SCALARS["u64"],
}
TYPE_NAMES: Final = {7: "string", 8: "complex64", 18: "complex128", 20: "resource", 21: "variant"}
_PARTS: Final[dict[DType | str, tuple[DType, int]]] = {
    "complex64": (SCALARS["f32"], 9),
    "complex128": (SCALARS["f64"], 12),
}
"""The types of the parts of complex numbers, and the fields that list them in pairs."""

LARGEST_FILLED: Final = 1 << 26
"""Elements of a constant of which the file has fewer: the last one is repeated."""

_LISTS: Final = {
    "f32": 5,
    "f64": 6,
    "i32": 7,
    "u8": 7,
    "i16": 7,
    "i8": 7,
    "u16": 7,
    "i64": 10,
    "bool": 11,
    "u32": 16,
    "u64": 17,
}
"""The field that has a constant's elements as a list, by element type."""


def type_named(number: int) -> DType | str:
    """Returns an element type, or the name of one that Weft lacks."""
    number = number - 100 if number > 100 else number  # a reference to a variable of the type
    return TYPES.get(number, TYPE_NAMES.get(number, f"type {number}"))


def shape_of(message: Message) -> list[int] | None:
    """Returns a shape, -1 for sizes that are open; None for an unknown number of dimensions."""
    if message.integer(3):
        return None
    shape = [d.integer(1) for d in message.messages(2)]
    if len(shape) > MOST_DIMENSIONS or any(n < -1 for n in shape):
        raise Malformed
    return shape


def tensor_array(message: Message) -> Array | str:
    """Returns a constant's elements, strings as objects, or the name of a type that Weft lacks."""
    dtype = type_named(message.integer(1))
    shape = shape_of(message.inner(2))
    if shape is None or any(n < 0 for n in shape):
        raise Malformed
    if dtype == "string":
        texts = np.empty(sum(1 for _ in message.blobs(8)), object)
        texts[:] = [str(text, *ENCODING) for text in message.blobs(8)]
        return _filled(texts, shape) if len(texts) else np.full(_checked(shape), "", object)
    content = message.bytes(4)
    if dtype in _PARTS:
        part, field = _PARTS[dtype]
        pairs = content if len(content) else message.fixed(field)
        if len(pairs) % (2 * part.numpy.itemsize):
            raise Malformed
        return _filled(np.frombuffer(pairs, part.numpy).view(str(dtype)), shape)
    if isinstance(dtype, str):
        return dtype
    if len(content):
        return array_of(content, dtype, shape)
    return _filled(_listed(message, dtype), shape)


def _checked(shape: list[int]) -> list[int]:
    if math.prod(shape) > LARGEST_FILLED:
        raise Malformed
    return shape


def array_of(data: memoryview, dtype: DType, shape: list[int]) -> Array:
    """Returns *data* as an array; raises `Malformed` where it has another size."""
    kind: Any = np.dtype(ml_dtypes.bfloat16) if dtype is SCALARS["bf16"] else dtype.numpy
    if len(data) != math.prod(shape) * kind.itemsize:
        raise Malformed
    return np.frombuffer(data, kind).reshape(shape)


def _listed(message: Message, dtype: DType) -> Array:
    """Returns the elements that a constant lists."""
    if dtype.name in ("f16", "bf16"):
        bits = np.array([v & 0xFFFF for v in message.integers(13)], np.uint16)
        return bits.view(np.float16 if dtype.name == "f16" else ml_dtypes.bfloat16)
    field = _LISTS[dtype.name]
    if dtype.is_float:
        data = message.fixed(field)
        if len(data) % dtype.numpy.itemsize:
            raise Malformed
        return np.frombuffer(data, dtype.numpy)
    numbers: Sequence[int] = message.integers(field)
    if dtype.name == "u64":
        numbers = [v & ((1 << 64) - 1) for v in numbers]
    try:
        return np.array(numbers, dtype.numpy)
    except OverflowError as error:
        raise Malformed from error


def _filled(listed: Array, shape: list[int]) -> Array:
    """Returns the elements in their shape; the last one, or zero, stands for those that are not listed."""
    count = math.prod(shape)
    if listed.size > count:
        raise Malformed
    if listed.size == count:
        return listed.reshape(shape)
    if count > LARGEST_FILLED:
        raise Malformed
    made = np.full(count, listed[-1] if listed.size else 0, listed.dtype)
    made[: listed.size] = listed
    return made.reshape(shape)
