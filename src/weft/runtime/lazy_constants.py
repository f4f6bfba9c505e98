"""The packed weights of a model: in memory, or computed while they are written, one constant at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from mmap import MADV_DONTNEED, PAGESIZE, mmap
from typing import IO, TypeAlias

from weft.native import _rt

Done: TypeAlias = Callable[[int], object]
"""Called with the bytes, counted from the beginning, that are written and will not change."""


@dataclass(frozen=True, eq=False)
class LazyConstants:
    """The packed weights of a model as a function that writes them, from the first byte to the last.

    *write* fills a buffer of `nbytes`, and tells from time to time how far it is. It may be called more than once.
    """

    nbytes: int
    write: Callable[[memoryview, Done], None]


Constants: TypeAlias = "_rt.Block | _rt.Buffer | Iterable[tuple[int, _rt.Buffer]] | LazyConstants"
"""The packed weights: one block, one buffer, parts by 64-byte aligned offset, or a function that computes them."""


def in_memory(constants: Constants) -> _rt.Block:
    """Returns constants as one block: those that are lazy are computed, others are adopted or copied together."""
    if not isinstance(constants, LazyConstants):
        return _rt.pack(constants)
    block = _rt.Block(constants.nbytes)
    constants.write(memoryview(block), lambda end: None)
    return block


def write_mapped(constants: LazyConstants, file: IO[bytes], begin: int) -> int:
    """Writes constants to a new file, from its byte *begin* on, a multiple of 4096; returns their checksum.

    They are computed straight into a map of the file. Written pages are released, so that memory holds one constant at a time;
    the system writes it to the disk when it needs the room. The disk's room is taken beforehand: a map can't report that there
    is none. Raises `OSError` then.
    """
    os.posix_fallocate(file.fileno(), 0, begin + constants.nbytes)
    written = _Written(mmap(file.fileno(), begin + constants.nbytes), begin, constants.nbytes)
    constants.write(written.room(0, constants.nbytes), written.advance)
    written.advance(constants.nbytes)
    return written.checksum


class _Written:
    """How much of the constants in a mapped file is done: its checksum, in whole pieces; its pages are let go of."""

    def __init__(self, file: mmap, begin: int, nbytes: int) -> None:
        self.file = file
        self.begin = begin
        self.nbytes = nbytes
        self.end = 0
        self.checksum = nbytes

    def room(self, begin: int, end: int) -> memoryview:
        """Returns a part of the constants."""
        return memoryview(self.file)[self.begin + begin : self.begin + end]

    def advance(self, end: int) -> None:
        """Takes note that the constants are written up to *end*."""
        whole = end if end == self.nbytes else end - end % _rt.PIECE
        if whole <= self.end:
            return
        self.checksum = _rt.checksum(self.room(self.end, whole), self.checksum)
        first = (self.begin + self.end) // PAGESIZE * PAGESIZE
        self.file.madvise(MADV_DONTNEED, first, self.begin + whole - first)
        self.end = whole
