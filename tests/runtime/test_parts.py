"""The parts of the native code: each small, the runtime's without an operating system where they say so."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from tests.runtime.conftest import NATIVE, RT, STRICT_C, tool

from weft.native import PARTS

CAPS: Final = {
    "rt": 1454,
    "state": 340,
    "load": 530,
    "hostops": 1083,
    "launch": 937,
    "cuda": 919,
    "system": 450,
    "measure": 150,
    "py": 1868,
    "cpp": 320,
}
"""The most lines of each folder."""

SOURCES: Final = {".c", ".h", ".cpp", ".hpp"}

PORT: Final = {"weft_port_alloc", "weft_port_free", "memcpy", "memset"}
"""What a program without an operating system provides."""


def freestanding(part: str, folder: Path) -> list[Path]:
    """Returns the objects of *part*, compiled into *folder* for no operating system."""
    flags = [
        *STRICT_C,
        "-Wpedantic",
        "-fno-pie",
        "-ffreestanding",
        "-DWEFT_FREESTANDING",
        f"-I{RT}",
        f"-I{NATIVE / 'launch'}",
    ]
    objects = []
    for source in sorted((NATIVE / part).glob("*.c")):
        objects.append(folder / f"{source.stem}.o")
        tool("gcc", *flags, "-c", source, "-o", objects[-1])
    return objects


@pytest.mark.parametrize("parts", [["rt", "state"], ["rt", "state", "load"], ["rt", "state", "launch"]])
def test_freestanding_parts_need_only_their_port(parts: list[str], tmp_path: Path) -> None:
    """What runs models does without what loads them: a program may have its model linked in."""
    tool("ld", "-r", *[o for part in parts for o in freestanding(part, tmp_path)], "-o", tmp_path / "all.o")
    undefined = {line.split()[-1] for line in tool("nm", "-u", tmp_path / "all.o").splitlines()}
    assert undefined <= PORT


@pytest.mark.parametrize("part", ["system", "measure", "hostops"])
def test_files_that_need_a_system_are_empty_without_one(part: str, tmp_path: Path) -> None:
    """A program without an operating system may compile every file of the folder that it was given."""
    for made in freestanding(part, tmp_path):
        assert tool("nm", made) == ""


def test_every_folder_has_a_cap() -> None:
    folders = {p.parent.name for p in NATIVE.rglob("*") if p.suffix in SOURCES}
    assert folders == set(CAPS)
    assert set(PARTS) <= folders


@pytest.mark.parametrize("part", CAPS)
def test_parts_stay_small(part: str) -> None:
    """Each is read in an evening: what outgrows its part is a part of its own."""
    files = [p for p in (NATIVE / part).iterdir() if p.is_file()]
    assert sum(len(p.read_text(encoding="utf-8").splitlines()) for p in files) <= CAPS[part]
