"""Relocations of x86-64 that do not depend on where the image is mapped (System V ABI, AMD64 supplement, section 4.4)."""

from __future__ import annotations

import struct
from typing import Final

PC32, PLT32, PC64 = 2, 4, 24
_FORMATS: Final = {PC32: "<i", PLT32: "<i", PC64: "<q"}


def relocate(code: bytearray, kind: int, at: int, value: int) -> bool:
    """Writes at *at* the distance from there to *value*: symbol plus addend; returns False for an absolute *kind*."""
    if kind not in _FORMATS:
        return False
    struct.pack_into(_FORMATS[kind], code, at, value - at)
    return True
