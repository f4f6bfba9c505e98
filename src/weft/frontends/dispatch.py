"""Which frontend reads what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from onnx import ModelProto

from weft.frontends import onnx
from weft.graph.graph import Graph
from weft.support.errors import ModelError


def to_graph(model: object, shapes: Mapping[str, int | Sequence[int | str]] | None = None) -> Graph:
    """Reads *model*: the path or the bytes of an ONNX file, or an `onnx.ModelProto`.

    *shapes* gives sizes to symbolic dimensions, by their names or by the inputs' names. Raises `ModelError`.
    """
    if isinstance(model, str | Path | bytes | ModelProto):
        return onnx.from_onnx(model, shapes)
    raise ModelError(
        f"an object of type {type(model).__name__} is not a model that Weft can read",
        hint="give the path or the bytes of an ONNX file, or an onnx.ModelProto",
    )


def files_of(path: Path) -> list[Path]:
    """Returns the files that a model at *path* consists of; raises `ModelError` where there is none."""
    return onnx.files_of(path)
