"""Computes the places of a 1 x 1 convolution in channel blocks along one axis, whatever rows they lie in.

    y = relu(conv2d_blocked(x, w) + b)      for x: [1, 64, 14, 14, 8] and w: [64, 64, 1, 1, 8, 8]      becomes

    y = reshape(relu(conv2d_blocked(reshape(x, (1, 64, 1, 196, 8)), w) + b), (1, 64, 14, 14, 8))

Such a convolution is a product whose rows are the places. Register tiles of six rows then leave one remainder of all 196, where
they left one of each 14: the tiles had five, five and four rows. Element-wise consumers are computed on the merged places as
well, so that they still fuse into the epilogue; the reshapes cost nothing. So are convolutions in parts, whose places fill the
rows of matrix registers better: 28 x 28 are 49 times 16.
"""

from __future__ import annotations

from typing import Final

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.rewriting.merged_axes import MergedAxes, Shape
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE
from weft.ops import product

_PLACES: Final = slice(2, -1)
"""The axes of places in values in channel blocks: [batch, channel blocks, *places, channels]."""

_PLACES_OF_PARTS: Final = slice(2, -2)
"""The axes of places in the parts of such values: [batch, channel blocks, *places, parts, channels]."""


def flatten_pointwise_places(graph: Graph) -> Graph:
    """Returns *graph* with a single axis of places in 1 x 1 convolutions, and in the maps that follow."""
    return rewrite_graph(graph, _Places().rewrite)


class _Places(MergedAxes):
    """Convolutions and maps with a single axis of places."""

    def computed(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns a 1 x 1 convolution of all places at once."""
        if not _is_pointwise(node):
            return None
        x, *others = inputs
        assert x is not None  # a convolution has an image
        merged = self.merged(new, x, _merged(x.shape, _places(node)))
        return new.add(node.op, [merged, *others], source=node.source, **node.keywords)

    def merged_shape(self, shape: Shape, whole: Shape) -> Shape | None:
        """Returns the shape of merged places, or of values that all places share."""
        aligned = (*[ONE] * (len(whole) - len(shape)), *shape)
        if aligned[_PLACES] == whole[_PLACES]:
            return _merged(aligned)
        return shape if _is_one_place(aligned) else None


def _merged(shape: Shape, axes: slice = _PLACES) -> Shape:
    places = shape[axes]
    return (*shape[: axes.start], *[ONE] * (len(places) - 1), product(places), *shape[axes.stop :])


def _places(node: Node) -> slice:
    """Returns the axes of places in the image of a convolution."""
    return _PLACES_OF_PARTS if node.op == "conv2d_in_parts" else _PLACES


def _is_one_place(shape: Shape) -> bool:
    return all(size is ONE for size in shape[_PLACES])


def _is_pointwise(node: Node) -> bool:
    """Tells whether *node* is a convolution of single places in several rows, without padding or strides."""
    if node.op not in ("conv2d_blocked", "conv2d_in_parts"):
        return False
    x, w = node.inputs[:2]
    if x is None or w is None or len([size for size in x.shape[_places(node)] if size is not ONE]) < 2:
        return False
    taps = w.shape[2 : 2 + len(x.shape[_places(node)])]
    return all(k is ONE for k in taps) and set(node.attribute("strides")) == {1} and not any(node.attribute("pads"))
