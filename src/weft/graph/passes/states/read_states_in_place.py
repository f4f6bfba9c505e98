"""Multiplies by the rows of a state as they lie in its memory: no copy is made of a cache for each call.

    k = slice(all, 0, n, axis=2)
    y = matmul(q, transpose(k, (0, 1, 3, 2)))     becomes     y = matmul_rows(q, all, rows=n, transposed=True)
    z = matmul(p, slice(v, 0, n, axis=2))         becomes     z = matmul_rows(p, v, rows=n)

The rows of a state lie apart by its capacity; a slice of them would be written anew, longer with each token.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.core.state_pairs import state_pairs
from weft.graph.passes.states.first_rows import first_rows_axis
from weft.graph.rewriting.call_patterns import untransposed
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph


def read_states_in_place(graph: Graph) -> Graph:
    """Returns *graph* with products on the memory of states that grow, in the place of products on their first rows."""
    taken = {p.taken for p in state_pairs(graph) if p.state.growth is not None}
    if not taken:
        return graph

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        right = inputs[1] if node.op == "matmul" else None
        if right is None or inputs[0] is None or inputs[0].rank != right.rank:
            return None
        rows, transposed = untransposed(right)
        cut = rows.producer
        if cut is None or first_rows_axis(cut) != rows.rank - 2 or not _is_memory(cut.inputs[0], taken):
            return None
        size = rows.shape[-2]
        made = new.add(
            "matmul_rows",
            [inputs[0], cut.inputs[0]],
            source=node.source,
            name=node.output.name,
            rows=size,
            transposed=transposed,
        )
        return [made]

    return rewrite_graph(graph, rule)


def _is_memory(v: Value | None, taken: Collection[Value]) -> bool:
    """Tells whether *v* is the memory of a state, with the rows of this call or before."""
    node = None if v is None else v.producer
    return v in taken or (node is not None and node.op == "append" and bool(node.attribute("in_place")))
