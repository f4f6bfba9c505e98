"""Channels moved to spatial positions and back: sub-pixel convolution's pixel shuffle (Shi et al., 2016), both channel orders."""

from __future__ import annotations

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand


def depth_to_space(b: Builder, x: Operand, block: int, *, outer: bool) -> Operand:
    """Moves channels of images [N, C, H, W] to blocks of pixels; the *outer* or inner part of their index gives the pixel."""
    n, depth, h, w = x.shape
    inner = depth // (block * block)
    if outer:
        y = b.transpose(b.reshape(x, [n, block, block, inner, h, w]), [0, 3, 4, 1, 5, 2])
    else:
        y = b.transpose(b.reshape(x, [n, inner, block, block, h, w]), [0, 1, 4, 2, 5, 3])
    return b.reshape(y, [n, inner, h * block, w * block])


def space_to_depth(b: Builder, x: Operand, block: int, *, outer: bool) -> Operand:
    """Moves blocks of pixels of images [N, C, H, W] to the *outer* or else the inner part of the channel index."""
    n, depth, h, w = x.shape
    order = [0, 3, 5, 1, 2, 4] if outer else [0, 1, 3, 5, 2, 4]
    y = b.transpose(b.reshape(x, [n, depth, h // block, block, w // block, block]), order)
    return b.reshape(y, [n, depth * (block * block), h // block, w // block])
