"""Multiplies all rows of a tensor by a matrix at once, whatever axes they are numbered by.

    y = gelu(matmul(x, W) + b)      for x: [1, 7, 7, 3072]      becomes

    y = reshape(gelu(matmul(reshape(x, (49, 3072)), W) + b), (1, 7, 7, 768))

A panel of the matrix is read once for all rows that a product has: 49, not 7 times 7. Element-wise consumers are computed on the
merged rows as well, so that they still fuse into the product's epilogue; the reshapes cost nothing. Symbolic numbers of rows are
merged too: [batch, seq, 256] has batch * seq rows, and one last tile that is not whole rather than one for each of the batch.
"""

from __future__ import annotations

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.rewriting.merged_axes import MergedAxes, Shape
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE, ZERO
from weft.ops import product


def flatten_matmul_rows(graph: Graph) -> Graph:
    """Returns *graph* with a single axis of rows in products of tensors and matrices, and in the maps that follow."""
    return rewrite_graph(graph, _Rows().rewrite)


class _Rows(MergedAxes):
    """Products and maps with a single axis of rows."""

    def computed(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns a product of all rows at once."""
        if not _has_rows(node):
            return None
        rows, matrix = inputs
        assert rows is not None  # a product has two operands
        merged = self.merged(new, rows, (product(rows.shape[:-1]), rows.shape[-1]))
        return new.add(node.op, [merged, matrix], source=node.source, **node.keywords)

    def merged_shape(self, shape: Shape, whole: Shape) -> Shape | None:
        """Returns the shape of rows, or of a vector or scalar that all rows share."""
        if shape == whole:
            return product(shape[:-1]), shape[-1]
        return shape[-1:] if all(s is ONE for s in shape[:-1]) else None


def _has_rows(node: Node) -> bool:
    """Tells whether *node* multiplies a tensor, whose rows lie along several axes longer than one, by one matrix."""
    if node.op != "matmul":
        return False
    rows, matrix = node.inputs[:2]
    if rows is None or matrix is None or matrix.rank != 2 or ZERO in rows.shape:
        return False
    return len([n for n in rows.shape[:-1] if n is not ONE]) > 1
