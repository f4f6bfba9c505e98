"""Runs the code in a Markdown document: Python blocks in order, in one namespace.

A text block is what the Python block before it prints.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class CodeBlock:
    """A fenced block: its language, its text, and the line that it begins at."""

    language: str
    text: str
    line: int


def blocks(path: Path) -> list[CodeBlock]:
    """Returns the fenced blocks of a document."""
    text = path.read_text()
    return [CodeBlock(m[1], m[2], text.count("\n", 0, m.start()) + 2) for m in _BLOCK.finditer(text)]


def run(path: Path) -> int:
    """Runs a document and returns how many texts it compared; `...` in a text stands for anything."""
    scope: dict[str, object] = {"__name__": "tour"}
    printed, compared = "", 0
    for block in blocks(path):
        if block.language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * (block.line - 1) + block.text, str(path), "exec"), scope)
            printed = out.getvalue()
        elif block.language == "text":
            check(block.text, printed, f"{path.name}:{block.line}")
            compared += 1
    return compared


def check(wanted: str, got: str, where: str) -> None:
    """Compares a shown text with a printed one."""
    match = doctest.OutputChecker().check_output(wanted.strip() + "\n", got.strip() + "\n", doctest.ELLIPSIS)
    assert match, f"{where} shows\n{wanted}\nbut the code prints\n{got}"
