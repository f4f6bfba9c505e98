"""Sorted string tables, as LevelDB writes them: keys in order, each with its value, in blocks that an index lists.

The format is that of LevelDB's table_format.md: a footer of 48 bytes has the place of the index, whose values are places of
blocks; in a block each key shares a number of bytes with the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weft.frontends.wire_format import Malformed, varint

MAGIC: Final = 0xDB4775248B80FB57
FOOTER: Final = 48
_TRAILER: Final = 5
_LONGEST_KEY: Final = 1 << 16


def table_entries(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Yields the keys and values of a table; raises `Malformed` where it is none, or its blocks are compressed."""
    if len(data) < FOOTER or int.from_bytes(data[-8:], "little") != MAGIC:
        raise Malformed
    footer = data[-FOOTER:]
    _, at = _place(footer, 0)
    index, _ = _place(footer, at)
    left = len(data)
    for _, handle in _entries(_block(data, index)):
        place, _ = _place(handle, 0)
        left -= place[1]
        if left < 0:  # several handles of one block
            raise Malformed
        yield from _entries(_block(data, place))


def _place(data: memoryview, at: int) -> tuple[tuple[int, int], int]:
    """Returns the offset and the size of a block, and where these end."""
    offset, at = varint(data, at, len(data))
    size, at = varint(data, at, len(data))
    return (offset, size), at


def _block(data: memoryview, place: tuple[int, int]) -> memoryview:
    """Returns the entries of a block, without the places at which keys are whole."""
    offset, size = place
    if size < 4 or offset + size + _TRAILER > len(data) or data[offset + size] != 0:
        raise Malformed
    block = data[offset : offset + size]
    restarts = int.from_bytes(block[-4:], "little")
    end = size - 4 - 4 * restarts
    if end < 0:
        raise Malformed
    return block[:end]


def _entries(block: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    key, at = b"", 0
    while at < len(block):
        shared, at = varint(block, at, len(block))
        own, at = varint(block, at, len(block))
        size, at = varint(block, at, len(block))
        if shared > len(key) or at + own + size > len(block) or shared + own > _LONGEST_KEY:
            raise Malformed
        key = key[:shared] + bytes(block[at : at + own])
        yield key, block[at + own : at + own + size]
        at += own + size
