"""The sources of the package as syntax trees, for the tests that hold them to rules."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SRC: Final = ROOT / "src" / "weft"


def python_sources() -> list[Path]:
    """Returns the Python files of the package."""
    return sorted(SRC.rglob("*.py"))


def trees(*words: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yields the Python files of the package and their trees; if *words* are given, of those alone that have one of them."""
    for path in python_sources():
        text = path.read_text(encoding="utf-8")
        if not words or any(word in text for word in words):
            yield path, parsed(text)


def parsed(text: str) -> ast.Module:
    """Returns the tree of a file; Python's collector, which would go through it while it grows, takes longer than its parser."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if collects:
            gc.enable()
