"""The files of a model, by their paths in a folder."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from weft.frontends.frontend import Shapes


class Files(NamedTuple):
    """A model's files, and its inputs' shapes if they don't say them.

    *main* is the path of the file that is given to Weft, "" for the folder of all of them.
    """

    main: str
    parts: dict[str, bytes]
    shapes: Shapes | None = None

    def write(self, folder: Path) -> Path:
        """Writes the files to a folder; returns the path of the model."""
        for path, data in self.parts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        return folder / self.main


Damage: TypeAlias = Callable[[random.Random, bytes], bytes]
"""Returns bytes with something wrong in them."""


def one(data: bytes, name: str = "model") -> Files:
    """Returns a model of one file."""
    return Files(name, {name: data})


def tree(folder: Path, main: str = "", names: Iterable[str] = ()) -> Files:
    """Returns the files below a folder: those of *names*, or all."""
    paths = [folder / n for n in names] or [p for p in sorted(folder.rglob("*")) if p.is_file()]
    return Files(main, {str(p.relative_to(folder)): p.read_bytes() for p in paths})
