"""The file of weights: arrays of three versions of a header, and their names. Nothing in it is code.

file  ::= 0x112, 0, count, arrays, count, names
array ::= 0xF993FAC9, storage, shape, device, type, elements      (FACA: shapes as NumPy has them; FAC8: no storage)
        | dimensions, sizes of 32 bits, device, type, elements    (before 2017)
"""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np

from weft.frontends.mxnet.claims import PARAMS
from weft.graph import Array
from weft.support.errors import ModelError

WRONG_FILE: Final = "give the .params that was saved with this symbol"

_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
TYPES: Final = {
    **dict(enumerate(("<f4", "<f8", "<f2", "u1", "<i4", "i1", "<i8", "?"))),
    12: ml_dtypes.bfloat16,
}
_MOST_DIMENSIONS: Final = 32
_MOST_ELEMENTS: Final = 1 << 48


class _Ends(Exception):
    """The file ends before what it announces, or announces what can't be."""


def read_params(path: Path) -> dict[str, Array]:
    """Returns the arrays by their names, without `arg:` and `aux:` before them; they are views into the file's mapping.

    Raises `ModelError` for a damaged file, and for sparse arrays.
    """
    if not path.stat().st_size:
        raise ModelError(f"{path} is empty", hint=WRONG_FILE)
    with path.open("rb") as file:
        reader = _Reader(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), path)
    try:
        if bytes(reader.take(len(PARAMS))) != PARAMS:
            raise ModelError(f"{path} is no file of MXNet's arrays", hint=WRONG_FILE)
        arrays = [reader.array() for _ in range(reader.count())]
        names = [reader.text() for _ in range(reader.count())]
    except _Ends as error:
        raise ModelError(f"{path} is damaged", hint="download it again") from error
    return {n.partition(":")[2] if n[:4] in ("arg:", "aux:") else n: a for n, a in zip(names, arrays, strict=False)}


class _Reader:
    def __init__(self, data: memoryview, path: Path) -> None:
        self.data, self.path, self.at = data, path, 0

    def take(self, size: int) -> memoryview:
        """Returns the next bytes."""
        if not 0 <= size <= len(self.data) - self.at:
            raise _Ends
        self.at += size
        return self.data[self.at - size : self.at]

    def numbers(self, form: str) -> tuple[int, ...]:
        """Returns the next integers."""
        return struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))

    def count(self) -> int:
        """Returns a number of things, of which each has a byte or more."""
        (found,) = self.numbers("Q")
        if found > len(self.data) - self.at:
            raise _Ends
        return found

    def text(self) -> str:
        """Returns a text."""
        return bytes(self.take(self.count())).decode("utf-8", "replace")

    def array(self) -> Array:
        """Returns an array; an empty one where there is none."""
        (magic,) = self.numbers("I")
        if magic in (_V2, _V3):
            (storage,) = self.numbers("i")
            if storage:
                raise ModelError(f"{self.path} has a sparse array", hint="convert it: array.tostype('default')")
        (rank,) = self.numbers("I") if magic in (_V1, _V2, _V3) else (magic,)
        if rank > _MOST_DIMENSIONS:
            raise _Ends
        shape = self.numbers(f"{rank}{'q' if magic in (_V1, _V2, _V3) else 'I'}")
        if (not rank and magic != _V3) or min(shape, default=0) < 0:
            return np.zeros(0, np.float32)
        _, _, type_ = self.numbers("iii")
        if type_ not in TYPES:
            raise _Ends
        dtype: np.dtype[Any] = np.dtype(TYPES[type_])
        if (
            math.prod(filter(None, shape)) > _MOST_ELEMENTS
        ):  # beside a size of 0, others may be more than NumPy can count
            raise _Ends
        return np.frombuffer(self.take(math.prod(shape) * dtype.itemsize), dtype).reshape(shape)
