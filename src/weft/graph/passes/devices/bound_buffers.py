"""Splits calls with many tensors on machines that limit the number of buffers of a kernel.

    y = concat(x0, ..., x39)          becomes     y = concat(concat(x0, ..., x28), concat(x29, ..., x39))
    y0, ..., y39 = split(x)           becomes     y0 = slice(x, ...), ..., y39 = slice(x, ...)

Elements of a concatenation are copied once more: the price of that limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ZERO, Expr


def bound_buffers(graph: Graph, most_buffers: int | None) -> Graph:
    """Returns *graph* with concatenations and splits that take at most so many buffers each."""
    if most_buffers is None:
        return graph
    most = most_buffers - 1

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        if node.op == "concat" and len(set(inputs)) > most:
            return [_joined(new, node, [v for v in inputs if v is not None], most)]
        if node.op == "split" and len(node.outputs) > most:
            return _slices(new, node, inputs)
        return None

    return rewrite_graph(graph, rule)


def _joined(new: Graph, node: Node, parts: list[Value], most: int) -> Value:
    """Returns the tensors one after another, at most so many at once."""
    axis = node.attribute("axis")
    while len(parts) > most:
        pieces = [parts[k : k + most] for k in range(0, len(parts), most)]
        parts = [new.add("concat", p, axis=axis, source=node.source) if len(p) > 1 else p[0] for p in pieces]
    return new.add("concat", parts, axis=axis, source=node.source, name=node.output.name)


def _slices(new: Graph, node: Node, inputs: Inputs) -> list[Value]:
    """Returns the pieces of a tensor, each by itself."""
    axis = node.attribute("axis")
    made: list[Value] = []
    begin: Expr = ZERO
    for v in node.outputs:
        end = begin + v.shape[axis]
        given = {"starts": (begin,), "ends": (end,), "axes": (axis,), "steps": (1,)}
        made.append(new.add("slice", inputs, source=node.source, name=v.name, **given))
        begin = end
    return made
