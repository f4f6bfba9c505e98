"""Which slices take the first elements along one dimension."""

from __future__ import annotations

from weft.graph.core.graph import Node
from weft.ir import ZERO


def first_rows_axis(node: Node) -> int | None:
    """Returns the dimension along which *node* takes the first elements of its operand, one after another; else None."""
    if node.op != "slice" or len(node.attribute("starts")) != 1:
        return None
    axes = node.attribute("axes") or (0,)
    starts, steps = node.attribute("starts")[0], node.attribute("steps") or (1,)
    begins = starts is ZERO or starts == 0
    return int(axes[0]) % node.output.rank if begins and steps == (1,) else None
