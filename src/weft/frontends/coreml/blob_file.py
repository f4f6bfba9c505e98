"""The file of weights beside a program: arrays at offsets, each behind a header of 64 bytes.

header ::= 0xDEADBEEF, type of elements: u32, bytes: u64, offset of the first byte: u64, ...
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Final

from weft.frontends.wire_format import Malformed

_HEADER: Final = struct.Struct("<IIQQ")
_SENTINEL: Final = 0xDEADBEEF


def mapped(path: Path) -> memoryview:
    """Returns the bytes of a file, which is not empty, as they are needed."""
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


class BlobFile:
    """The bytes of a file of weights, mapped when the first of them are asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data: memoryview | None = None

    def at(self, offset: int) -> memoryview:
        """Returns the bytes of the array whose header is at *offset*; raises `Malformed` where there is none."""
        if self._data is None:
            if not self.path.is_file() or not self.path.stat().st_size:
                raise Malformed
            self._data = mapped(self.path)
        data = self._data
        if not 0 <= offset <= len(data) - _HEADER.size:
            raise Malformed
        sentinel, _, size, start = _HEADER.unpack(data[offset : offset + _HEADER.size])
        if sentinel != _SENTINEL or start + size > len(data):
            raise Malformed
        return data[start : start + size]
