"""Lets a loop append to its growing states where they are: an iteration makes the new rows alone.

    s' = loop(n, s, x, body=(step, s, x) -> (true, concat(s, x * step, axis=0)))              becomes
    s' = loop(n, s, x, body=(step, s, x) -> (true, x * step), appends=((0, 0, 1),))

The memory of such a state grows by a factor, so that n iterations move as many bytes as they append, and no more than some
copies of the last state: without this, each iteration makes all of the state anew. Branches that append, or do not, and loops
inside are taken apart first (`hoist_appends`). Nodes that read the concatenation, too, keep it.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.graph.core.graph import Attribute, Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.core.symbols import variables_of
from weft.graph.passes.states.appended_rows import appended_rows
from weft.graph.passes.states.hoist_appends import hoist_appends
from weft.graph.regions.region_operators import LOOP, Append, appends_of
from weft.graph.rewriting.rewriter import Inputs, drop_dead, rewrite_graph
from weft.ir import Var


def append_in_place(graph: Graph) -> Graph:
    """Returns *graph* with loops whose bodies make the rows that they append to their states, and not the states."""

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        if node.operator is not LOOP or appends_of(node):
            return None
        body = node.attribute("body")
        for k in range(int(node.attribute("states"))):
            body = hoist_appends(body, 1 + k, body.inputs[1 + k])
        found = _found(graph, node, body)
        if not found:
            return None
        appends = tuple([(a.state, a.axis, a.size) for a, _ in found])
        changed: dict[str, Attribute] = {"body": _with_rows(body, {a.state: (a.axis, rows) for a, rows in found})}
        attributes = tuple(sorted({**dict(node.attributes), **changed, "appends": appends}.items()))
        names, types = [v.name for v in node.outputs], [v.type for v in node.outputs]
        return new.append(Node(LOOP, inputs, attributes, types, names, node.source)).outputs

    return rewrite_graph(graph, rule)


def _found(graph: Graph, node: Node, body: Graph) -> list[tuple[Append, list[Value]]]:
    """Returns the states of a loop of *graph* that an iteration of its *body* appends to, with the appended values."""
    told = {late.size: node.outputs.index(late.value) for late in graph.late_sizes if late.value in node.outputs}
    changing = {late.size for late in body.late_sizes}
    found = []
    for k in range(int(node.attribute("states"))):
        taken = body.inputs[1 + k]
        axis, rows = appended_rows(body.outputs[1 + k], taken) or (0, [])
        others = variables_of([*taken.shape[:axis], *taken.shape[axis + 1 :]])
        size = node.outputs[k].shape[axis] if rows else None
        if isinstance(size, Var) and size in told and changing.isdisjoint(others):
            found.append((Append(k, axis, told[size]), rows))
    return found


def _with_rows(body: Graph, found: dict[int, tuple[int, list[Value]]]) -> Graph:
    """Returns *body* with rows in the place of the states, by their numbers, that have these rows at their ends."""
    made = body.empty_copy()
    made.nodes = list(body.nodes)
    for k, (name, v) in enumerate(zip(body.output_names, body.outputs, strict=True)):
        if k - 1 in found:
            axis, rows = found[k - 1]
            source = v.producer.source if v.producer is not None else ""
            v = rows[0] if len(rows) == 1 else made.add("concat", rows, axis=axis, name=v.name, source=source)
        made.output(v, name)
    made.guards, made.late_sizes = list(body.guards), list(body.late_sizes)
    drop_dead(made)
    return made
