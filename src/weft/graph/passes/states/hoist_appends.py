"""Takes appends out of branches and loops, so that these make the rows alone, and the loop around can append them in place.

t = if(c, s, x, then=(s, x) -> concat(s, x, axis=0), other=(s, x) -> s)           becomes
r = if(c, s, x, then=(s, x) -> x, other=(s, x) -> rows that are none); t = concat(s, r, axis=0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.graph.core.conditions import LateSize
from weft.graph.core.graph import Graph, Node, infer
from weft.graph.core.graph_values import Value
from weft.graph.passes.states.appended_rows import appended_rows, without_rows
from weft.graph.passes.states.loop_appends import loop_appends
from weft.graph.regions.region_operators import IF
from weft.graph.rewriting.rewriter import Inputs, drop_dead, rewrite_graph
from weft.ir import ONE


def hoist_appends(graph: Graph, number: int, taken: Value) -> Graph:
    """Returns *graph* with its output *number* made of *taken* outside of a branch or a loop that appends to it or leaves it."""
    made = graph.outputs[number]
    node = made.producer
    if node is None or not node.operator.has_regions or made in graph.users() or graph.outputs.count(made) > 1:
        return graph
    k = node.outputs.index(made)
    found = _appends(node, k, taken) if node.operator is IF else loop_appends(node, k, taken, hoist_appends)
    if found is None:
        return graph

    def rule(new: Graph, old: Node, inputs: Inputs) -> Sequence[Value] | None:
        return found.hoisted(new, old, inputs) if old is node else None

    return rewrite_graph(graph, rule)


@dataclass(frozen=True)
class _Appends:
    """Result *number* of an `if` is its input *source*, with rows behind it along *axis* that its *branches* make."""

    number: int
    source: int
    axis: int
    branches: dict[str, tuple[Graph, list[Value]]]

    def hoisted(self, new: Graph, node: Node, inputs: Inputs) -> list[Value]:
        """Adds the `if` of the rows to *new*, and the append; returns the results of the old one."""
        size = new.fresh_dim("rows")
        shapes = [*node.attribute("shapes"), (ONE,)]
        shape = list(shapes[self.number])
        shape[self.axis] = size
        shapes[self.number] = tuple(shape)
        regions = {branch: self._with_rows(*found) for branch, found in self.branches.items()}
        attributes = tuple(sorted({**dict(node.attributes), **regions, "shapes": tuple(shapes)}.items()))
        names = [*[v.name for v in node.outputs], size.name]
        made = new.append(Node(IF, inputs, attributes, infer(IF, inputs, attributes), names, node.source)).outputs
        new.late_sizes.append(LateSize(size, made[-1], 0, "a size that control flow tells", node.source))
        results = list(made[:-1])
        taken = inputs[self.source]
        assert taken is not None
        results[self.number] = new.add("concat", [taken, results[self.number]], axis=self.axis, source=node.source)
        return results

    def _with_rows(self, branch: Graph, rows: list[Value]) -> Graph:
        """Returns a branch that makes *rows* in the place of the result, and tells at its end how many they are."""
        made = branch.empty_copy()
        made.nodes = list(branch.nodes)
        old = branch.outputs[self.number]
        if not rows:
            rows = [made.constant(np.zeros(without_rows(old, self.axis) or (), old.dtype.numpy), "no_rows")]
        whole = rows[0] if len(rows) == 1 else made.add("concat", rows, axis=self.axis)
        size = made.add("sizes", [], sizes=(whole.shape[self.axis],), shape=(1,))
        for k, (name, v) in enumerate(zip(branch.output_names, branch.outputs, strict=True)):
            made.output(whole if k == self.number else v, name)
        made.output(size, f"result{len(branch.outputs)}")
        made.guards, made.late_sizes = list(branch.guards), list(branch.late_sizes)
        drop_dead(made)
        return made


def _appends(node: Node, number: int, taken: Value) -> _Appends | None:
    """Returns how the branches of an `if` append to a value that is made of *taken* by appends; None where one does not."""
    for source, given in enumerate(node.inputs[1:], 1):
        if given is None or (given is not taken and appended_rows(given, taken) is None):
            continue
        found: dict[str, tuple[Graph, list[Value]]] = {}
        axes: set[int] = set()
        for name in ("then", "other"):
            branch: Graph = node.attribute(name)
            inside = branch.inputs[source - 1]
            branch = hoist_appends(branch, number, inside)
            rows = appended_rows(branch.outputs[number], inside)
            axes |= set() if rows is None else {rows[0]}
            if rows is not None or branch.outputs[number] is inside:
                found[name] = (branch, [] if rows is None else rows[1])
        if len(found) == 2 and len(axes) == 1 and without_rows(node.outputs[number], *axes) is not None:
            return _Appends(number, source, axes.pop(), found)
    return None
