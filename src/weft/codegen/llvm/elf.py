"""Reads relocatable ELF64 objects for x86-64: sections, symbols, relocations (System V ABI, AMD64 supplement)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from weft.support.errors import ToolchainError

OWN: Final = "link objects that Weft has compiled for x86-64"

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELA: Final = struct.Struct("<QQq")

RELOCATABLE: Final = 1
X86_64: Final = 62
PROGBITS, SYMTAB, RELA, NOBITS = 1, 2, 4, 8
ALLOCATED, WRITABLE, EXECUTABLE = 0x2, 0x1, 0x4
UNDEFINED: Final = 0
ABSOLUTE: Final = 0xFFF1
LOCAL: Final = 0


@dataclass(frozen=True)
class Section:
    """A section: its name, contents and demands on where it is put."""

    name: str
    kind: int
    flags: int
    align: int
    data: bytes


@dataclass(frozen=True)
class Symbol:
    """A symbol: an offset in a section, or undefined where `section` is 0."""

    name: str
    section: int
    offset: int
    is_local: bool


@dataclass(frozen=True)
class Relocation:
    """A place in a section to be filled with an address."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True)
class Object:
    """A relocatable object."""

    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]


def read_object(data: bytes) -> Object:
    """Parses an object file; raises `ToolchainError` for anything but relocatable ELF64 for x86-64."""
    if len(data) < _HEADER.size or data[:6] != b"\x7fELF\x02\x01":
        raise ToolchainError("the object is not little-endian ELF64", hint=OWN)
    header = _HEADER.unpack_from(data)
    if header[1] != RELOCATABLE or header[2] != X86_64:
        raise ToolchainError(
            f"the object is of type {header[1]} for machine {header[2]}, not relocatable x86-64", hint=OWN
        )
    table, count, names = header[6], header[12], header[13]
    raw = [_SECTION.unpack_from(data, table + i * _SECTION.size) for i in range(count)]
    contents = [b"" if r[1] == NOBITS else data[r[4] : r[4] + r[5]] for r in raw]
    sections = [Section(_text(contents[names], r[0]), r[1], r[2], r[8], c) for r, c in zip(raw, contents, strict=True)]
    symbols: list[Symbol] = []
    relocations: list[Relocation] = []
    for r, c in zip(raw, contents, strict=True):
        if r[1] == SYMTAB:
            symbols += _symbols(c, contents[r[6]])
        elif r[1] == RELA:
            relocations += _relocations(c, r[7])
    return Object(tuple(sections), tuple(symbols), tuple(relocations))


def _text(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode()


def _symbols(data: bytes, names: bytes) -> list[Symbol]:
    made = []
    for name, info, _, section, value, _ in _SYMBOL.iter_unpack(data):
        made.append(Symbol(_text(names, name), section, value, info >> 4 == LOCAL))
    return made


def _relocations(data: bytes, section: int) -> list[Relocation]:
    return [
        Relocation(section, o, info & 0xFFFFFFFF, info >> 32, addend) for o, info, addend in _RELA.iter_unpack(data)
    ]


def undefined_symbols(data: bytes) -> list[str]:
    """Returns the names of the symbols that an object uses and does not define."""
    return sorted({s.name for s in read_object(data).symbols if s.section == UNDEFINED and s.name})
