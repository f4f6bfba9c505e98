"""Adds a check for every index that is data: the smallest and the largest of them, looked at before they are used.

    y = gather(x, i)     becomes     least, greatest = extremes(i); watched guard least, greatest in -10 to 9; y = gather(x, i)

Kernels whose formulas watch their indices (`facts_of`) tell when one is outside, and only then is it looked for. Indices that are
known are checked here and cost nothing; so do those whose producer keeps them inside (`known_range`). Indices of a branch are
checked only if it is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

import numpy as np

from weft.cost import MANY_INDICES
from weft.graph.core.conditions import Guard
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.core.type_text import dim_text
from weft.graph.fusion.node_facts import facts_of
from weft.graph.rewriting.call_patterns import is_known
from weft.graph.rewriting.known_ranges import known_range
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import Const, all_of, index, prove
from weft.ops import IndexRange, Limits, index_range, size_bounds
from weft.support.errors import ModelError

Condition: TypeAlias = tuple[Value, bool]
"""A scalar condition, and the value that it must have for a node's results to be used."""

NONE: frozenset[Condition] = frozenset()


def guard_indices(graph: Graph) -> Graph:
    """Returns *graph* with guards; raises `ModelError` naming the node, the index and its range for a known one outside.

    A graph that has guards stays as it is.
    """
    if graph.guards:
        return graph
    guards = _Guards(_conditions(graph))

    def guard(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        found = index_range(node.op, node.inputs, node.keywords)
        if found is not None:
            guards.add(new, node, inputs[found.input], found)
        guards.made.add(node)
        return None

    return rewrite_graph(graph, guard)


def _conditions(graph: Graph) -> dict[Node, frozenset[Condition]]:
    """Returns, for each node, the conditions under which alone its results are used: those that all its uses have in common.

    A `where` of a scalar uses one of its operands.
    """
    found: dict[Node, frozenset[Condition]] = {v.producer: NONE for v in graph.roots if v.producer is not None}
    for node in reversed(graph.nodes):
        under = found.get(node, NONE)
        for k, v in enumerate(node.inputs):
            if v is None or v.producer is None:
                continue
            here = under | _chosen_by(node, k)
            found[v.producer] = found[v.producer] & here if v.producer in found else here
    return found


def _chosen_by(node: Node, k: int) -> frozenset[Condition]:
    chooses = node.op == "where" and k > 0 and node.inputs[0] is not None and node.inputs[0].rank == 0
    return frozenset({(node.inputs[0], k == 1)}) if chooses and node.inputs[0] is not None else NONE


@dataclass
class _Guards:
    """The guards added so far: the extremes of each tensor of indices, and the checks of them, each once."""

    conditions: dict[Node, frozenset[Condition]]
    extremes: dict[object, tuple[Value, Value]] = field(default_factory=dict)
    checked: set[object] = field(default_factory=set)
    made: set[Node] = field(default_factory=set)

    def add(self, new: Graph, node: Node, v: Value | None, found: IndexRange) -> None:
        """Checks *v*, the indices of *node*, where they are known now, and has *new* check others when it runs."""
        under = self._known_conditions(node)
        if v is None or _is_inside(v, found):
            return
        if is_known(v) and not under:
            _check_known(new, node, v, found)
            return
        watched = facts_of(node).watches
        key = (v, under, found.by_column, watched)
        if (key, found.limits) in self.checked:
            return
        self.checked.add((key, found.limits))
        if key not in self.extremes:
            self.extremes[key] = _reduced(new, v, under, found, node.source, by_rows=not watched)
        least, greatest = self.extremes[key]
        new.guards.append(Guard(least, greatest, found.limits, found.what, _name(node), watched))

    def _known_conditions(self, node: Node) -> frozenset[Condition]:
        """Returns the conditions of *node* that are computed before it."""
        under = self.conditions.get(node, NONE)
        return frozenset([c for c in under if c[0].producer is None or c[0].producer in self.made])


def _name(node: Node) -> str:
    return node.source or node.op


def _is_inside(v: Value, found: IndexRange) -> bool:
    """Tells whether all of *v* is known to be inside of all limits."""
    known = known_range(v)
    return known is not None and all(_holds(known, limits) for limits in found.limits)


def _holds(known: Limits, limits: Limits) -> bool:
    (low, high), (first, last) = known, limits
    bounds = size_bounds(low, high, first, last)
    return prove(first <= low, bounds) and prove(high <= last, bounds)


def _reduced(
    new: Graph, v: Value, under: frozenset[Condition], found: IndexRange, source: str, *, by_rows: bool
) -> tuple[Value, Value]:
    """Adds nodes that compute the smallest and the largest index, of each column by itself if columns have limits of their own.

    With *by_rows*, many indices are first reduced within each row, so that threads share the rows.
    """
    for condition, wanted in sorted(under, key=lambda c: c[0].serial):
        zero = new.constant(np.zeros((), v.dtype.numpy))  # inside of any range
        pair = (v, zero) if wanted else (zero, v)
        v = new.add("where", [condition, *pair], source=source)
    least = greatest = v
    last = v.rank - 1 if found.by_column else v.rank
    stages = [range(1, last), range(1)] if by_rows and last > 1 and _is_large(v) else [range(last)]
    for axes in stages:
        if axes:
            least, greatest = new.add_many("extremes", [least, greatest], source=source, axes=tuple(axes))
    return least, greatest


def _is_large(v: Value) -> bool:
    return v.static_shape is not None and v.static_shape[0] > 1 and prod(v.static_shape) >= MANY_INDICES


def _check_known(graph: Graph, node: Node, v: Constant, found: IndexRange) -> None:
    """Checks constant indices: now, or in each call where the limits are known only then."""
    if not v.array.size:
        return
    columns = v.array.reshape(-1, len(found.limits)) if found.by_column else v.array.reshape(-1, 1)
    for column, (low, high) in zip(columns.T, found.limits, strict=True):
        for value in {int(column.min()), int(column.max())}:
            if isinstance(low, Const) and isinstance(high, Const):
                if not int(low.value) <= value <= int(high.value):
                    raise ModelError(
                        f"{found.what} {value} is outside of {dim_text(low)} to {dim_text(high)}",
                        where=_name(node),
                        hint="the model holds this value: change what it indexes, or export the model again",
                    )
            elif not _holds((index(value), index(value)), (low, high)):
                inside = all_of([low <= index(value), index(value) <= high])
                message = f"{found.what} {value} is outside of {{0}} to {{1}}"
                graph.require(inside, message, low, high, source=_name(node))
