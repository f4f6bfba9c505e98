"""TensorFlow Lite as a frontend."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from weft.frontends.frontend import Frontend, Shapes
from weft.frontends.tflite.importer import from_tflite
from weft.graph import Graph


class TfliteFrontend:
    """Models of TensorFlow Lite: paths and bytes."""

    def files(self, path: Path) -> list[Path]:
        """Returns the one file."""
        return [path]

    def to_graph(self, model: Any, shapes: Shapes | None = None) -> Graph:
        """Imports the model; see `from_tflite`."""
        return from_tflite(model, shapes)


FRONTEND: Final[Frontend] = TfliteFrontend()
