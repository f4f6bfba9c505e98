"""Multiplies all rows of a tensor by a matrix at once, whatever axes they are numbered by.

    y = gelu(matmul(x, W) + b)      for x: [1, 7, 7, 3072]      becomes

    y = reshape(gelu(matmul(reshape(x, (49, 3072)), W) + b), (1, 7, 7, 768))

A panel of the matrix is read once for all rows that a product has: 49, not 7 times 7. Element-wise consumers are computed on the
merged rows as well, so that they still fuse into the product's epilogue; the reshapes cost nothing. Symbolic numbers of rows are
merged too: [batch, seq, 256] has batch * seq rows, and one last tile that is not whole rather than one for each of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.fusion.node_facts import is_plain_map
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE, ZERO
from weft.ops import product


def flatten_matmul_rows(graph: Graph) -> Graph:
    """Returns *graph* with a single axis of rows in products of tensors and matrices, and in the maps that follow."""
    return rewrite_graph(graph, _Rows().rewrite)


class _Rows:
    """The values that were computed with one axis of rows, by the values that stand for them."""

    def __init__(self) -> None:
        self.twins: dict[Value, Value] = {}

    def rewrite(self, new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        """Returns the value of *node* computed on rows, in its own shape; None where nothing is to be merged."""
        if len(node.outputs) != 1:
            return None
        if _has_rows(node):
            rows, matrix = inputs
            assert rows is not None  # a product has two operands
            operands: list[Value | None] | None = [self._merged(new, rows), matrix]
        else:
            operands = self._of_a_map(new, node, inputs)
        if operands is None:
            return None
        twin = new.add(node.op, operands, source=node.source, **node.keywords)
        made = new.add("reshape", [twin], shape=node.output.shape, name=node.output.name)
        self.twins[made] = twin
        return [made]

    def _of_a_map(self, new: Graph, node: Node, inputs: Inputs) -> list[Value | None] | None:
        """Returns the operands of a map on rows; None if no operand is there in rows, or one can't be read by them."""
        present = [v for v in inputs if v is not None]
        if not any(v in self.twins and v.shape == node.output.shape for v in present) or not is_plain_map(node):
            return None
        if not all(v.shape == node.output.shape or all(s is ONE for s in v.shape[:-1]) for v in present):
            return None
        return [None if v is None else self._operand(new, v, node) for v in inputs]

    def _operand(self, new: Graph, v: Value, node: Node) -> Value:
        """Returns an operand of a map: with its rows merged, or as a vector or scalar that all rows share."""
        if v.shape == node.output.shape:
            return self._merged(new, v)
        return v if v.rank < 2 else new.add("reshape", [v], shape=v.shape[-1:])

    def _merged(self, new: Graph, v: Value) -> Value:
        if v not in self.twins:
            self.twins[v] = new.add("reshape", [v], shape=(product(v.shape[:-1]), v.shape[-1]))
        return self.twins[v]


def _has_rows(node: Node) -> bool:
    """Tells whether *node* multiplies a tensor, whose rows lie along several axes longer than one, by one matrix."""
    if node.op != "matmul":
        return False
    rows, matrix = node.inputs[:2]
    if rows is None or matrix is None or matrix.rank != 2 or ZERO in rows.shape:
        return False
    return len([n for n in rows.shape[:-1] if n is not ONE]) > 1
