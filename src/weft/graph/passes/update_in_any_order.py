"""Lets threads of a grid apply the updates of a scatter side by side, in any order, where that is faster.

    y = scatter_nd(x, t, u, reduction="add")     becomes     y = scatter_nd(x, t, u, reduction="add", any_order=True)

Sums of floats in another order round differently, in each run anew, so that those of an *exact* model stay in order. Of updates
that replace elements the last one wins in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from weft.cost import Planner, UpdateOrder, size_of, subject_of, update_order_plans
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import Const, Expr
from weft.support.dtypes import i32
from weft.targets import Grid, Target
from weft.te import Scatter, max_, min_, sum_
from weft.te import prod as product


def update_in_any_order(graph: Graph, planner: Planner, target: Target, *, exact: bool) -> Graph:
    """Returns *graph* with scatters in any order on *target*, which has threads, where *planner* decides so."""

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        if not node.operator.orders_updates or node.attribute("any_order"):
            return None
        scatter = _scatter_of(node)
        if scatter is None or not all(isinstance(n, Const) for n in (*scatter.extents, *scatter.shape)):
            return None
        if not _may_part(scatter, node.output, target, exact=exact):
            return None
        plans = partial(
            update_order_plans,
            _count(scatter.chained),
            _count(scatter.apart),
            _count(scatter.shape),
            replaces=scatter.reducer is None,
        )
        order = planner.decide(subject_of(node.output.name), UpdateOrder, lambda m: plans(target=m))
        if not order.any:
            return None
        return [
            new.add(node.op, inputs, source=node.source, name=node.output.name, **{**node.keywords, "any_order": True})
        ]

    return rewrite_graph(graph, rule)


def _scatter_of(node: Node) -> Scatter | None:
    """Returns the formula of a node that is one scatter."""
    types = [None if v is None else v.type for v in node.inputs]
    (made,) = node.operator.formulas(types, dict(node.keywords))[1]
    return made.op if isinstance(made.op, Scatter) else None


def _may_part(scatter: Scatter, result: Value, target: Target, *, exact: bool) -> bool:
    """Tells whether updates may be applied in any order: none is lost, and sums round the same if they have to."""
    if target.grid is None or _has_parts(scatter, result, target.grid):
        return False
    if scatter.reducer is None:
        return True
    if scatter.reducer not in (sum_, product, min_, max_) or not target.has_atomics(result.dtype):
        return False
    return not exact or not result.dtype.is_float or scatter.reducer in (min_, max_)


def _has_parts(scatter: Scatter, result: Value, grid: Grid) -> bool:
    """Tells whether the result, or the numbers of its elements' last updates, may be too long to be one buffer of a kernel.

    Half of the longest is surely not: what is bound begins somewhat before a buffer.
    """
    longest = _count(scatter.shape) * max(result.dtype.bytes, i32.bytes)
    return grid.buffer_bytes is not None and longest > grid.buffer_bytes // 2


def _count(extents: Sequence[Expr]) -> int:
    return prod([size_of(n) for n in extents])
