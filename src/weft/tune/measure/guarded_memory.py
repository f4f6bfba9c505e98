"""Memory for one buffer of a kernel, between guards that show whether it writes outside of it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.native import _rt

Array = np.ndarray[Any, Any]

GUARD: Final = 4096
"""The bytes before and after a buffer that nothing may write to: a page, more than any vector or row of a tile is beside it."""

PATTERN: Final = 0xA5
UNWRITTEN: Final = 0xFF
"""The byte that outputs are filled with: NaN in floats, -1 in integers."""

STAGGER: Final = 320
"""The bytes, modulo a page, by which one buffer is further than the last, so that no two begin in the same cache sets."""


class GuardedMemory:
    """The memory of *count* elements, aligned as in a model's arena; *place* tells how many buffers are before it."""

    def __init__(self, count: int, dtype: np.dtype[Any], place: int = 0) -> None:
        nbytes = count * dtype.itemsize
        begin = GUARD + place * STAGGER % GUARD
        block: Array = np.asarray(memoryview(_rt.Block(begin + nbytes + GUARD)))
        self._before, self.bytes, self._after = block[:begin], block[begin : begin + nbytes], block[begin + nbytes :]
        self.values: Array = self.bytes.view(dtype)
        for guard in (self._before, self._after):
            guard[:] = PATTERN

    def clear(self) -> None:
        """Fills the buffer with values that no kernel computes from finite ones."""
        self.bytes[:] = UNWRITTEN

    @property
    def is_intact(self) -> bool:
        """Whether nothing was written outside of the buffer."""
        return bool((self._before == PATTERN).all() and (self._after == PATTERN).all())
