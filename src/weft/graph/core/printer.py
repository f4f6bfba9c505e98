"""The text of a graph, one line a node, for people and for golden tests.

graph small(x: f32[batch, 3, 8, 8]) -> (y):
  w = constant f32[4, 3, 3, 3]
  conv2d: f32[batch, 4, 6, 6] = conv2d(x, w, strides=(1, 1))  # Conv /stem/conv
  return y=conv2d
"""

from __future__ import annotations

import numpy as np

from weft.graph.core.conditions import Guard, LateSize
from weft.graph.core.dimension import Dimension
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Parameter, Value
from weft.graph.core.state_pairs import Pair, state_pairs
from weft.graph.core.type_text import attribute_text, dim_text, type_text
from weft.support.text import printable_line
from weft.support.unique_names import UniqueNames

SHORTEST_ARRAY = 8
"""A constant of at most so many elements is printed with its values."""


def print_graph(graph: Graph) -> str:
    """Returns the text of *graph*; values of one name are told apart by a number."""
    names = unique_names(graph)
    given = ", ".join(f"{names[v]}: {type_text(v.type)}" for v in graph.inputs)
    lines = [printable_line(f"graph {graph.name}({given}) -> ({', '.join(graph.output_names)}):")]
    lines += [f"  {_dimension_text(d)}" for d in graph.dimensions.values()]
    lines += [f"  {names[c]} = {_constant_text(c)}" for c in graph.constants()]
    lines += [f"  {_node_text(n, names)}" for n in graph.nodes]
    lines += [f"  {_guard_text(g, names)}" for g in graph.guards]
    lines += [f"  {_late_text(late, names)}" for late in graph.late_sizes]
    lines += [f"  {_state_text(pair, names)}" for pair in state_pairs(graph)]
    returned = [f"{n}={names[v]}" for n, v in zip(graph.output_names, graph.outputs, strict=True)]
    lines.append(printable_line(f"  return {', '.join(returned)}"))
    lines += [line for n in graph.nodes for _, a in n.attributes if isinstance(a, Graph) for line in _region_lines(a)]
    return "\n".join(lines) + "\n"


def _region_lines(region: Graph) -> list[str]:
    """Returns the text of a nested graph, which stands behind that of the graph around it."""
    return [f"  {line}" for line in print_graph(region).splitlines()]


def unique_names(graph: Graph) -> dict[Value, str]:
    """Returns a distinct name for each value of *graph*: its own, with a number where another has it already."""
    values = [*graph.inputs, *graph.constants(), *(v for n in graph.nodes for v in n.outputs)]
    unique = UniqueNames(separator=".")
    return {v: unique.of(printable_line(v.name)) for v in values}


def _dimension_text(d: Dimension) -> str:
    unit = "" if d.size is d.unit else f" = {dim_text(d.size)}"
    return printable_line(f"size {d.name}{unit} in {d.sizes}")


def _guard_text(g: Guard, names: dict[Value, str]) -> str:
    limits = ", ".join(f"{dim_text(low)} to {dim_text(high)}" for low, high in g.limits)
    return f"{'watched ' if g.watched else ''}guard {names[g.least]}, {names[g.greatest]} in {limits}  # {g.source}"


def _late_text(late: LateSize, names: dict[Value, str]) -> str:
    made = printable_line(f"late size {late.size.name} = {names[late.value]}[{late.element}]")
    return f"{made}  # {late.source}" if late.source else made


def _state_text(pair: Pair, names: dict[Value, str]) -> str:
    made, growth = f"state {names[pair.taken]} becomes {names[pair.left]}", pair.state.growth
    if growth is not None:
        sizes = f"from {dim_text(growth.bound - 1)} to {dim_text(growth.grown)}"
        made += f", grows along {growth.axis} {sizes} of {dim_text(pair.taken.shape[growth.axis])}"
    if pair.state.initial is not None:
        made += f", begins with {names[pair.state.initial]}"
    return printable_line(made)


def _constant_text(c: Constant) -> str:
    kind = "parameter" if isinstance(c, Parameter) else "constant"
    values = f" {np.array2string(c.array, separator=', ')}" if c.size <= SHORTEST_ARRAY else ""
    return f"{kind} {type_text(c.type)}{values}".replace("\n", "")


def _node_text(n: Node, names: dict[Value, str]) -> str:
    outputs = ", ".join(f"{names[v]}: {type_text(v.type)}" for v in n.outputs)
    args = [("none" if v is None else names[v]) for v in n.inputs]
    args += [f"{k}={v.name if isinstance(v, Graph) else attribute_text(v)}" for k, v in n.attributes]
    return f"{outputs} = {n.op}({', '.join(args)})" + (f"  # {n.source}" if n.source else "")
