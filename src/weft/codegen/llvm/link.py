"""Links objects into one position-independent image: code, then constants, with no relocation left.

All references are relative to the instruction pointer, so that the image runs wherever it is mapped. The constants begin on a
page of their own, so that only code need be executable.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weft.codegen.llvm.compile import ObjectCode
from weft.codegen.llvm.elf import (
    ALLOCATED,
    EXECUTABLE,
    NOBITS,
    UNDEFINED,
    WRITABLE,
    Object,
    Relocation,
    Section,
    read_object,
)
from weft.support.errors import ToolchainError

PAGE: Final = 4096
R_PC64: Final = 24
_RELATIVE: Final = {2: "PC32", 4: "PLT32", R_PC64: "PC64"}


@dataclass(frozen=True)
class Image:
    """Position-independent machine code: bytes to map, where the global symbols are in them, messages of assertions.

    The bytes from `readonly` on are constants.
    """

    code: bytes
    symbols: dict[str, int]
    messages: dict[int, str]
    readonly: int


def link(objects: Sequence[ObjectCode]) -> Image:
    """Links *objects* into one image.

    Raises `ToolchainError` for symbols that are undefined or defined twice, writable data, relocations that are not relative, and
    assertion messages whose numbers collide.
    """
    parsed = [read_object(o.elf) for o in objects]
    places, readonly, size = _lay_out(parsed)
    symbols = _global_symbols(parsed, [dict(o.renamed) for o in objects], places)
    code = bytearray(size)
    for (o, s), at in places.items():
        data = parsed[o].sections[s].data
        code[at : at + len(data)] = data
    missing: set[str] = set()
    for o, of in enumerate(parsed):
        for r in of.relocations:
            if (o, r.section) in places:
                _apply(code, of, r, places, o, symbols, missing)
    if missing:
        raise ToolchainError(
            f"undefined symbols: {', '.join(sorted(missing))}", hint="link the objects that define them"
        )
    return Image(bytes(code), symbols, _messages(objects), readonly)


def _lay_out(objects: Sequence[Object]) -> tuple[dict[tuple[int, int], int], int, int]:
    """Returns the place of each loaded section, where the constants begin, and the size of all."""
    loaded = [
        (o, i, s) for o, of in enumerate(objects) for i, s in enumerate(of.sections) if s.flags & ALLOCATED and s.data
    ]
    for _, _, s in loaded:
        _check_section(s)
    places: dict[tuple[int, int], int] = {}
    code = _place([x for x in loaded if x[2].flags & EXECUTABLE], 0, places)
    constants = [x for x in loaded if not x[2].flags & EXECUTABLE]
    readonly = -(-code // PAGE) * PAGE if constants else code
    return places, readonly, _place(constants, readonly, places)


def _place(sections: Sequence[tuple[int, int, Section]], at: int, places: dict[tuple[int, int], int]) -> int:
    """Puts sections one after another from *at* on; returns where they end."""
    for o, i, s in sections:
        at = -(-at // s.align) * s.align
        places[o, i] = at
        at += len(s.data)
    return at


def _check_section(s: Section) -> None:
    if s.flags & WRITABLE or s.kind == NOBITS:
        raise ToolchainError(f"the object has writable data in {s.name}", hint="generated code may only hold constants")


def _global_symbols(
    objects: Sequence[Object], renamed: Sequence[Mapping[str, str]], places: dict[tuple[int, int], int]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for o, of in enumerate(objects):
        for s in of.symbols:
            if s.is_local or s.section == UNDEFINED:
                continue
            name = renamed[o].get(s.name, s.name)
            if name in found:
                raise ToolchainError(f"the symbol {name} is defined twice", hint="link each object once")
            found[name] = places[o, s.section] + s.offset
    return found


def _apply(
    code: bytearray,
    of: Object,
    r: Relocation,
    places: dict[tuple[int, int], int],
    number: int,
    symbols: dict[str, int],
    missing: set[str],
) -> None:
    """Fills in one relocation; a name without a definition is added to *missing*."""
    if r.kind not in _RELATIVE:
        raise ToolchainError(
            f"relocation type {r.kind} in {of.sections[r.section].name} is not relative",
            hint="compile position-independent code",
        )
    target = of.symbols[r.symbol]
    if target.section == UNDEFINED:
        if target.name not in symbols:
            missing.add(target.name)
            return
        value = symbols[target.name]
    else:
        value = places[number, target.section] + target.offset
    at = places[number, r.section] + r.offset
    struct.pack_into("<q" if r.kind == R_PC64 else "<i", code, at, value + r.addend - at)


def _messages(objects: Sequence[ObjectCode]) -> dict[int, str]:
    merged: dict[int, str] = {}
    for o in objects:
        for number, text in o.messages:
            if merged.setdefault(number, text) != text:
                raise ToolchainError(
                    f"two assertion messages share a number: {text!r} and {merged[number]!r}",
                    hint="compile them in one module",
                )
    return merged
