"""Finds the file of a model's weights beside that of its structure."""

from __future__ import annotations

from pathlib import Path

from weft.support.errors import MissingFile
from weft.support.text import printable_line


def weights_beside(path: Path, suffix: str) -> Path:
    """Returns the file of *path*'s name with *suffix*; raises `MissingFile`, naming those of other names, where there is none.

    No other is taken: results are kept in a cache by a model's files, and which one is meant could change without these.
    """
    same = path.with_suffix(suffix)
    if same.is_file():
        return same
    found = sorted(p for p in path.parent.glob(f"*{suffix}") if p.is_file())
    among = f"; the folder has {printable_line(', '.join(p.name for p in found[:3]))}" if found else ""
    raise MissingFile(
        f"there is no {same.name} beside {path}, for its weights{among}",
        hint=f'call it so, or give both: weft.compile(("{path.name}", "FILE{suffix}"))',
    )
