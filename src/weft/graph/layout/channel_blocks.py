"""What may be computed on channels in blocks: values [N, C/b, H, W, b], *b* channels of one place side by side."""

from __future__ import annotations

from weft.graph.core.graph import Constant, Node
from weft.graph.fusion.node_facts import keeps_finite


def fills_up(node: Node) -> bool:
    """Tells whether *node* may be applied to the channels that fill up the last block.

    These hold finite numbers, which the zero weights of the next convolution cancel; an infinity or NaN they would not.
    """
    return keeps_finite(node)


def is_pointwise(node: Node) -> bool:
    """Tells whether *node* is a convolution that is a product at each place, of matrices or of elements."""
    x, w = (*node.inputs, None, None)[:2]
    if node.op != "conv2d" or x is None or not isinstance(w, Constant) or x.rank != 4 or any(node.attribute("pads")):
        return False
    return w.extents[2:] == (1, 1)
