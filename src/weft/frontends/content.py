"""How models are recognised: by the class of an object, or the first bytes of a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from weft.support.errors import MissingFile, ModelError

HEAD: Final = 4096
"""Bytes of a file that frontends look at."""

LOCAL_HEADER: Final = b"PK\x03\x04"
"""How an archive begins, with its first member."""

MANIFESTS: Final = ("Manifest.json", "saved_model.pb")
"""The files by which folders are told to be models: Core ML's packages and TensorFlow's saved models have one."""

SHOWN: Final = 16
"""Bytes of a file that a message shows."""


def head_of(model: object) -> bytes:
    """Returns the first bytes of a path's file, or of bytes, and none for other objects; a folder's are its manifest's.

    Raises `MissingFile` where there is no file at the path, and `ModelError` for a folder and for a file that can't be read.
    """
    if isinstance(model, str | os.PathLike):
        path = manifest_of(Path(model)) or existing(model)
        try:
            with path.open("rb") as file:
                return file.read(HEAD)
        except OSError as error:  # it may not be read, or is no file: a socket, a device, a disk that fails
            raise ModelError(f"{path} can't be read: {error.strerror}", hint="give another path") from error
    return model[:HEAD] if isinstance(model, bytes) else b""


def manifest_of(path: Path) -> Path | None:
    """Returns the manifest of a folder that is a model; None for other folders, and for files."""
    return next((file for name in MANIFESTS if (file := path / name).is_file()), None)


def existing(model: str | os.PathLike[str]) -> Path:
    """Returns the path of a file; raises `MissingFile` where there is none, and `ModelError` for a folder."""
    path = Path(model)
    if not path.exists():
        raise MissingFile(f"there is no file {path}", hint=f"the current folder is {Path.cwd()}")
    if path.is_dir():
        raise ModelError(
            f"{path} is a folder, not a model",
            hint="give the path of a file in it; folders that are models have a Manifest.json or a saved_model.pb",
        )
    return path


def read_text(path: Path, most: int, hint: str) -> bytes:
    """Returns the bytes of a text; raises `ModelError` for one of more than *most*, of which nothing is read, with *hint*."""
    size = path.stat().st_size
    if size > most:
        raise ModelError(f"the network's text has {size} bytes; {most} are the most", where=str(path), hint=hint)
    return path.read_bytes()


def name_of(model: object) -> str:
    """Names a model in messages: its path, or the kind of object."""
    if isinstance(model, str | os.PathLike):
        return str(Path(model))
    return "the model given as bytes" if isinstance(model, bytes) else f"an object of type {type(model).__name__}"


def first_member(head: bytes) -> str:
    """Returns the name of the first member of the ZIP archive that begins with *head*; "" for anything else.

    Local file headers are as in section 4.3.7 of PKWARE's APPNOTE: the name, after 30 bytes of which two have its length.
    """
    if not head.startswith(LOCAL_HEADER):
        return ""
    length = int.from_bytes(head[26:28], "little")
    return head[30 : 30 + length].decode("utf-8", "replace") or "?"


def is_instance(model: object, name: str) -> bool:
    """Tells whether *model* is an object of the class `module.Class`, or of one derived from it, without importing the module."""
    return any(f"{c.__module__}.{c.__qualname__}" == name for c in type(model).__mro__)


def unreadable(name: str, head: bytes, kind: str, hint: str) -> ModelError:
    """Returns the error for a file or bytes, called *name* and beginning with *head*, that are no model of *kind*."""
    if not head:
        return ModelError(f"{name} is empty", hint="download or export it again")
    if head.startswith(b"version https://git-lfs"):
        return ModelError(f"{name} is a Git LFS pointer, not the model itself", hint="run `git lfs pull`")
    start = head[:SHOWN].decode("ascii", "replace").replace("\ufffd", "?")
    return ModelError(f"{name} is not {kind}; it begins with {start!r}", hint=hint)
