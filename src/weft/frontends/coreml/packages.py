"""Core ML's packages and files: where the model is, and its weights."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weft.frontends.content import existing, manifest_of, name_of
from weft.frontends.coreml.call import AGAIN
from weft.support.errors import MissingFile, ModelError

WEIGHTS: Final = "weights/weight.bin"
_DATA: Final = "Data"


@dataclass(frozen=True)
class Package:
    """The file of a model, the file of its weights, which may not be there, and the name of the model in messages."""

    model: Path
    weights: Path
    name: str

    @property
    def files(self) -> list[Path]:
        """The files that there are."""
        return [self.model, *([self.weights] if self.weights.is_file() else [])]


def package_at(path: Path) -> Package:
    """Returns the parts of the model at *path*: a package's folder, or a file; raises `ModelError` for a damaged manifest."""
    manifest = manifest_of(path)
    if manifest is None:
        return Package(existing(path), path.parent / WEIGHTS, name_of(path))
    try:
        described: Any = json.loads(manifest.read_bytes())
        root = described["itemInfoEntries"][described["rootModelIdentifier"]]["path"]
        model = (path / _DATA / root).resolve()
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ModelError(f"{manifest} is damaged", hint="save the package again with coremltools") from error
    if not model.is_relative_to(path.resolve()):
        raise ModelError(f"{manifest} names {root!r}, which is outside of the package", hint=AGAIN)
    if not model.is_file():
        raise MissingFile(f"there is no file {model}, which {manifest} names", hint="copy the whole folder")
    return Package(model, model.parent / WEIGHTS, name_of(path))
