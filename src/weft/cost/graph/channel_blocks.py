"""The sizes of channel blocks: how many channels of one place stand side by side in [N, C/b, H, W, b], to fill a vector."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import Final

SMALLEST_GROUP_BLOCK: Final = 4
"""Channels; grouped convolutions with fewer in common blocks are left as they are."""

LEAST_FILLED: Final = 1 / 2
"""The part of a group's padded block that must be channels; with fewer the plain layout is faster (measured: 6 of 16)."""

MOST_APART: Final = 64
"""Channels that may be read each from a plane of its own: as many pages as the first level of address translation holds."""

MOST_FILLED_UP: Final = 1.05
"""How many times as much may be computed in blocks that are filled up with zeros."""


def output_block(channels: int, lanes: int) -> int:
    """Returns the block for *channels* that a convolution computes: a vector, or for fewer the next power of two."""
    return lanes if channels >= lanes else 1 << (channels - 1).bit_length()


def input_block(channels: int, lanes: int) -> int:
    """Returns the block for *channels* that a convolution only reads: where they don't fill their vectors, each stays alone.

    An image has three; a convolution takes their elements one at a time in any layout, so that packing them buys nothing but
    neighbours on one page. The zeros that fill up a block cost as much as channels do.
    """
    padded = -(-channels // lanes) * lanes
    return 1 if channels < lanes or (channels <= MOST_APART and padded > MOST_FILLED_UP * channels) else lanes


def group_block(per_group: Iterable[int], lanes: int) -> int | None:
    """Returns the block that divides the channels of each group; None where it would be too small to help."""
    block = gcd(lanes, *per_group)
    return block if block >= SMALLEST_GROUP_BLOCK else None


def group_blocks(read: int, made: int, lanes: int, *, rows: bool = True) -> tuple[int, int] | None:
    """Returns the blocks of the channels that each group reads and computes; None where no blocks help.

    Input channels are read one element at a time, so any block that divides them will do; if they fill no whole vectors, each
    is a block of its own. Output channels fill vectors: a common block that fills them less than blocks of a group's own, of
    which the last is padded, is not taken. Without *rows* to be read in vectors, the plain layout is no choice;
    with them it is the better one for groups that read one channel.
    """
    if rows and read == 1:
        return None
    shared = group_block((read, made), lanes)
    apart = lanes if read % lanes == 0 else 1 if read <= MOST_APART else read
    if made % lanes == 0:
        return apart, lanes
    padded = -(-made // lanes) * lanes if made > lanes else max(SMALLEST_GROUP_BLOCK, output_block(made, lanes))
    filled = made / max(padded, lanes)
    if filled >= (LEAST_FILLED if rows else 0) and filled > (shared or 0) / lanes:
        return apart, min(padded, lanes)
    return None if shared is None else (shared, shared)
