"""Writes ELF64 files of code and read-only data (System V ABI): relocatable objects, and shared libraries without any linker.

The code is position independent and whole, so that neither needs a relocation.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.support.errors import ArtifactError

HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT: Final = struct.Struct("<IIQQQQQQ")
SECTION: Final = struct.Struct("<IIQQQQIIQQ")
SYMBOL: Final = struct.Struct("<IBBHQQ")
DYNAMIC: Final = struct.Struct("<qQ")

MACHINES: Final = {"x86_64": 62, "aarch64": 183, "riscv64": 243}
PAGE: Final = 1 << 16
"""The largest page of a machine that the files may be loaded on."""
REL, DYN = 1, 3
NULL, PROGBITS, SYMTAB, STRTAB, HASH, DYNAMIC_SECTION, DYNSYM = 0, 1, 2, 3, 5, 6, 11
WRITE, ALLOC, EXECUTE = 1, 2, 4
LOAD, DYNAMIC_SEGMENT, GNU_STACK = 1, 2, 0x6474E551
X, W, R = 1, 2, 4
GLOBAL_OBJECT, GLOBAL_FUNCTION = 0x11, 0x12


@dataclass(frozen=True)
class Symbol:
    """A name for an offset in a part."""

    name: str
    part: int
    offset: int = 0
    size: int = 0
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
    at: int = 0


def machine_number(machine: str) -> int:
    """Returns ELF's number of a machine; raises `ArtifactError` for one without."""
    if machine not in MACHINES:
        raise ArtifactError(f"there are no ELF files for {machine or 'no machine'}", hint="save a .weft file")
    return MACHINES[machine]


def write_object(machine: str, parts: Sequence[Part], symbols: Sequence[Symbol]) -> list[bytes | memoryview]:
    """Returns a relocatable object (.o) of *parts*, each a section, as pieces to be written one after another."""
    sections = [_Section("", NULL, 0, b"", 1), *_part_sections(parts)]
    table, names = _symbol_table(symbols, [0] * len(parts))
    sections.append(_Section(".note.GNU-stack", PROGBITS, 0, b"", 1))
    sections.append(_Section(".symtab", SYMTAB, 0, table, 8, len(sections) + 1, 1, SYMBOL.size))
    sections.append(_Section(".strtab", STRTAB, 0, names, 1))
    return _assemble(machine_number(machine), REL, sections, b"")


def _part_sections(parts: Sequence[Part]) -> list[_Section]:
    return [_Section(p.name, PROGBITS, ALLOC | (EXECUTE if p.is_code else 0), p.data, p.align) for p in parts]


def _symbol_table(symbols: Sequence[Symbol], addresses: Sequence[int]) -> tuple[bytes, bytes]:
    """Returns the symbols, after the empty one, and their names; parts are the sections from 1 on."""
    table, names = bytearray(SYMBOL.size), bytearray(1)
    for s in symbols:
        kind = GLOBAL_FUNCTION if s.is_function else GLOBAL_OBJECT
        table += SYMBOL.pack(len(names), kind, 0, s.part + 1, addresses[s.part] + s.offset, s.size)
        names += s.name.encode() + b"\0"
    return bytes(table), bytes(names)


def write_library(
    machine: str, name: str, parts: Sequence[Part], symbols: Sequence[Symbol]
) -> list[bytes | memoryview]:
    """Returns a shared library (.so) of *parts* that exports *symbols*, as pieces to be written one after another.

    Code is mapped executable, data readable, and only the table that the system's loader itself fills in is writable.
    """
    number = machine_number(machine)
    placed = [_Section("", NULL, 0, b"", 1), *_part_sections(parts)]
    head = HEADER.size + SEGMENT.size * (len(parts) + 4)
    tables = _tables(parts, symbols, [0] * len(parts), name)
    at = head
    for (
        section
    ) in tables:  # these come first, in a segment with the header; their sizes don't depend on where parts are
        at = -(-at // section.align) * section.align
        section.at = at
        at += len(section.data)
    first_end = at
    for section in placed[1:]:
        at = -(-at // PAGE) * PAGE
        section.at = at
        at += len(section.data)
    made = _tables(parts, symbols, [s.at for s in placed[1:]], name)
    for old, new in zip(tables, made, strict=True):
        new.at, new.link = old.at, old.link
    hashes, symbol_table, names = made
    symbol_table.link = len(placed) + 2
    hashes.link = len(placed) + 1
    entries = [
        (4, hashes.at),
        (5, names.at),
        (6, symbol_table.at),
        (10, len(names.data)),
        (11, SYMBOL.size),
        (14, 1),
        (0, 0),
    ]
    at = -(-at // PAGE) * PAGE
    dynamic = b"".join(DYNAMIC.pack(tag, value) for tag, value in entries)
    last = _Section(".dynamic", DYNAMIC_SECTION, ALLOC | WRITE, dynamic, 8, len(placed) + 2, 0, DYNAMIC.size, at)
    segments = [SEGMENT.pack(LOAD, R, 0, 0, 0, first_end, first_end, PAGE)]
    for part, section in zip(parts, placed[1:], strict=True):
        size = len(section.data)
        segments.append(SEGMENT.pack(LOAD, R | (X if part.is_code else 0), *[section.at] * 3, size, size, PAGE))
    segments.append(SEGMENT.pack(LOAD, R | W, at, at, at, len(dynamic), len(dynamic), PAGE))
    segments.append(SEGMENT.pack(DYNAMIC_SEGMENT, R | W, at, at, at, len(dynamic), len(dynamic), 8))
    segments.append(SEGMENT.pack(GNU_STACK, R | W, 0, 0, 0, 0, 0, 16))
    return _assemble(number, DYN, [*placed, hashes, symbol_table, names, last], b"".join(segments))


def _tables(parts: Sequence[Part], symbols: Sequence[Symbol], addresses: Sequence[int], name: str) -> list[_Section]:
    """Returns what a system's loader finds symbols by: their hashes, the symbols, and names, the library's own first."""
    table, names = _symbol_table(symbols, addresses)
    own = name.encode() + b"\0"
    moved = bytearray(table)
    for n in range(1, len(symbols) + 1):
        at = n * SYMBOL.size
        struct.pack_into("<I", moved, at, struct.unpack_from("<I", table, at)[0] + len(own))
    buckets, chain = [0], [0] * (len(symbols) + 1)
    for n in range(1, len(symbols) + 1):  # one chain: there are few symbols
        chain[n], buckets[0] = buckets[0], n
    hashes = struct.pack(f"<II{1 + len(chain)}I", 1, len(chain), *buckets, *chain)
    return [
        _Section(".hash", HASH, ALLOC, hashes, 8, entry=4),
        _Section(".dynsym", DYNSYM, ALLOC, bytes(moved), 8, info=1, entry=SYMBOL.size),
        _Section(".dynstr", STRTAB, ALLOC, b"\0" + own + names[1:], 1),
    ]


def _assemble(machine: int, kind: int, sections: list[_Section], segments: bytes) -> list[bytes | memoryview]:
    """Returns a whole file: header, segments, sections where they are to be (or one after another), and their table."""
    names = bytearray()
    offsets = []
    sections.append(_Section(".shstrtab", STRTAB, 0, b"", 1))
    for s in sections:
        offsets.append(len(names))
        names += s.name.encode() + b"\0"
    sections[-1].data = bytes(names)
    at = HEADER.size + len(segments)
    for s in sorted(sections[1:], key=lambda s: s.at or 1 << 62):
        if s.at == 0:
            at = -(-at // s.align) * s.align
            s.at = at
        at = s.at + len(s.data)
    table = -(-at // 8) * 8
    addresses = [s.at if kind == DYN and s.flags & ALLOC else 0 for s in sections]
    rows = [
        SECTION.pack(name, s.kind, s.flags, address, s.at, len(s.data), s.link, s.info, s.align, s.entry)
        for name, address, s in zip(offsets, addresses, sections, strict=True)
    ]
    rows[0] = bytes(SECTION.size)
    header = HEADER.pack(
        b"\x7fELF\x02\x01\x01".ljust(16, b"\0"), kind, machine, 1, 0, HEADER.size if segments else 0, table, 0,
        HEADER.size, SEGMENT.size if segments else 0, len(segments) // SEGMENT.size, SECTION.size, len(rows), len(rows) - 1,
    )  # fmt: skip
    pieces: list[bytes | memoryview] = [header, segments]
    end = HEADER.size + len(segments)
    for s in sorted(sections[1:], key=lambda s: s.at):
        pieces += [bytes(s.at - end), s.data]
        end = s.at + len(s.data)
    return [*pieces, bytes(table - end), *rows]
