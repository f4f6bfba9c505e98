"""A pool of freed blocks of device memory, reused by the next call, which needs the same sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from weft.support.errors import DeviceError

GRAIN: Final = 256
"""Blocks are a multiple of so many bytes."""


class BlockPool:
    """Gives out blocks, handles of a device's own, made by *make* of a size in bytes and ended by *release*.

    A device that runs commands in order may give a block again at once. It is used by one thread at a time.
    """

    def __init__(self, make: Callable[[int], int], release: Callable[[int], None]) -> None:
        self._make = make
        self._release = release
        self._free: dict[int, list[int]] = {}
        self._sizes: dict[int, int] = {}

    def take(self, nbytes: int) -> int:
        """Returns a block of at least so many bytes; raises `DeviceError` where there is no memory left."""
        size = max(GRAIN, -(-nbytes // GRAIN) * GRAIN)
        if kept := self._free.get(size):
            return kept.pop()
        try:
            block = self._make(size)
        except DeviceError:  # the kept blocks may be in the way
            self._release_kept()
            block = self._make(size)
        self._sizes[block] = size
        return block

    def give(self, block: int) -> None:
        """Keeps a block for the next time."""
        self._free.setdefault(self._sizes[block], []).append(block)

    def size(self, block: int) -> int:
        """Returns the bytes of a block."""
        return self._sizes[block]

    def clear(self) -> None:
        """Ends all blocks."""
        for block in self._sizes:
            self._release(block)
        self._sizes.clear()
        self._free.clear()

    def _release_kept(self) -> None:
        for block in self._kept():
            del self._sizes[block]
            self._release(block)
        self._free.clear()

    def _kept(self) -> Iterator[int]:
        for blocks in self._free.values():
            yield from blocks
