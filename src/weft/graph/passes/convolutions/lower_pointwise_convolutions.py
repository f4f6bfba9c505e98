"""Makes matrix products of those 1x1 convolutions that are not computed in channel blocks.

    y = conv2d(x, w, b)     becomes     y = reshape(add(matmul(reshape(w), reshape(x)), reshape(b)))

with x as [N, C, places] and w as [OC, C], or one product for each group. The input of a strided convolution is sliced to the
positions that it reads. A convolution with few others near it thus needs no packing. One that reads a single channel in each
group is an element-wise product.
"""

from __future__ import annotations

from math import prod

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.layout.channel_blocks import is_pointwise
from weft.graph.rewriting.reshape_weight import reshape_weight
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE, as_expr


def lower_pointwise_convolutions(graph: Graph) -> Graph:
    """Returns *graph* with products for the 1x1 convolutions that are left in it."""
    return rewrite_graph(graph, lambda new, node, inputs: [_product(new, node, inputs)] if is_pointwise(node) else None)


def _product(new: Graph, node: Node, inputs: Inputs) -> Value:
    """Returns the convolution as a product: weights times places, or, for a single place, images times weights."""
    x, w, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
    assert x is not None  # a convolution reads something
    assert w is not None  # is_pointwise asks for it
    if set(node.attribute("strides")) != {1}:
        ends, steps = x.shape[2:], node.attribute("strides")
        axes = tuple(range(2, x.rank))
        x = new.add("slice", [x], starts=(0,) * len(axes), ends=ends, axes=axes, steps=steps, source=node.source)
    n, channels, *sizes = x.shape
    count = prod(sizes[1:], start=sizes[0])
    group = node.attribute("group")
    if group == 1 and all(s is ONE for s in sizes):
        rows = new.add("reshape", [x], shape=(n, channels))
        matrix = reshape_weight(new, w, w.shape[:2], f"{w.name}_matrix")
        y = new.add("gemm", [rows, matrix, bias], source=node.source, trans_b=True)
        return new.add("reshape", [y], shape=node.output.shape, source=node.source, name=node.output.name)
    groups = () if group == 1 else (as_expr(group),)
    made, read = w.shape[0] // as_expr(group), w.shape[1]
    matrix = reshape_weight(new, w, (*groups, made, read), f"{w.name}_matrix")
    places = new.add("reshape", [x], shape=(n, *groups, read, count))
    y = new.add("mul" if read is ONE else "matmul", [matrix, places], source=node.source)
    if bias is not None:
        column = new.add("reshape", [bias], shape=(*groups, made, 1), name=f"{bias.name}_column")
        y = new.add("add", [y, column], source=node.source)
    return new.add("reshape", [y], shape=node.output.shape, source=node.source, name=node.output.name)
