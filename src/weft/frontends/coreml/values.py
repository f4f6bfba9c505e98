"""Values in a program: tensors of numbers, texts, and lists of these; in the program itself, or in the file of weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from weft.frontends.coreml.blob_file import BlobFile
from weft.frontends.protobuf_message import Message
from weft.frontends.wire_format import Malformed
from weft.graph import Array
from weft.graph.builder import CompileTimeConstant
from weft.support.dtypes import SCALARS, DType, bool_

ELEMENTS: Final[dict[int, DType]] = {
    1: bool_,
    10: SCALARS["f16"],
    11: SCALARS["f32"],
    12: SCALARS["f64"],
    13: SCALARS["bf16"],
    **{21 + k: SCALARS[f"i{8 << k}"] for k in range(4)},
    **{31 + k: SCALARS[f"u{8 << k}"] for k in range(4)},
}
"""Weft's element types by the numbers that Core ML has for them."""

_STRING: Final = 2
_PACKED: Final = {25: (4, True), 35: (4, False), 36: (2, False), 37: (1, False), 38: (6, False), 39: (3, False)}
"""The bits of elements that are packed, and whether they have a sign."""

_MOST_DIMENSIONS: Final = 32
_STATE: Final = 5

Literal: TypeAlias = "CompileTimeConstant | str | Sequence[Literal]"


@dataclass(frozen=True)
class ValueType:
    """The type of a tensor: the number of its elements' type, and its sizes, None for those that a run tells."""

    element: int
    shape: tuple[int | None, ...]

    @property
    def dtype(self) -> DType | None:
        """Weft's type of the elements; None where it has none. Those of less than a byte are read as bytes."""
        if self.element in _PACKED:
            return SCALARS["i8" if _PACKED[self.element][1] else "u8"]
        return ELEMENTS.get(self.element)


def type_of(m: Message) -> ValueType | None:
    """Returns the type that a message `ValueType` says; None for one of no tensor."""
    tensor = m.message(1)
    if tensor is None:
        return None
    sizes: list[int | None] = []
    for d in tensor.messages(3):
        fixed = d.message(1)
        sizes.append(None if fixed is None else fixed.integer(1))
    if len(sizes) > _MOST_DIMENSIONS or any(s is not None and s < 0 for s in sizes):
        raise Malformed
    return ValueType(tensor.integer(1), tuple(sizes))


def state_of(m: Message) -> ValueType | None:
    """Returns the type of the tensor that a state of a type `ValueType` holds; None for another type."""
    state = m.message(_STATE)
    return None if state is None else type_of(state.inner(1))


def read_literal(m: Message, blobs: BlobFile, name: str = "") -> Literal:
    """Returns the literal in a message `Value`; raises `Malformed` for one that is damaged, or of a type that Weft lacks."""
    type_ = type_of(m.inner(2))
    blob = m.message(5)
    if blob is not None:
        if type_ is None:
            raise Malformed
        return CompileTimeConstant(_from_bytes(blobs.at(blob.integer(2)), type_), name)
    immediate = m.inner(3)
    for number in (2, 3):
        listed = immediate.message(number)
        if listed is not None:
            return tuple([read_literal(v, blobs) for v in listed.messages(1)])
    if type_ is None:
        raise Malformed
    if type_.element == _STRING:
        texts = immediate.inner(1).inner(4).texts(1)
        return texts[0] if not type_.shape and texts else tuple(texts) if type_.shape else ""
    return CompileTimeConstant(_immediate(immediate.inner(1), type_), name)


def _immediate(m: Message, type_: ValueType) -> Array:
    """Returns the elements of a message `TensorValue`."""
    raw = m.inner(7).raw(1)
    if raw is not None:
        return _from_bytes(raw, type_)
    dtype = type_.dtype
    if dtype is None:
        raise Malformed
    floats = {number: m.inner(number).numbers(1, kind) for number, kind in ((1, "<f4"), (6, "<f8")) if m.has(number)}
    integers = [v for number in (2, 3, 5) if m.has(number) for v in m.inner(number).integers(1)]
    found = next(iter(floats.values())) if floats else np.array(integers, np.int64)
    return _shaped(found.astype(dtype.numpy), type_)


def _from_bytes(raw: memoryview, type_: ValueType) -> Array:
    dtype = type_.dtype
    if dtype is None:
        raise Malformed
    if type_.element in _PACKED:
        return _shaped(_unpacked(raw, type_), type_)
    if len(raw) % dtype.numpy.itemsize:
        raise Malformed
    return _shaped(np.frombuffer(raw, dtype.numpy), type_)


def _unpacked(raw: memoryview, type_: ValueType) -> Array:
    """Returns elements of several a byte, the first in the lowest bits."""
    width, signed = _PACKED[type_.element]
    count = math.prod(s or 0 for s in type_.shape)
    if count * width > 8 * len(raw):
        raise Malformed
    bits = np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little", count=count * width).reshape(count, width)
    made: Array = (bits.astype(np.uint8) << np.arange(width, dtype=np.uint8)).sum(axis=1).astype(np.uint8)
    return ((made ^ (1 << (width - 1))).astype(np.int8) - (1 << (width - 1))).astype(np.int8) if signed else made


def _shaped(array: Array, type_: ValueType) -> Array:
    shape = tuple([s or 0 for s in type_.shape])
    if math.prod(shape) != array.size:
        raise Malformed
    return array.reshape(shape)
