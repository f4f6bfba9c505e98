"""Keras as a frontend."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from weft.frontends.content import is_instance
from weft.frontends.frontend import Frontend, Shapes
from weft.frontends.keras.claims import MODEL
from weft.frontends.keras.importer import from_keras
from weft.graph import Graph
from weft.support.errors import ModelError


class KerasFrontend:
    """Models that Keras saved: paths and bytes."""

    def files(self, path: Path) -> list[Path]:
        """Returns the one file."""
        return [path]

    def to_graph(self, model: Any, shapes: Shapes | None = None) -> Graph:
        """Imports the model; see `from_keras`."""
        if is_instance(model, MODEL):
            raise ModelError(
                f"a {type(model).__name__} is a model in Keras's memory, not a saved one",
                hint='save it first, model.save("model.keras"), and give the path',
            )
        return from_keras(model, shapes)


FRONTEND: Final[Frontend] = KerasFrontend()
