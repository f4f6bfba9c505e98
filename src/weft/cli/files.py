"""Files that a command reads and writes: outputs appear whole or not at all, and are refused before the work, not after."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from weft.support.errors import ArtifactError


def check_output(path: Path) -> None:
    """Raises `ArtifactError` unless a file can be made at *path*: its folder is there, and nothing but a file is in its way."""
    if path.exists() and not path.is_file():
        raise ArtifactError(f"{path} can't be written: it is not a plain file", hint="choose another name")
    if not path.parent.is_dir():
        raise ArtifactError(
            f"{path} can't be written: there is no folder {path.parent}", hint="make it, or choose another"
        )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ArtifactError(
            f"{path} can't be written: you may not write in {path.parent.resolve()}", hint="choose another folder"
        )


def check_folder(path: Path) -> None:
    """Makes the folder *path* if there is none; raises `ArtifactError` where that fails or it can't be written in."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise _unwritable(path, e) from None
    check_output(path / "output")


def write_output(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Lets *write* fill a file, which then appears at *path*; raises `ArtifactError` and leaves nothing where that fails."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
            try:
                write(file)
                file.flush()
                os.chmod(file.name, 0o644)
                os.replace(file.name, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(file.name)
                raise
    except OSError as e:
        raise _unwritable(path, e) from None


def write_json(path: Path, figures: object) -> None:
    """Writes *figures* as JSON to a file at *path*; raises `ArtifactError` where that fails."""
    text = json.dumps(figures, indent=1)
    write_output(path, lambda file: file.write(text.encode()))


def _unwritable(path: Path, error: OSError) -> ArtifactError:
    return ArtifactError(f"{path} can't be written: {error.strerror or error}", hint="choose another place")
