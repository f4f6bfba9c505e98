"""Figures as JSON files, and the checks of a command's output paths before the work begins."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from weft.support.errors import ArtifactError
from weft.support.files import check_output, write_output


def check_result(path: Path, *models: Path) -> None:
    """Raises `ArtifactError` unless *path* can be written; the *models* that it is the result of are never replaced by it."""
    check_output(path)
    for model in models:
        with suppress(OSError):  # one of the two is not there
            if path.samefile(model):
                raise ArtifactError(f"{path} can't be written: it is the model itself", hint="choose another name")


def write_json(path: Path, figures: object) -> None:
    """Writes *figures* as JSON to a file at *path*; raises `ArtifactError` where that fails."""
    text = json.dumps(figures, indent=1)
    write_output(path, lambda file: file.write(text.encode()))
