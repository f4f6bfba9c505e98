"""The text of a network: sections in brackets, each with lines `option=value`; `#` and `;` begin comments.

[convolutional]     Section("convolutional", 0, 12, {"filters": Option("32", 13), ...})
filters=32
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from weft.support.errors import ModelError
from weft.support.text import printable_line

LONGEST_TEXT: Final = 1 << 22
"""Bytes of a network's text; the longest known are some 50,000."""

_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class Option:
    """A value as it is written, and the number of its line."""

    text: str
    line: int


@dataclass(frozen=True)
class Section:
    """A section: its type, its number as Darknet counts layers (that of `[net]` is -1), and the number of its line."""

    type: str
    index: int
    line: int
    options: dict[str, Option] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Names the section in messages."""
        return (
            f"[{self.type}] line {self.line}"
            if self.index < 0
            else f"[{self.type}] layer {self.index}, line {self.line}"
        )


def parse_sections(data: bytes, where: str) -> list[Section]:
    """Returns the sections of a network's text, `[net]` first; raises `ModelError` with the line of a syntax error."""
    made: list[Section] = []
    for number, raw in enumerate(data.decode("utf-8-sig", "replace").split("\n"), 1):
        line = "".join(raw.split())  # Darknet takes all blanks out
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            if not line.endswith("]"):
                _fail(where, number, line, "a section's name has no closing bracket")
            made.append(Section(line[1:-1], len(made) - 1, number))
            continue
        name, equals, value = line.partition("=")
        if not (equals and name and made):
            _fail(where, number, line, "this is neither a section nor an option of one")
        made[-1].options[name] = Option(value, number)
    if len(made) < 2 or made[0].type not in ("net", "network"):
        raise ModelError(
            "the network has no layers after a section [net]", where=where, hint="give a whole Darknet .cfg"
        )
    return made


def types_of(sections: list[Section]) -> Mapping[str, list[str]]:
    """Returns where sections of each type stand, by the type."""
    found: dict[str, list[str]] = {}
    for s in sections:
        found.setdefault(s.type, []).append(f"layer {s.index} (line {s.line})")
    return found


def _fail(where: str, number: int, line: str, message: str) -> None:
    raise ModelError(
        f"{message}: {printable_line(line[:_SHOWN])!r}",
        where=f"{where}, line {number}",
        hint="write [section] or option=value on a line of its own",
    )
