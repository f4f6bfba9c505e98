"""Takes appends out of branches, so that a branch makes the rows alone, and the loop around it can append them in place.

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
from weft.graph.regions.region_operators import IF
from weft.graph.rewriting.rewriter import Inputs, drop_dead, rewrite_graph
from weft.ir import ONE, ZERO, Expr


def appended_rows(made: Value, taken: Value) -> tuple[int, list[Value]] | None:
    """Returns the axis along which *made* is *taken* with tensors behind it, and these; None where it is made otherwise.

    Elements are in row-major order, so that only dimensions of one element may be before the axis.
    """
    rows: list[Value] = []
    axes: set[int] = set()
    while made is not taken:
        node = made.producer
        if node is None or node.op != "concat":
            return None
        first, *others = [v for v in node.inputs if v is not None]
        axes.add(node.attribute("axis") % made.rank)
        rows[:0] = others
        made = first
    if len(axes) != 1:
        return None
    axis = axes.pop()
    return (axis, rows) if all(s is ONE for s in taken.shape[:axis]) else None


def hoist_appends(graph: Graph, number: int, taken: Value) -> Graph:
    """Returns *graph* with its output *number* made of *taken* outside of a branch, where branches append to it or leave it."""
    made = graph.outputs[number]
    node = made.producer
    if node is None or node.operator is not IF or made in graph.users() or graph.outputs.count(made) > 1:
        return graph
    found = _appends(node, node.outputs.index(made), taken)
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
        name = new.fresh_name("rows")
        while name in new.dims:
            name = new.fresh_name("rows")
        size = new.dim(name)
        shapes = [*node.attribute("shapes"), (ONE,)]
        shape = list(shapes[self.number])
        shape[self.axis] = size
        shapes[self.number] = tuple(shape)
        regions = {branch: self._with_rows(*found) for branch, found in self.branches.items()}
        attributes = tuple(sorted({**dict(node.attributes), **regions, "shapes": tuple(shapes)}.items()))
        names = [*[v.name for v in node.outputs], name]
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
            rows = [made.constant(np.zeros(_without_rows(old, self.axis) or (), old.dtype.numpy), "no_rows")]
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
        if len(found) == 2 and len(axes) == 1 and _without_rows(node.outputs[number], *axes) is not None:
            return _Appends(number, source, axes.pop(), found)
    return None


def _without_rows(v: Value, axis: int) -> tuple[int, ...] | None:
    """Returns the shape of *v* with no elements along *axis*; None where another size is symbolic."""
    shape: list[Expr] = list(v.shape)
    shape[axis] = ZERO
    return Value("", type(v.type)(tuple(shape), v.dtype)).static_shape
