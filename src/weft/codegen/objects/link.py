"""Links objects into one position-independent image: code, then constants, with no relocation left.

All references are relative to the instruction pointer, so that the image runs wherever it is mapped. The constants begin on a
page of their own, so that only code need be executable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from weft.codegen.backend import Image, Module, merge_messages
from weft.codegen.objects import relocations_x86_64
from weft.codegen.objects.elf import ALLOCATED, EXECUTABLE, NOBITS, UNDEFINED, WRITABLE
from weft.codegen.objects.read_elf import Object, Relocation, Section, read_object
from weft.support.errors import ToolchainError

RELOCATE: Final[dict[str, Callable[[bytearray, int, int, int], bool]]] = {"x86_64": relocations_x86_64.relocate}
"""The relocation function of each machine, by the first word of its triple: (code, kind, place, value) -> whether it can."""


def link(objects: Sequence[Module], page: int = 4096) -> Image:
    """Links *objects* into one image, whose constants begin at a multiple of *page* bytes.

    Raises `ToolchainError` for machines whose relocations are not known, symbols that are undefined or defined twice, writable
    data, relocations that are not relative, and assertion messages whose numbers collide.
    """
    parsed = [read_object(o.data) for o in objects]
    _check_machines(parsed)
    places, readonly, size = _lay_out(parsed, page)
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
    return Image(bytes(code), symbols, merge_messages(objects), readonly)


def _lay_out(objects: Sequence[Object], page: int) -> tuple[dict[tuple[int, int], int], int, int]:
    """Returns the place of each loaded section, where the constants begin, and the size of all."""
    loaded = [
        (o, i, s) for o, of in enumerate(objects) for i, s in enumerate(of.sections) if s.flags & ALLOCATED and s.data
    ]
    for _, _, s in loaded:
        _check_section(s)
    places: dict[tuple[int, int], int] = {}
    code = _place([x for x in loaded if x[2].flags & EXECUTABLE], 0, places)
    constants = [x for x in loaded if not x[2].flags & EXECUTABLE]
    readonly = -(-code // page) * page if constants else code
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
    target = of.symbols[r.symbol]
    if target.section == UNDEFINED:
        if target.name not in symbols:
            missing.add(target.name)
            return
        value = symbols[target.name]
    else:
        value = places[number, target.section] + target.offset
    at = places[number, r.section] + r.offset
    if not RELOCATE[of.machine](code, r.kind, at, value + r.addend):
        raise ToolchainError(
            f"relocation type {r.kind} in {of.sections[r.section].name} is not relative",
            hint="compile position-independent code",
        )


def _check_machines(objects: Sequence[Object]) -> None:
    machines = sorted({o.machine for o in objects})
    if len(machines) > 1:
        raise ToolchainError(
            f"objects for {' and '.join(machines)} can't be linked", hint="compile them for one target"
        )
    for name in machines:
        if name not in RELOCATE:
            raise ToolchainError(
                f"objects for {name} can't be linked yet: only those for {', '.join(RELOCATE)} can",
                hint="compile for another target",
            )
