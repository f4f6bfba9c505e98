"""The file of weights: a version, how many images were seen, then the float32 arrays of all layers, one after another."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Final

import numpy as np

from weft.graph import Array
from weft.support.errors import ModelError

_VERSION: Final = struct.Struct("<iii")
_MOST: Final = 1000
"""Versions above it say that the matrices are transposed."""

WRONG_FILE: Final = "give the .weights that were trained with this .cfg"


class Weights:
    """Hands out the arrays of a file in its order; they are views into the file's mapping, and nothing is copied.

    `transposed` says that the matrices of connected layers are [inputs, outputs]; `is_forks` that the maintained fork wrote the
    file (its revision is 5, where the original says 0): the two keep arrays of recurrent layers in other orders, and add other
    numbers to variances.
    Raises `ModelError` for a file without a header.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_VERSION.size)
        if len(head) < _VERSION.size:
            raise ModelError(f"{path} has {size} bytes, too few for Darknet's weights", hint=WRONG_FILE)
        major, minor, revision = _VERSION.unpack(head)
        self.is_forks: bool = revision != 0
        self.transposed: bool = major > _MOST or minor > _MOST
        long = major * 10 + minor >= 2 and abs(major) < _MOST and abs(minor) < _MOST
        start = _VERSION.size + (8 if long else 4)
        count = max(size - start, 0) // 4
        self._floats: Array = np.zeros(0, np.float32)
        if count:
            self._floats = np.asarray(np.memmap(path, "<f4", "r", start, (count,)))
        self._at = 0

    def take(self, shape: tuple[int, ...], what: str, where: str) -> Array:
        """Returns the next array; raises `ModelError`, naming *what* of the layer *where*, if the file ends before its end."""
        count, left = math.prod(shape), self._floats.size - self._at
        if count > left:
            raise ModelError(
                f"{self.path} ends within its {what}: {count} numbers are needed, and {left} are left",
                where=where,
                hint=WRONG_FILE,
            )
        self._at += count
        return self._floats[self._at - count : self._at].reshape(shape)

    def finish(self) -> None:
        """Raises `ModelError` if numbers are left that no layer has taken."""
        left = self._floats.size - self._at
        if left:
            raise ModelError(
                f"{self.path} has {left} numbers more than the network's layers take ({self._at})", hint=WRONG_FILE
            )
