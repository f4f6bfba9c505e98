"""Writes the updates of a state of one shape where it is: of a cache for a fixed number of tokens, the new rows alone.

    state past becomes scatter_nd(past, at, rows)        becomes     scatter_nd(past, at, rows, in_place=True)

    scatter_nd(scatter_nd(past, i, a), j, b)             becomes     the same with in_place=True, one after the other

    x = transpose(past, (2, 0, 1, 3))                    becomes     y = scatter_nd(past, at, rows, axes=(2,), in_place=True)
    y = transpose(scatter_nd(x, at, rows), (1, 2, 0, 3))

Exporters write static caches so: rows are put at positions that are data. Without this, a call copies all of the cache to a
second buffer and puts the rows there. A state that the call reads in another place too keeps its second buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.core.state_pairs import state_pairs
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import Const


@dataclass(frozen=True)
class _Update:
    """An update by *scatter* of its own operand; or, with *order*, of the *state* that it takes transposed by that order."""

    scatter: Node
    state: Value | None = None
    order: tuple[int, ...] | None = None


def write_states_in_place(graph: Graph) -> Graph:
    """Returns *graph* with updates of states in their own memory, where no other node reads the state as it was."""
    readers = graph.users()
    found: dict[Node, _Update] = {}
    for p in state_pairs(graph):
        if p.state.growth is not None or p.taken in graph.outputs or graph.outputs.count(p.left) > 1:
            continue
        updates = _updates(p.left, p.taken)
        before = [p.taken, *[u.scatter.inputs[0] for u in updates]]  # the state as it was
        if all(v is not None and len(readers[v]) == 1 and v not in graph.outputs for v in before):
            found |= {u.scatter: u for u in updates}
    turned: dict[Value, tuple[Value, tuple[int, ...]]] = {}  # the transposes of states, with their orders

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        source, name = node.source, node.output.name
        x = inputs[0] if node.op == "transpose" else None
        if x is not None and x in turned:
            made, order = turned[x]
            perm = tuple([order[d] for d in node.attribute("perm")])
            same = perm == tuple(range(made.rank))
            return [made if same else new.add("transpose", [made], source=source, name=name, perm=perm)]
        if node not in found:
            return None
        update = found[node]
        axes = {} if update.order is None else {"axes": update.order[: _depth(node)]}
        attributes = {**dict(node.attributes), "in_place": True, **axes}
        made = new.add(node.op, [update.state or inputs[0], *inputs[1:]], source=source, name=name, **attributes)
        if update.order is None:
            return [made]
        transposed = new.add("transpose", [made], source=source, name=f"{name}_turned", perm=update.order)
        turned[transposed] = (made, update.order)
        return [transposed]

    return rewrite_graph(graph, rule) if found else graph


def _updates(left: Value, taken: Value) -> list[_Update]:
    """Returns the updates of *taken*, the last first, that *left* is the result of, if it is that of nothing else."""
    made: list[_Update] = []
    while left is not taken:
        node = left.producer
        if node is None or not node.operator.updates_in_place or node.inputs[0] is None:
            turned = None if node is None or made else _turned_update(node, taken)
            return [] if turned is None else [turned]
        made.append(_Update(node))
        left = node.inputs[0]
    return made


def _turned_update(node: Node, taken: Value) -> _Update | None:
    """Returns the update that *node* is the end of, if it is one between two transpositions."""
    scatter = _operand(node, "transpose")
    if scatter is None or scatter.op != "scatter_nd" or scatter.attribute("axes") is not None:
        return None
    into = _operand(scatter)
    if into is None or into.op != "transpose" or into.inputs[0] is not taken:
        return None
    order, back = into.attribute("perm"), node.attribute("perm")
    rest = order[_depth(scatter) :]
    is_inverse = [order[d] for d in back] == list(range(taken.rank))
    return _Update(scatter, taken, tuple(order)) if is_inverse and list(rest) == sorted(rest) else None


def _depth(scatter: Node) -> int:
    """Returns how many indices a tuple of a `scatter_nd` has."""
    at = scatter.inputs[1]
    size = None if at is None else at.shape[-1]
    return int(size.value) if isinstance(size, Const) else 0


def _operand(node: Node, op: str = "") -> Node | None:
    """Returns the node that makes the first input of *node*; None where *node* is no *op*."""
    first = node.inputs[0] if node.op == op or not op else None
    return None if first is None else first.producer
