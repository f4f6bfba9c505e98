"""Immediate post-dominators of the nodes of a graph: the node at which all the uses of a node's outputs join again.

The graph is acyclic, so one walk from the last node to the first is enough (Cooper, Harvey, Kennedy, "A simple, fast dominance
algorithm", 2001): a node's post-dominator is the lowest common ancestor of its users in the tree built so far.
"""

from __future__ import annotations

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value


def post_dominators(graph: Graph, users: dict[Value, list[Node]]) -> dict[Node, Node | None]:
    """Returns the first node that is on every path from a node to the outputs, for each node; None if there is no such node."""
    escaping = {v.producer for v in graph.roots}
    above: dict[Node, Node | None] = {}
    depth: dict[Node | None, int] = {None: 0}
    for node in reversed(graph.nodes):
        followers = list(dict.fromkeys(u for v in node.outputs for u in users.get(v, ())))
        met: Node | None = followers[0] if followers and node not in escaping else None
        for u in followers[1:]:
            met = _meet(met, u, above, depth)
        above[node] = met
        depth[node] = depth[met] + 1
    return above


def _meet(a: Node | None, b: Node | None, above: dict[Node, Node | None], depth: dict[Node | None, int]) -> Node | None:
    """Returns the lowest common ancestor of two nodes."""
    while a is not b:
        if depth[a] < depth[b]:
            a, b = b, a
        a = above[a] if a is not None else None
    return a


def between(start: Node, end: Node, users: dict[Value, list[Node]]) -> list[Node]:
    """Returns the nodes on the paths from *start* to its post-dominator *end*, with *end* and without *start*."""
    seen = {end}
    stack = [u for v in start.outputs for u in users.get(v, ())]
    while stack:
        n = stack.pop()
        if n not in seen:
            seen.add(n)
            stack += [u for v in n.outputs for u in users.get(v, ())]
    return list(seen)
