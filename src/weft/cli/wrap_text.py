"""Texts of the compiler made fit to be read on a terminal: no line is longer than the terminal is wide.

for i in parallel(0, 8):                                  for i in parallel(8), k in range(4):
    for k in range(0, 4):                                   block y, vj = i * 4 + k:
        with block("y", vi=spatial(8, i), vj=...):    ->      y[i, vj] = x[vj] + …
            reads(x[vj])
            writes(y[vi, vj])
            y[vi, vj] = x[vj] + ...

Details that a reader can do without are left out: regions, bounds that are 0, the ends of long formulas. The parser reads the
whole text, which is also written to files.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

MOST: Final = 3
"""Lines of a statement that are shown."""

STEP: Final = 2
"""Characters of a level of loops."""

_LOOP: Final = re.compile(r"for (\w+) in (\w+)\((.*)\):")
_BLOCK: Final = re.compile(r'with block\("([^"]*)"(?:, )?(.*)\):')
_AXIS: Final = re.compile(r"(\w+)=(\w+)\((.*)\)")


@dataclass
class Line:
    """A line of a program, and those inside it."""

    text: str
    inside: list[Line] = field(default_factory=list)


def readable_program(text: str, width: int) -> str:
    """Returns the text of a loop program in lines of at most *width* characters."""
    return "\n".join(_shown(_tree(text.splitlines()), 0, width, {})) + "\n"


def wrapped(text: str, width: int, hang: int = 4, most: int | None = None) -> list[str]:
    """Returns *text* in lines of at most *width* characters, those after the first *hang* further in; all, or *most* of them.

    Words that are longer than a line are cut.
    """
    indent = " " * (len(text) - len(text.lstrip()))
    lines = textwrap.wrap(
        text.strip(), width, initial_indent=indent, subsequent_indent=indent + " " * hang, break_on_hyphens=False
    )
    if most is not None and len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1][: width - 2] + " …"]
    return lines or [""]


def _tree(lines: Sequence[str]) -> list[Line]:
    """Returns the lines as a tree, by their indentation."""
    roots: list[Line] = []
    around: list[tuple[int, list[Line]]] = [(-1, roots)]
    for text in lines:
        if not text.strip():
            continue
        indent = len(text) - len(text.lstrip())
        while around[-1][0] >= indent:
            around.pop()
        made = Line(text.strip())
        around[-1][1].append(made)
        around.append((indent, made.inside))
    return roots


def _shown(lines: Sequence[Line], depth: int, width: int, names: dict[str, str]) -> Iterator[str]:
    """Gives the lines of a tree; *names* maps the axes of the blocks around to their loop variables."""
    pad = " " * min(STEP * depth, width // 2)
    for line in lines:
        loops, innermost = _nest(line)
        block = _BLOCK.fullmatch(line.text)
        if loops:
            yield from wrapped(f"{pad}for {', '.join(loops)}:", width)
            yield from _shown(innermost.inside, depth + 1, width, names)
        elif block is not None:
            inner = dict(names)
            yield from wrapped(pad + _block_head(block, inner), width, most=MOST)
            yield from _shown(line.inside, depth + 1, width, inner)
        elif not line.text.startswith(("reads(", "writes(")):
            most = None if line.inside else MOST
            yield from wrapped(pad + _renamed(line.text, names), width, most=most)
            yield from _shown(line.inside, depth + 1, width, names)


def _nest(line: Line) -> tuple[list[str], Line]:
    """Returns the loops that stand around the same statements from *line* on, and the innermost of them."""
    loops: list[str] = []
    at = line
    while (m := _LOOP.fullmatch(at.text)) is not None:
        loops.append(f"{m[1]} in {m[2]}({m[3].removeprefix('0, ')})")
        line = at
        if len(at.inside) != 1:
            break
        at = at.inside[0]
    return loops, line


def _block_head(block: re.Match[str], names: dict[str, str]) -> str:
    """Returns the head of a block; axes that are a loop's variable are put into *names*, the others told."""
    told = []
    for part in _split(block[2]):
        axis = _AXIS.fullmatch(part)
        value = _split(axis[3])[-1] if axis is not None else ""
        if axis is not None and re.fullmatch(r"\w+", value):
            names[axis[1]] = value
        elif axis is not None:
            told.append(f"{axis[1]} = {value}")
        else:
            told.append(part.replace("where=", "where ", 1))
    return f"block {', '.join([block[1], *told])}:"


def _split(text: str) -> list[str]:
    """Splits a text at those commas that are in no brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def _renamed(text: str, names: dict[str, str]) -> str:
    return re.sub(r"\b[A-Za-z_]\w*\b", lambda m: names.get(m[0], m[0]), text)
