"""Memory of data-dependent size in interpreted programs: outputs requested from the caller, and buffers kept by a context."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.codegen.interp.array_memory import Array, allocate, undefined, window
from weft.support.dtypes import DType, u8


class LateArrays:
    """The caller of a program, and its context: `outputs` are those that the program asked for, by number."""

    def __init__(self) -> None:
        self.outputs: dict[int, Array] = {}
        self._kept: dict[int, Array] = {}

    def output(self, number: int, dtype: DType, shape: Sequence[int], _: None) -> tuple[Array, Array]:
        """Returns the memory of an output, flat and in its shape."""
        flat, made = allocate(dtype, shape, None)
        self.outputs[number] = made
        return flat, made

    def keep(self, number: int, dtype: DType, shape: Sequence[int], _: None) -> tuple[Array, Array]:
        """Returns kept memory of at least so many elements; earlier contents stay. Earlier buffers of it are left behind."""
        before = self._kept.setdefault(number, np.zeros(0, np.uint8))
        bytes_ = int(np.prod(shape)) * dtype.bytes
        if bytes_ > len(before):
            self._kept[number] = np.concatenate([before, undefined(u8, bytes_ - len(before))])
        return window((self._kept[number], 0), dtype, shape, None)
