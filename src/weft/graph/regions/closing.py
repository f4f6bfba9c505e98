"""Closing regions: the values of graphs around that a region uses become inputs of it, so that it stands by itself."""

from __future__ import annotations

from collections.abc import Mapping

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.regions.region_operators import captures_begin
from weft.support.unique_names import UniqueNames


def captured(region: Graph) -> list[Value]:
    """Returns the values that *region* uses but neither makes nor takes, in order of use; constants are no such."""
    own: set[Value] = set(region.inputs)
    found: dict[Value, None] = {}
    for node in region.nodes:
        found.update((v, None) for v in node.inputs if v is not None and v not in own and not isinstance(v, Constant))
        own.update(node.outputs)
    found.update((v, None) for v in region.roots if v not in own and not isinstance(v, Constant))
    return list(found)


def with_values(region: Graph, inputs: list[Value], stands_for: Mapping[Value, Value]) -> Graph:
    """Returns *region* with *inputs*, where *stands_for* has the values that take the place of others, of the same types."""
    made = region.empty_copy()
    made.inputs, made.late_sizes = inputs, []
    known = dict(stands_for)
    for node in region.nodes:
        given = tuple([None if v is None else known.get(v, v) for v in node.inputs])
        if any(a is not b for a, b in zip(given, node.inputs, strict=True)):
            types = [v.type for v in node.outputs]
            names = [v.name for v in node.outputs]
            node, old = Node(node.operator, given, node.attributes, types, names, node.source), node
            known.update(zip(old.outputs, node.outputs, strict=True))
        made.append(node)
    for name, v in zip(region.output_names, region.outputs, strict=True):
        made.output(known.get(v, v), name)
    made.guards = [g.mapped(known) for g in region.guards]
    made.late_sizes = [late.mapped(known) for late in region.late_sizes]
    return made


def closed(region: Graph, captures: list[Value]) -> Graph:
    """Returns *region* with an input for each of *captures* at its end, in the place of the captured value."""
    names = UniqueNames([v.name for v in region.inputs], separator=".")
    added = [Value(names.of(v.name), v.type) for v in captures]
    return with_values(region, [*region.inputs, *added], dict(zip(captures, added, strict=True)))


def without_constants(node: Node, inputs: tuple[Value | None, ...]) -> Node:
    """Returns a control-flow node on *inputs*: regions use captures that are constants by now as they are."""
    begin = captures_begin(node)
    kept = [k for k, v in enumerate(inputs) if k < begin or not isinstance(v, Constant)]
    if len(kept) == len(inputs):
        return node.with_inputs(inputs)
    changed = {}
    for name, a in node.attributes:
        if isinstance(a, Graph):
            shift = len(a.inputs) - len(inputs)
            known = {a.inputs[k + shift]: v for k, v in enumerate(inputs) if k not in kept and v is not None}
            changed[name] = with_values(a, [v for v in a.inputs if v not in known], known)
    attributes = tuple([(k, changed.get(k, a)) for k, a in node.attributes])
    names, types = [v.name for v in node.outputs], [v.type for v in node.outputs]
    return Node(node.operator, tuple([inputs[k] for k in kept]), attributes, types, names, node.source)


def with_regions(node: Node, regions: Mapping[str, Graph]) -> Node:
    """Returns a control-flow node with other *regions*, by the names of the attributes, that compute the same."""
    attributes = tuple([(k, regions.get(k, a)) for k, a in node.attributes])
    names, types = [v.name for v in node.outputs], [v.type for v in node.outputs]
    return Node(node.operator, node.inputs, attributes, types, names, node.source)


__all__ = ["captured", "closed", "with_regions", "with_values", "without_constants"]
