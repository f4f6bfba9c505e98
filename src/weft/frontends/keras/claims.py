"""Tells Keras's files by their first bytes, and its objects by their classes, without the packages keras and h5py."""

from __future__ import annotations

from typing import Final

from weft.frontends.content import is_instance

READS: Final = "the path or the bytes of a model that Keras saved (.keras or .h5)"

ZIP: Final = b"PK\x03\x04"
HDF5: Final = b"\x89HDF\r\n\x1a\n"
MODEL: Final = "keras.src.models.model.Model"


def claims(model: object, head: bytes) -> bool:
    """Tells whether *model* is a zip archive, an HDF5 file, or a model in memory, which the frontend refuses with a hint."""
    return head.startswith((ZIP, HDF5)) or is_instance(model, MODEL)
