"""TensorFlow as a frontend."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from weft.frontends.frontend import Frontend, Shapes
from weft.frontends.tensorflow.file.model_files import files_of
from weft.frontends.tensorflow.importer import from_tensorflow
from weft.graph import Graph


class TensorflowFrontend:
    """Saved models, by their folders or the files in these, and frozen graphs: paths and bytes."""

    def files(self, path: Path) -> list[Path]:
        """Returns the model's file, and those of its variables."""
        return files_of(path)

    def to_graph(self, model: Any, shapes: Shapes | None = None) -> Graph:
        """Imports the model; see `from_tensorflow`."""
        return from_tensorflow(model, shapes)


FRONTEND: Final[Frontend] = TensorflowFrontend()
