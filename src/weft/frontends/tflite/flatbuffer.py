"""Tables of FlatBuffers, found in their bytes without generated code; every offset is checked before it is followed.

A table begins with the distance back to its vtable, which has the place of each field in the table, 0 for absent ones
(FlatBuffers' "internals", https://flatbuffers.dev/internals). Several offsets may lead to one vector: so that a damaged file does
not make much of few bytes, the vectors that are read may have a few times the bytes of the file, and no more.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_FORMATS: Final = {
    "bool": "<?",
    "i8": "<b",
    "u8": "<B",
    "u16": "<H",
    "i32": "<i",
    "u32": "<I",
    "f32": "<f",
    "i64": "<q",
    "u64": "<Q",
}
_U16: Final = struct.Struct("<H")
_U32: Final = struct.Struct("<I")
_I32: Final = struct.Struct("<i")


class Damaged(Exception):
    """An offset leads out of the file, or a length does."""


class Allowance:
    """The bytes of vectors that may still be read of a file."""

    def __init__(self, size: int) -> None:
        self.left = 4 * size + (1 << 16)

    def take(self, count: int) -> None:
        """Takes *count* bytes; raises `Damaged` where there are not as many."""
        self.left -= count
        if self.left < 0:
            raise Damaged


class Table:
    """A table at a place of a file."""

    __slots__ = ("_allowance", "_at", "_data", "_vtable", "_vtable_size")

    def __init__(self, data: memoryview, at: int, allowance: Allowance) -> None:
        self._data, self._at, self._allowance = data, at, allowance
        self._vtable = at - _read(_I32, data, at)
        self._vtable_size = _read(_U16, data, self._vtable)

    def _field(self, slot: int) -> int | None:
        """Returns where field *slot* is; None for an absent one."""
        entry = 4 + 2 * slot
        if entry + 2 > self._vtable_size:
            return None
        offset = _read(_U16, self._data, self._vtable + entry)
        return self._at + offset if offset else None

    def number(self, slot: int, kind: str, default: int | float = 0) -> Any:
        """Returns a number of the *kind* i8, u32, f32 ..."""
        at = self._field(slot)
        return default if at is None else _read(struct.Struct(_FORMATS[kind]), self._data, at)

    def table(self, slot: int) -> Table | None:
        """Returns a table; None for an absent one."""
        at = self._field(slot)
        return None if at is None else Table(self._data, _followed(self._data, at), self._allowance)

    def text(self, slot: int) -> str:
        """Returns a text, "" for an absent one."""
        return bytes(self.numbers(slot, "u8")).decode("utf-8", "replace")

    def numbers(self, slot: int, kind: str) -> Numbers:
        """Returns a vector of numbers as a view into the file; an empty one where it is absent."""
        dtype = np.dtype(_FORMATS[kind])
        start, count = self._vector(slot, dtype.itemsize)
        return np.frombuffer(self._data, dtype, count, start) if count else np.zeros(0, dtype)

    def tables(self, slot: int) -> Iterator[Table]:
        """Yields the tables of a vector."""
        start, count = self._vector(slot, 4)
        for k in range(count):
            yield Table(self._data, _followed(self._data, start + 4 * k), self._allowance)

    def _vector(self, slot: int, width: int) -> tuple[int, int]:
        """Returns where the elements of a vector begin, and their number."""
        at = self._field(slot)
        if at is None:
            return 0, 0
        start = _followed(self._data, at)
        count = _read(_U32, self._data, start)
        if start + 4 + count * width > len(self._data):
            raise Damaged
        self._allowance.take(count * width + 4)
        return start + 4, count


def root(data: memoryview) -> Table:
    """Returns the table that a file begins with; raises `Damaged` where there is none."""
    return Table(data, _followed(data, 0), Allowance(len(data)))


def _read(how: struct.Struct, data: memoryview, at: int) -> Any:
    if at < 0 or at + how.size > len(data):
        raise Damaged
    return how.unpack_from(data, at)[0]


def _followed(data: memoryview, at: int) -> int:
    """Returns the place to which the offset at *at* leads, which is always further on."""
    distance = _read(_U32, data, at)
    if not 0 < distance < len(data) - at:
        raise Damaged
    return at + int(distance)
