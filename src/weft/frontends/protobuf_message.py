"""Messages of protobuf, whose fields are found by their numbers in a published schema; nothing is copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from weft.frontends.wire_format import BYTES, FIXED32, FIXED64, VARINT, Field, Malformed, fields, varint
from weft.graph import Array

_SIGN: Final = 1 << 63
_WORD: Final = (1 << 64) - 1
_MOST: Final = 1 << 24
"""Numbers of a list of varints that are read at most."""


class Message:
    """The message in `data[start:end]`; raises `Malformed` where that is none."""

    def __init__(self, data: memoryview, start: int = 0, end: int | None = None) -> None:
        self.data = data
        self.fields: dict[int, list[Field]] = {}
        for f in fields(data, start, len(data) if end is None else end):
            self.fields.setdefault(f.number, []).append(f)

    def has(self, number: int) -> bool:
        """Tells whether there is a field *number*."""
        return number in self.fields

    def messages(self, number: int) -> list[Message]:
        """Returns the messages of a field."""
        return [Message(self.data, f.content, f.end) for f in self._of(number, BYTES)]

    def message(self, number: int) -> Message | None:
        """Returns the message of a field, the last one; None for none."""
        found = self._of(number, BYTES)
        return Message(self.data, found[-1].content, found[-1].end) if found else None

    def inner(self, number: int) -> Message:
        """Returns the message of a field, or an empty one."""
        return self.message(number) or Message(memoryview(b""))

    def texts(self, number: int) -> list[str]:
        """Returns the texts of a field."""
        return [str(self.data[f.content : f.end], "utf-8", "replace") for f in self._of(number, BYTES)]

    def text(self, number: int) -> str:
        """Returns the text of a field; "" for none."""
        return (self.texts(number) or [""])[-1]

    def bytes(self, number: int) -> memoryview:
        """Returns the bytes of a field; none for none."""
        found = self.raw(number)
        return memoryview(b"") if found is None else found

    def blobs(self, number: int) -> Iterator[memoryview]:
        """Yields the bytes of a field, one after another."""
        for f in self._of(number, BYTES):
            yield self.data[f.content : f.end]

    def fixed(self, number: int) -> bytearray:
        """Returns the bytes of the numbers of a fixed width of a field, one after another or packed."""
        found = self.fields.get(number, [])
        if any(f.kind == VARINT for f in found):
            raise Malformed
        return bytearray().join([self.data[f.content : f.end] for f in found])

    def raw(self, number: int) -> memoryview | None:
        """Returns the bytes of a field; None for none."""
        found = self._of(number, BYTES)
        return self.data[found[-1].content : found[-1].end] if found else None

    def integers(self, number: int) -> list[int]:
        """Returns the integers of a field, one after another or packed."""
        made: list[int] = []
        for f in self.fields.get(number, []):
            at = f.content
            if f.kind not in (VARINT, BYTES):
                raise Malformed
            while at < f.end:
                value, at = varint(self.data, at, f.end)
                made.append(((value & _WORD) ^ _SIGN) - _SIGN)
                if len(made) > _MOST:
                    raise Malformed
        return made

    def integer(self, number: int, default: int = 0) -> int:
        """Returns the integer of a field."""
        return (self.integers(number) or [default])[-1]

    def flag(self, number: int) -> bool:
        """Returns whether a field is true."""
        return self.integer(number) != 0

    def numbers(self, number: int, type_: str = "<f4") -> Array:
        """Returns the floats of a field, one after another or packed."""
        width = np.dtype(type_).itemsize
        parts: list[Array] = []
        for f in self.fields.get(number, []):
            if f.kind not in (BYTES, FIXED32, FIXED64) or (f.end - f.content) % width:
                raise Malformed
            parts.append(np.frombuffer(self.data[f.content : f.end], type_))
        return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0, type_)

    def number(self, number: int, default: float = 0.0) -> float:
        """Returns the float of a field."""
        found = self.numbers(number)
        return float(found[-1]) if found.size else default

    def entries(self, number: int) -> list[tuple[str, Message]]:
        """Returns the keys and messages of a field that is a map."""
        return [(m.text(1), m.inner(2)) for m in self.messages(number)]

    def _of(self, number: int, kind: int) -> list[Field]:
        found = self.fields.get(number, [])
        if any(f.kind != kind for f in found):
            raise Malformed
        return found
