"""The sizes of channel blocks, and what may be computed on them.

A blocked value is [N, C/b, H, W, b]: *b* channels of one place side by side, which fill a vector.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from weft.graph.graph import Constant, Node

SMALLEST_GROUP_BLOCK = 4
"""Channels; grouped convolutions with fewer in common blocks are left as they are."""

LEAST_FILLED = 1 / 2
"""The part of a group's padded block that must be channels; with fewer the plain layout is faster (measured: 6 of 16)."""

MOST_APART = 64
"""Channels that may be read each from a plane of its own: as many pages as the first level of address translation holds."""

MOST_FILLED_UP = 1.05
"""How many times as much may be computed in blocks that are filled up with zeros."""

FINITE_AT_ZERO = frozenset(
    {
        "abs", "add", "avg_pool2d", "cast", "clip", "elu", "erf", "gelu", "hard_sigmoid", "identity", "leaky_relu", "max_pool2d",
        "maximum", "minimum", "mul", "neg", "prelu", "reduce_max", "reduce_mean", "reduce_sum", "relu", "scale_and_shift", "selu",
        "sigmoid", "softplus", "softsign", "sqrt", "square", "sub", "tanh",
    }
)  # fmt: skip
"""Operators that keep finite numbers finite. The channels that fill up the last block hold finite numbers, which the zero
weights of the next convolution cancel; an infinity or NaN they would not."""


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

    What is read is taken one element at a time, so that any block will do that divides it: of channels that fill no whole
    vectors each stays alone. What is computed fills vectors: a common block that does so less than blocks of a group's own, of
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


def is_pointwise(node: Node) -> bool:
    """Tells whether *node* is a convolution that is a product at each place, of matrices or of elements."""
    x, w = (*node.inputs, None, None)[:2]
    if node.op != "conv2d" or x is None or not isinstance(w, Constant) or x.rank != 4 or any(node.attribute("pads")):
        return False
    return w.extents[2:] == (1, 1)
