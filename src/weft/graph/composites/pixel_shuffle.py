"""Channels moved to places and back: sub-pixel convolution's shuffle (Shi et al., 2016), in either order of a channel's parts."""

from __future__ import annotations

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand


def depth_to_space(b: Builder, x: Operand, block: int, *, outer: bool) -> Operand:
    """Moves blocks of channels of images [N, C, H, W] to places; a channel's *outer* or else inner part says where in a block."""
    n, depth, h, w = x.shape
    inner = depth // (block * block)
    if outer:
        y = b.transpose(b.reshape(x, [n, block, block, inner, h, w]), [0, 3, 4, 1, 5, 2])
    else:
        y = b.transpose(b.reshape(x, [n, inner, block, block, h, w]), [0, 1, 4, 2, 5, 3])
    return b.reshape(y, [n, inner, h * block, w * block])


def space_to_depth(b: Builder, x: Operand, block: int, *, outer: bool) -> Operand:
    """Moves blocks of places of images [N, C, H, W] to the *outer* or else the inner part of the channels."""
    n, depth, h, w = x.shape
    order = [0, 3, 5, 1, 2, 4] if outer else [0, 1, 3, 5, 2, 4]
    y = b.transpose(b.reshape(x, [n, depth, h // block, block, w // block, block]), order)
    return b.reshape(y, [n, depth * (block * block), h // block, w // block])
