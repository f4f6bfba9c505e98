"""Writes ELF64 objects of code and read-only data (System V ABI), which are position independent and have no relocations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from weft.codegen.objects.elf import (
    ALLOCATED,
    EXECUTABLE,
    GLOBAL_FUNCTION,
    GLOBAL_OBJECT,
    HEADER,
    LITTLE_ENDIAN_64,
    MACHINES,
    NULL,
    PROGBITS,
    RELOCATABLE,
    SECTION,
    STRTAB,
    SYMBOL,
    SYMTAB,
)
from weft.support.errors import ArtifactError


@dataclass(frozen=True)
class Symbol:
    """A name for an offset in a part."""

    name: str
    part: int
    offset: int = 0
    size: int = 0
    _: KW_ONLY
    is_function: bool = False


@dataclass(frozen=True)
class Part:
    """Code or read-only data, and the multiple of bytes that it begins at."""

    name: str
    data: bytes | memoryview
    is_code: bool = False
    align: int = 64


@dataclass
class _Section:
    name: str
    kind: int
    flags: int
    data: bytes | memoryview
    align: int
    link: int = 0
    info: int = 0
    entry: int = 0


def machine_number(machine: str) -> int:
    """Returns ELF's number of a machine; raises `ArtifactError` for one without."""
    if machine not in MACHINES:
        raise ArtifactError(f"there are no ELF files for {machine or 'no machine'}", hint="save a .weft file")
    return MACHINES[machine]


def write_object(machine: str, parts: Sequence[Part], symbols: Sequence[Symbol]) -> list[bytes | memoryview]:
    """Returns a relocatable object (.o) of *parts*, each a section, as pieces to be written one after another."""
    sections = [_Section("", NULL, 0, b"", 1), *_part_sections(parts)]
    table, names = _symbol_table(symbols)
    sections.append(_Section(".note.GNU-stack", PROGBITS, 0, b"", 1))
    sections.append(_Section(".symtab", SYMTAB, 0, table, 8, len(sections) + 1, 1, SYMBOL.size))
    sections.append(_Section(".strtab", STRTAB, 0, names, 1))
    return _assemble(machine_number(machine), sections)


def _part_sections(parts: Sequence[Part]) -> list[_Section]:
    return [_Section(p.name, PROGBITS, ALLOCATED | (EXECUTABLE if p.is_code else 0), p.data, p.align) for p in parts]


def _symbol_table(symbols: Sequence[Symbol]) -> tuple[bytes, bytes]:
    """Returns the symbols, after the empty one, and their names; parts are the sections from 1 on."""
    table, names = bytearray(SYMBOL.size), bytearray(1)
    for s in symbols:
        kind = GLOBAL_FUNCTION if s.is_function else GLOBAL_OBJECT
        table += SYMBOL.pack(len(names), kind, 0, s.part + 1, s.offset, s.size)
        names += s.name.encode() + b"\0"
    return bytes(table), bytes(names)


def _assemble(machine: int, sections: list[_Section]) -> list[bytes | memoryview]:
    """Returns a whole file: header, sections one after another, and their table."""
    names = bytearray()
    offsets = []
    sections.append(_Section(".shstrtab", STRTAB, 0, b"", 1))
    for s in sections:
        offsets.append(len(names))
        names += s.name.encode() + b"\0"
    sections[-1].data = bytes(names)
    at = HEADER.size
    pieces: list[bytes | memoryview] = []
    rows = [bytes(SECTION.size)]
    for name, s in list(zip(offsets, sections, strict=True))[1:]:
        begin = -(-at // s.align) * s.align
        pieces += [bytes(begin - at), s.data]
        rows.append(SECTION.pack(name, s.kind, s.flags, 0, begin, len(s.data), s.link, s.info, s.align, s.entry))
        at = begin + len(s.data)
    table = -(-at // 8) * 8
    header = HEADER.pack(
        (LITTLE_ENDIAN_64 + b"\x01").ljust(16, b"\0"), RELOCATABLE, machine, 1, 0, 0, table, 0,
        HEADER.size, 0, 0, SECTION.size, len(rows), len(rows) - 1,
    )  # fmt: skip
    return [header, *pieces, bytes(table - at), *rows]
