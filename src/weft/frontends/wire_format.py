"""Protobuf's wire format, without a schema: the fields of a message are found in its bytes, and nothing is copied.

A message is a series of fields; each begins with a number that holds the field's number and how its length is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_WIDTHS: Final = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT: Final = 10


class Malformed(Exception):
    """The bytes are not a protobuf message."""


class Truncated(Malformed):
    """The bytes end inside a field; `missing` says how many more were announced."""

    def __init__(self, missing: int) -> None:
        super().__init__(missing)
        self.missing = missing


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message: the whole of it is `start:end`, its content `content:end`."""

    number: int
    kind: int
    start: int
    content: int
    end: int


def fields(data: memoryview, start: int, end: int) -> Iterator[Field]:
    """Yields the fields of the message in `data[start:end]`; raises `Malformed` where that is none."""
    while start < end:
        found = field_at(data, start, end)
        if found.end > end:
            raise Truncated(found.end - end)
        yield found
        start = found.end


def first_fields(data: memoryview, start: int, end: int) -> Iterator[Field]:
    """Yields the fields whose content begins in `data[start:end]`, the beginning of a message; the last may end there early."""
    try:
        while start < end:
            found = field_at(data, start, end)
            yield replace(found, end=min(found.end, end))
            start = found.end
    except Truncated:
        return


def field_at(data: memoryview, start: int, end: int) -> Field:
    """Returns the field that begins at *start*, which may end after *end*; raises `Malformed` where there is none."""
    tag, content = varint(data, start, end)
    kind = tag & 7
    if tag >> 3 == 0 or kind not in (VARINT, BYTES, *_WIDTHS):
        raise Malformed
    if kind == BYTES:
        size, content = varint(data, content, end)
        stop = content + size
    elif kind == VARINT:
        _, stop = varint(data, content, end)
    else:
        stop = content + _WIDTHS[kind]
    return Field(tag >> 3, kind, start, content, stop)


def varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """Returns the number that begins at *at*, and where it ends."""
    value = 0
    for k in range(_LONGEST_VARINT):
        if at + k >= end:
            raise Truncated(1)
        byte = data[at + k]
        value |= (byte & 0x7F) << (7 * k)
        if byte < 0x80:
            return value, at + k + 1
    raise Malformed
