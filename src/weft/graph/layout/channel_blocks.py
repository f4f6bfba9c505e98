"""Which nodes may compute in the blocked layout NCHWc: values [N, C/b, H, W, b], *b* channels of one pixel side by side."""

from __future__ import annotations

from weft.graph.core.graph import Constant, Node
from weft.graph.fusion.node_facts import keeps_finite


def fills_up(node: Node) -> bool:
    """Tells whether *node* may be applied to the padding channels of the last block.

    Padding channels may hold any finite numbers, since the next convolution's weights for them are zero; zero times an infinity
    or NaN would be NaN.
    """
    return keeps_finite(node)


def is_pointwise(node: Node) -> bool:
    """Tells whether *node* is a pointwise (1x1) convolution: at each pixel a product of matrices or, depthwise, of elements."""
    x, w = (*node.inputs, None, None)[:2]
    if node.op != "conv2d" or x is None or not isinstance(w, Constant) or x.rank != 4 or any(node.attribute("pads")):
        return False
    return w.extents[2:] == (1, 1)
