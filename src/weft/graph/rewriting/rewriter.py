"""The engine of the graph passes: copies a graph node by node, letting a rule replace some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.core.symbols import sizes_of, variables_of

Inputs: TypeAlias = tuple[Value | None, ...]
Rule: TypeAlias = Callable[[Graph, Node, Inputs], Sequence[Value] | None]
"""Takes the graph being made, a node of the old graph, and that node's inputs in the new one. Returns the values that stand
for the node's outputs (from nodes it adds, or existing ones), or None to keep the node."""


def rewrite_graph(graph: Graph, rule: Rule) -> Graph:
    """Returns *graph* with *rule* applied to each node in order, and without the nodes that nothing needs any more.

    Returns *graph* itself where no rule applied and all nodes are needed.
    """
    new = graph.empty_copy()
    stands_for: dict[Value, Value] = {}
    for node in graph.nodes:
        inputs = tuple([None if v is None else stands_for.get(v, v) for v in node.inputs])
        made = rule(new, node, inputs)
        if made is None:
            made = new.append(_kept(node, inputs)).outputs
        stands_for.update((a, b) for a, b in zip(node.outputs, made, strict=True) if a is not b)
    for v, name in zip(graph.outputs, graph.output_names, strict=True):
        new.output(stands_for.get(v, v), name)
    new.guards[:0] = [g.mapped(stands_for) for g in graph.guards]
    new.late_sizes[:0] = [late.mapped(stands_for) for late in graph.late_sizes]
    drop_dead(new)
    same = len(new.nodes) == len(graph.nodes) and all(a is b for a, b in zip(new.nodes, graph.nodes, strict=True))
    return graph if same and new.roots == graph.roots else new


def _kept(node: Node, inputs: Inputs) -> Node:
    unchanged = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
    return node if unchanged else node.with_inputs(inputs)


def drop_dead(graph: Graph) -> None:
    """Removes, in place, the nodes that no output, no guard and no size in use depends on."""
    if graph.late_sizes:
        _drop_unused_sizes(graph)
    needed = {v.producer for v in graph.roots}
    for node in reversed(graph.nodes):
        if node in needed:
            needed.update(v.producer for v in node.inputs if v is not None)
    graph.nodes = [n for n in graph.nodes if n in needed]


def _drop_unused_sizes(graph: Graph) -> None:
    """Removes, in place, the late sizes that nothing needed uses; the values that others are read from are needed in turn."""
    late = {found.size: found for found in graph.late_sizes}
    used = variables_of([e for r in graph.requirements for e in (r.condition, *r.values)]) & late.keys()
    values = [*graph.outputs, *[v for g in graph.guards for v in (g.least, g.greatest)], *[late[v].value for v in used]]
    needed: set[Node] = set()
    while values:
        v = values.pop()
        found = variables_of(v.shape)
        if v.producer is not None and v.producer not in needed:
            needed.add(v.producer)
            values += [x for x in v.producer.inputs if x is not None]
            found |= sizes_of(v.producer)
        fresh = (found & late.keys()) - used
        used |= fresh
        values += [late[size].value for size in fresh]
    graph.late_sizes = [found for found in graph.late_sizes if found.size in used]
