"""Global heaps of HDF5, where texts of any length lie: the library never ends on a damaged one, so they are looked at before.

collection ::= "GCOL" version 1, three zeros, size; objects
object     ::= number: u16, references: u16, four zeros, size: u64; its bytes, up to a multiple of eight

The object of number 0 is the free space, whose size is that of all of it; one of no bytes is read again and again.
"""

from __future__ import annotations

import re
import struct
from mmap import mmap
from typing import Final

COLLECTION: Final = re.compile(rb"GCOL\x01\0\0\0")
OBJECT: Final = struct.Struct("<HHIQ")
"""The head of an object, which is as long as the head of a collection."""


def heaps_end(data: bytes | mmap) -> bool:
    """Tells whether the walk through the objects of each collection in a file comes to its end."""
    return all(_ends(data, found.start()) for found in COLLECTION.finditer(data))


def _ends(whole: bytes | mmap, start: int) -> bool:
    if start + OBJECT.size > len(whole):
        return True
    end = min(len(whole), start + int.from_bytes(whole[start + 8 : start + 16], "little"))
    at = start + OBJECT.size
    while at + OBJECT.size <= end:
        number, _, _, size = OBJECT.unpack_from(whole, at)
        if number == 0 and size < OBJECT.size:
            return False
        at += size if number == 0 else OBJECT.size + -(-size // 8) * 8
    return True
