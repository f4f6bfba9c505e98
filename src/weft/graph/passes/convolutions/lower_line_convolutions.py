"""Makes convolutions of lines those of images of one row, and with them the maps and pools between such convolutions.

    y = relu(conv2d(x, w))     becomes     v = relu(conv2d(reshape(x), w')); y = reshape(v)
    x as [N, C, L]                         v as [N, C', 1, L'], w' as [C', C, 1, K]

For images there are layouts in channel blocks, Winograd's method and products; lines by themselves have none of them. Reshapes
are views.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.fusion.node_facts import is_plain_map
from weft.graph.rewriting.reshape_weight import reshape_weight
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE

_ALONG_ONE_ROW: Final = {"strides": 1, "dilations": 1, "kernel": 1, "output_padding": 0}
"""The attributes of windows that have a number for each dimension, and those of the dimension that is one row."""


def lower_line_convolutions(graph: Graph) -> Graph:
    """Returns *graph* with convolutions of images for those of lines, and for the maps and pools that read them."""
    return rewrite_graph(graph, _Lines().rewrite)


class _Lines:
    """The twin of each line of the new graph that has one: an image of one row."""

    def __init__(self) -> None:
        self.images: dict[Value, Value] = {}

    def rewrite(self, new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        """Returns the line that stands for the output of *node*, as a view of its twin; None where it stays a line."""
        if len(node.outputs) != 1 or node.output.rank != len("NCL") or not inputs or inputs[0] is None:
            return None
        if node.operator.is_convolution and inputs[1] is not None:
            operands = [self._image(new, inputs[0]), _with_one_row(new, inputs[1]), *inputs[2:]]
        elif not any(v in self.images for v in inputs):
            return None
        elif node.operator.per_channel:
            operands = [self._image(new, inputs[0]), *inputs[1:]]
        elif is_plain_map(node):
            operands = [None if v is None else self._image(new, v) for v in inputs]
        else:
            return None
        image = new.add(node.op, operands, source=node.source, **_of_one_row(node))
        line = new.add("reshape", [image], shape=node.output.shape, source=node.source, name=node.output.name)
        self.images[line] = image
        return [line]

    def _image(self, new: Graph, v: Value) -> Value:
        """Returns the twin of a line, or of a value that broadcasts to lines."""
        if v.rank < len("CL"):
            return v
        if v not in self.images:
            self.images[v] = _with_one_row(new, v)
        return self.images[v]


def _with_one_row(new: Graph, v: Value) -> Value:
    shape = (*v.shape[:-1], ONE, v.shape[-1])
    if isinstance(v, Constant):
        return reshape_weight(new, v, shape, v.name)
    return new.add("reshape", [v], shape=shape)


def _of_one_row(node: Node) -> dict[str, Any]:
    """Returns the attributes of *node*, a function of lines, as one of images of one row."""
    found = dict(node.keywords)
    found.update({k: (first, *found[k]) for k, first in _ALONG_ONE_ROW.items() if found.get(k) is not None})
    if "pads" in found:
        before, after = found["pads"]
        found["pads"] = (0, before, 0, after)
    return found
