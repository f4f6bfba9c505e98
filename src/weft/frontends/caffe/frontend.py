"""Caffe as a frontend."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from weft.frontends.caffe.claims import is_weights
from weft.frontends.caffe.importer import from_caffe
from weft.frontends.content import existing, head_of
from weft.frontends.frontend import Frontend, Shapes
from weft.frontends.weights_beside import weights_beside
from weft.graph import Graph
from weft.support.errors import ModelError

SUFFIX: Final = ".caffemodel"


class CaffeFrontend:
    """Networks of two files: a path of the text, or a pair of paths."""

    def files(self, path: Path) -> list[Path]:
        """Returns the text and the weights beside it."""
        return [path, weights_beside(path, SUFFIX)]

    def to_graph(self, model: Any, shapes: Shapes | None = None) -> Graph:
        """Imports a network; raises `ModelError` for one of its files alone, if the other isn't beside it."""
        if isinstance(model, bytes):
            raise ModelError(
                "a Caffe network is two files, of which bytes are one",
                hint="give the path of its .prototxt, or a pair of paths",
            )
        pair = model if isinstance(model, tuple) else (model,)
        text = existing(pair[0])
        if is_weights(head_of(text)):
            raise ModelError(f"{text} has a network's weights alone", hint="give its .prototxt, and these beside it")
        return from_caffe(text, existing(pair[1]) if len(pair) > 1 else weights_beside(text, SUFFIX), shapes)


FRONTEND: Final[Frontend] = CaffeFrontend()
