"""ELF64's records and numbers (System V ABI, chapters 4 and 5), as both the reader and the writer need them."""

from __future__ import annotations

import struct
from typing import Final

HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION: Final = struct.Struct("<IIQQQQIIQQ")
SYMBOL: Final = struct.Struct("<IBBHQQ")
RELA: Final = struct.Struct("<QQq")

LITTLE_ENDIAN_64: Final = b"\x7fELF\x02\x01"
"""The first bytes of every little-endian file of the 64-bit class."""

RELOCATABLE: Final = 1
MACHINES: Final = {"x86_64": 62, "aarch64": 183, "riscv64": 243}
"""ELF's numbers of machines, by the first word of a triple."""

NULL, PROGBITS, SYMTAB, STRTAB, RELOCATIONS, NOBITS = 0, 1, 2, 3, 4, 8
WRITABLE, ALLOCATED, EXECUTABLE = 0x1, 0x2, 0x4
UNDEFINED: Final = 0
LOCAL: Final = 0
GLOBAL_OBJECT, GLOBAL_FUNCTION = 0x11, 0x12
