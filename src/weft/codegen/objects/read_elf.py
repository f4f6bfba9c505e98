"""Reads relocatable ELF64 objects: sections, symbols, relocations with addends (System V ABI, chapter 4)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Final

from weft.codegen.objects.elf import (
    HEADER,
    LITTLE_ENDIAN_64,
    LOCAL,
    MACHINES,
    NOBITS,
    RELA,
    RELOCATABLE,
    RELOCATIONS,
    SECTION,
    SYMBOL,
    SYMTAB,
    UNDEFINED,
)
from weft.support.errors import ToolchainError

OWN: Final = "link objects that Weft has compiled"


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
    _: KW_ONLY
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
    """A relocatable object for a machine, by the first word of its triple."""

    machine: str
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]


def read_object(data: bytes) -> Object:
    """Parses an object file; raises `ToolchainError` for anything but relocatable ELF64 for a machine of `elf.MACHINES`."""
    if len(data) < HEADER.size or data[:6] != LITTLE_ENDIAN_64:
        raise ToolchainError("the object is not little-endian ELF64", hint=OWN)
    header = HEADER.unpack_from(data)
    machine = next((name for name, number in MACHINES.items() if number == header[2]), None)
    if header[1] != RELOCATABLE or machine is None:
        raise ToolchainError(
            f"the object is of type {header[1]} for machine {header[2]}, not relocatable for {', '.join(MACHINES)}",
            hint=OWN,
        )
    table, count, names = header[6], header[12], header[13]
    raw = [SECTION.unpack_from(data, table + i * SECTION.size) for i in range(count)]
    contents = [b"" if r[1] == NOBITS else data[r[4] : r[4] + r[5]] for r in raw]
    sections = [Section(_text(contents[names], r[0]), r[1], r[2], r[8], c) for r, c in zip(raw, contents, strict=True)]
    symbols: list[Symbol] = []
    relocations: list[Relocation] = []
    for r, c in zip(raw, contents, strict=True):
        if r[1] == SYMTAB:
            symbols += _symbols(c, contents[r[6]])
        elif r[1] == RELOCATIONS:
            relocations += _relocations(c, r[7])
    return Object(machine, tuple(sections), tuple(symbols), tuple(relocations))


def _text(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode()


def _symbols(data: bytes, names: bytes) -> list[Symbol]:
    made = []
    for name, info, _, section, value, _ in SYMBOL.iter_unpack(data):
        made.append(Symbol(_text(names, name), section, value, is_local=info >> 4 == LOCAL))
    return made


def _relocations(data: bytes, section: int) -> list[Relocation]:
    return [Relocation(section, o, info & 0xFFFFFFFF, info >> 32, addend) for o, info, addend in RELA.iter_unpack(data)]


def undefined_symbols(data: bytes) -> list[str]:
    """Returns the names of the symbols that an object uses and does not define."""
    return sorted({s.name for s in read_object(data).symbols if s.section == UNDEFINED and s.name})
