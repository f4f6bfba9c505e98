"""Core ML as a frontend."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from weft.frontends.content import manifest_of
from weft.frontends.coreml.blob_file import BlobFile, mapped
from weft.frontends.coreml.call import AGAIN
from weft.frontends.coreml.importer import from_coreml
from weft.frontends.coreml.packages import Package, package_at
from weft.frontends.frontend import Frontend, Shapes
from weft.frontends.protobuf_message import Message
from weft.frontends.wire_format import Malformed
from weft.graph import Graph
from weft.support.errors import ModelError


class CoreMLFrontend:
    """Packages and files of Core ML: paths, and bytes of a file that has its weights in itself."""

    def files(self, path: Path) -> list[Path]:
        """Returns the model, the weights beside it, and before them a package's manifest."""
        manifest = manifest_of(path)
        return package_at(path).files if manifest is None else [manifest, *package_at(path).files]

    def to_graph(self, model: Any, shapes: Shapes | None = None) -> Graph:
        """Imports the model; see `from_coreml`."""
        if isinstance(model, bytes):
            return _imported(memoryview(model), Package(Path(), Path(), "the model given as bytes"), shapes)
        package = package_at(Path(model))
        if not package.model.stat().st_size:
            raise ModelError(f"{package.model} is empty", hint="copy the model again")
        return _imported(mapped(package.model), package, shapes)


def _imported(data: memoryview, package: Package, shapes: Shapes | None) -> Graph:
    try:
        return from_coreml(Message(data), BlobFile(package.weights), shapes)
    except Malformed as error:
        raise ModelError(
            f"{package.name} is damaged, or no model of Core ML, or its file of weights is", hint="copy the model again"
        ) from error
    except RecursionError as error:
        raise ModelError(f"{package.name} nests too deeply", hint=AGAIN) from error


FRONTEND: Final[Frontend] = CoreMLFrontend()
