"""Frontends of networks of two files: the structure, and the weights beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.frontends.content import existing, head_of
from weft.frontends.frontend import Shapes
from weft.graph import Graph
from weft.support.errors import ModelError


@dataclass(frozen=True)
class TwoFilesFrontend:
    """Reads a path of the structure, or a pair of paths.

    *network* names the format in messages and *structure* its first file. *is_weights* tells weights by their first bytes,
    *beside* finds them for a structure's path, and *read* makes the graph.
    """

    network: str
    structure: str
    is_weights: Callable[[bytes], bool]
    beside: Callable[[Path], Path]
    read: Callable[[Path, Path, Shapes | None], Graph]

    def files(self, path: Path) -> list[Path]:
        """Returns the structure and the weights beside it."""
        return [path, self.beside(path)]

    def to_graph(self, model: Any, shapes: Shapes | None = None) -> Graph:
        """Imports a network; raises `ModelError` for one of its files alone, if the other isn't beside it."""
        if isinstance(model, bytes):
            raise ModelError(
                f"{self.network} is two files, of which bytes are one",
                hint=f"give the path of its {self.structure}, or a pair of paths",
            )
        pair = model if isinstance(model, tuple) else (model,)
        text = existing(pair[0])
        if self.is_weights(head_of(text)):
            raise ModelError(
                f"{text} has a network's weights alone", hint=f"give its {self.structure}, and these beside it"
            )
        return self.read(text, existing(pair[1]) if len(pair) > 1 else self.beside(text), shapes)
