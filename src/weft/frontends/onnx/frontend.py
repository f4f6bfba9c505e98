"""ONNX as a frontend."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from weft.frontends.frontend import Frontend, Shapes
from weft.frontends.onnx.file.read import files_of
from weft.frontends.onnx.importer import from_onnx
from weft.graph import Graph


class OnnxFrontend:
    """Models of the Open Neural Network Exchange: paths, bytes, and `onnx.ModelProto`."""

    def files(self, path: Path) -> list[Path]:
        """Returns the model's file and those with its external data."""
        return files_of(path)

    def to_graph(self, model: Any, shapes: Shapes | None = None) -> Graph:
        """Imports the model; see `from_onnx`."""
        return from_onnx(model, shapes)

    def with_states(self, model: Any, shapes: Shapes | None, states: Collection[str]) -> Graph:
        """Imports the model with those of its inputs that have initializers, and are to be states, as inputs."""
        return from_onnx(model, shapes, states=states)


FRONTEND: Final[Frontend] = OnnxFrontend()
