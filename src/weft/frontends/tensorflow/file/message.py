"""A message of protobuf, its fields by number; what it holds is a view into the file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from weft.frontends.wire_format import VARINT, Malformed, fields, varint

_SIGN: Final = 1 << 63


class Message:
    """The fields of a message; those that are repeated keep their order. Raises `Malformed` where the bytes are none."""

    __slots__ = ("_fields",)

    def __init__(self, data: memoryview) -> None:
        self._fields: dict[int, list[int | memoryview]] = {}
        for f in fields(data, 0, len(data)):
            value = varint(data, f.content, f.end)[0] if f.kind == VARINT else data[f.content : f.end]
            self._fields.setdefault(f.number, []).append(value)

    def has(self, number: int) -> bool:
        """Tells whether a field is there."""
        return number in self._fields

    def integer(self, number: int, default: int = 0) -> int:
        """Returns an integer."""
        found = self._fields.get(number, [default])[-1]
        if not isinstance(found, int):
            raise Malformed
        return signed(found)

    def number(self, number: int) -> float:
        """Returns a float of 32 bits."""
        found = self.bytes(number)
        if len(found) != 4:
            raise Malformed
        return float(struct.unpack("<f", found)[0])

    def bytes(self, number: int) -> memoryview:
        """Returns the bytes of a field; none where it is absent."""
        found = self._fields.get(number, [memoryview(b"")])[-1]
        if isinstance(found, int):
            raise Malformed
        return found

    def text(self, number: int) -> str:
        """Returns a text; "" where it is absent."""
        return str(self.bytes(number), "utf-8", "replace")

    def message(self, number: int) -> Message:
        """Returns a message; an empty one where it is absent."""
        return Message(self.bytes(number))

    def blobs(self, number: int) -> Iterator[memoryview]:
        """Yields the bytes of a repeated field."""
        for found in self._fields.get(number, []):
            if isinstance(found, int):
                raise Malformed
            yield found

    def messages(self, number: int) -> Iterator[Message]:
        """Yields the messages of a repeated field."""
        return map(Message, self.blobs(number))

    def texts(self, number: int) -> list[str]:
        """Returns the texts of a repeated field."""
        return [str(b, "utf-8", "replace") for b in self.blobs(number)]

    def integers(self, number: int) -> list[int]:
        """Returns the integers of a repeated field, packed or not."""
        made: list[int] = []
        for found in self._fields.get(number, []):
            if isinstance(found, int):
                made.append(signed(found))
                continue
            at = 0
            while at < len(found):
                value, at = varint(found, at, len(found))
                made.append(signed(value))
        return made

    def fixed(self, number: int) -> bytearray:
        """Returns the bytes of the numbers of a repeated field of a fixed width, packed or not."""
        return bytearray().join(self.blobs(number))

    def entries(self, number: int) -> Iterator[tuple[str, Message]]:
        """Yields the keys and values of a map from texts to messages."""
        for entry in self.messages(number):
            yield entry.text(1), entry.message(2)


def signed(value: int) -> int:
    """Returns an integer of 64 bits by its two's complement."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= _SIGN else value
