"""Loops of a known number of iterations, each of which makes a row of the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from weft.graph.core.graph import Attribute, Graph, Node, infer
from weft.graph.core.graph_values import Value
from weft.graph.regions.closing import captured, closed
from weft.graph.regions.region_operators import LOOP, RegionOperator
from weft.ir import as_expr
from weft.support.dtypes import i64


def append_regions(
    graph: Graph,
    operator: RegionOperator,
    given: Sequence[Value | None],
    regions: Mapping[str, Graph],
    attributes: Mapping[str, Attribute],
    source: str,
) -> Node:
    """Appends a node of control flow to *graph*, with the values that its regions capture as further inputs."""
    captures = list(dict.fromkeys(v for region in regions.values() for v in captured(region)))
    made = {name: closed(region, captures) for name, region in regions.items()}
    graph.is_extended |= any(region.is_extended for region in regions.values())
    frozen = tuple(sorted({**attributes, **made}.items()))
    inputs = (*given, *captures)
    types = infer(operator, inputs, frozen, source)
    names = [graph.fresh_name(operator.name) for _ in types]
    return graph.append(Node(operator, inputs, frozen, types, names, source))


def stacked_rows(graph: Graph, count: int, row: Callable[[Graph, Value], Value], source: str) -> Value:
    """Returns the *count* results of *row*, each of the region that it adds operators to and the number of the iteration.

    They are one after another in a new first dimension, written where they belong.
    """
    body = graph.region("body")
    step = body.input("step", (), i64)
    made = row(body, step)
    body.output(body.constant(np.ones((), np.bool_)), "go_on")
    body.output(made, "row")
    facts: dict[str, Attribute] = {
        "counted": True,
        "scans": 1,
        "shapes": ((as_expr(count), *made.shape),),
        "states": 0,
    }
    bound = graph.constant(np.asarray(count, np.int64))
    return append_regions(graph, LOOP, [bound, None], {"body": body}, facts, source).outputs[0]
