"""Which nodes may compute in the blocked layout NCHWc: values [N, C/b, *S, b], *b* channels of one place side by side."""

from __future__ import annotations

from typing import Final

from weft.graph.core.graph import Node
from weft.graph.core.graph_values import Value
from weft.graph.fusion.node_facts import keeps_finite

IN_BLOCKS: Final = "_blocked"
"""The end of the names of values in blocks."""

_RANKS: Final = (len("NCHW"), len("NCDHW"))
"""The ranks of images and of volumes."""


def has_places(v: Value) -> bool:
    """Tells whether *v* may be in blocks: an image [N, C, H, W], or a volume."""
    return v.rank in _RANKS


def name_in_blocks(plain: Value) -> str:
    """Returns the name of *plain* in blocks, so that later questions about it are called the same whatever the rest's layouts."""
    return f"{plain.name}{IN_BLOCKS}"


def name_without_blocks(name: str) -> str:
    """Returns the name of a value in the plain layout, given that in either."""
    return name.removesuffix(IN_BLOCKS)


def fills_up(node: Node) -> bool:
    """Tells whether *node* may be applied to the padding channels of the last block.

    Padding channels may hold any finite numbers, since the next convolution's weights for them are zero; zero times an infinity
    or NaN would be NaN.
    """
    return keeps_finite(node)


def is_pointwise(node: Node) -> bool:
    """Tells whether *node* is a pointwise (1x1) convolution: at each place a product of matrices or, depthwise, of elements."""
    x, w = (*node.inputs, None, None)[:2]
    if node.op != "conv2d" or x is None or w is None or not has_places(x) or any(node.attribute("pads")):
        return False
    return w.static_shape is not None and set(w.static_shape[2:]) == {1}
