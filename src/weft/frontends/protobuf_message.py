"""Messages of protobuf, whose fields are found by their numbers in a published schema; nothing is copied.

Of a field the message keeps the place alone, so that a crafted file of millions of fields asks for a few times its bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from weft.frontends.wire_format import BYTES, FIXED32, FIXED64, VARINT, Field, Malformed, field_at, fields, varint
from weft.graph import Array

_SIGN: Final = 1 << 63
_WORD: Final = (1 << 64) - 1
_MOST_NUMBERS: Final = 1 << 24
"""Numbers of a list of varints that are read at most."""

_MOST_KINDS: Final = 1 << 10
"""Different fields of one message that are read at most; Core ML's layers, of which each has a few, number some 150."""

_MOST_MESSAGES: Final = 1 << 18
"""Messages of one field that are read at most; graphs of published models have some 50,000 nodes."""


class Message:
    """The message in `data[start:end]`; raises `Malformed` where that is none."""

    __slots__ = ("_places", "data")

    def __init__(self, data: memoryview, start: int = 0, end: int | None = None) -> None:
        self.data = data
        self._places: dict[int, array[int]] = {}
        for f in fields(data, start, len(data) if end is None else end):
            places = self._places.get(f.number)
            if places is None:
                if len(self._places) == _MOST_KINDS:
                    raise Malformed
                places = self._places[f.number] = array("Q")
            places.append(f.start)

    @property
    def field_numbers(self) -> Sequence[int]:
        """The numbers of the fields that there are, in the order of their first ones."""
        return [*self._places]

    def has(self, number: int) -> bool:
        """Tells whether there is a field *number*."""
        return number in self._places

    def messages(self, number: int) -> Iterator[Message]:
        """Yields the messages of a field."""
        if len(self._places.get(number, ())) > _MOST_MESSAGES:
            raise Malformed
        for f in self._of(number, BYTES):
            yield Message(self.data, f.content, f.end)

    def message(self, number: int) -> Message | None:
        """Returns the message of a field, the last one; None for none."""
        found = self._last(number)
        return None if found is None else Message(self.data, found.content, found.end)

    def inner(self, number: int) -> Message:
        """Returns the message of a field, or an empty one."""
        return self.message(number) or Message(memoryview(b""))

    def texts(self, number: int) -> list[str]:
        """Returns the texts of a field."""
        return [str(self.data[f.content : f.end], "utf-8", "replace") for f in self._of(number, BYTES)]

    def text(self, number: int) -> str:
        """Returns the text of a field; "" for none."""
        found = self._last(number)
        return "" if found is None else str(self.data[found.content : found.end], "utf-8", "replace")

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
        made = bytearray()
        for f in self._all(number):
            if f.kind == VARINT:
                raise Malformed
            made += self.data[f.content : f.end]
        return made

    def raw(self, number: int) -> memoryview | None:
        """Returns the bytes of a field; None for none."""
        found = self._last(number)
        return None if found is None else self.data[found.content : found.end]

    def integers(self, number: int) -> array[int]:
        """Returns the integers of a field, one after another or packed."""
        made = array("q")
        for f in self._all(number):
            at = f.content
            if f.kind not in (VARINT, BYTES):
                raise Malformed
            while at < f.end:
                value, at = varint(self.data, at, f.end)
                made.append(((value & _WORD) ^ _SIGN) - _SIGN)
                if len(made) > _MOST_NUMBERS:
                    raise Malformed
        return made

    def integer(self, number: int, default: int = 0) -> int:
        """Returns the integer of a field."""
        found = self.integers(number)
        return found[-1] if found else default

    def flag(self, number: int) -> bool:
        """Returns whether a field is true."""
        return self.integer(number) != 0

    def numbers(self, number: int, type_: str = "<f4") -> Array:
        """Returns the floats of a field, one after another or packed."""
        width = np.dtype(type_).itemsize
        for f in self._all(number):
            if f.kind not in (BYTES, FIXED32, FIXED64) or (f.end - f.content) % width:
                raise Malformed
        if len(self._places.get(number, ())) == 1:
            return np.frombuffer(self.data[f.content : f.end], type_)
        return np.frombuffer(self.fixed(number), type_)

    def number(self, number: int, default: float = 0.0) -> float:
        """Returns the float of a field."""
        found = self.numbers(number)
        return float(found[-1]) if found.size else default

    def entries(self, number: int) -> Iterator[tuple[str, Message]]:
        """Yields the keys and messages of a field that is a map."""
        for m in self.messages(number):
            yield m.text(1), m.inner(2)

    def _all(self, number: int) -> Iterator[Field]:
        return (field_at(self.data, at, len(self.data)) for at in self._places.get(number, ()))

    def _of(self, number: int, kind: int) -> Iterator[Field]:
        for f in self._all(number):
            if f.kind != kind:
                raise Malformed
            yield f

    def _last(self, number: int) -> Field | None:
        """Returns a field of bytes, the last one; None for none."""
        places = self._places.get(number)
        found = None if places is None else field_at(self.data, places[-1], len(self.data))
        if found is not None and found.kind != BYTES:
            raise Malformed
        return found
