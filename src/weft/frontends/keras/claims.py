"""Tells Keras's files by their first bytes, and its objects by their classes, without the packages keras and h5py."""

from __future__ import annotations

from typing import Final

from weft.frontends.content import first_member, is_instance

READS: Final = "a .keras or .h5 file of Keras"

MEMBERS: Final = ("metadata.json", "config.json", "model.weights.h5")
"""The members of Keras's archives, one of which is the first. Other archives are PyTorch's."""

HDF5: Final = b"\x89HDF\r\n\x1a\n"
MODEL: Final = "keras.src.models.model.Model"


def claims(model: object, head: bytes) -> bool:
    """Tells whether *model* is Keras's archive, an HDF5 file, or a model in memory, which the frontend refuses with a hint."""
    return first_member(head) in MEMBERS or head.startswith(HDF5) or is_instance(model, MODEL)
