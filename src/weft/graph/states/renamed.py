"""A graph with other expressions in place of symbolic sizes, in all of its shapes, attributes, conditions and regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from weft.graph.core.conditions import Guard, Requirement
from weft.graph.core.graph import Attribute, Graph, Node, infer
from weft.graph.core.graph_values import Constant, Value
from weft.graph.core.symbols import sizes_of
from weft.graph.regions.region_operators import REGION_OPERATORS
from weft.ir import Expr, Var, substitute
from weft.ops import TensorType, simplify_size

Nodes = Callable[[Graph, Node, tuple[Value | None, ...]], Sequence[Value] | None]
"""Takes the graph being made, a node of the old one, and its inputs in the new one; returns replacements of its outputs, or None
to rename it alone."""


class Renaming:
    """Rebuilds graphs with *sizes* replaced; nodes that have none of them stay the same objects where their inputs do."""

    def __init__(self, sizes: Mapping[Var, Expr]) -> None:
        self.sizes = sizes

    def expr(self, e: Expr) -> Expr:
        """Returns an expression of sizes."""
        return simplify_size(substitute(e, self.sizes))

    def type(self, t: TensorType) -> TensorType:
        """Returns a tensor type."""
        return TensorType(tuple(map(self.expr, t.shape)), t.dtype)

    def input(self, v: Value) -> Value:
        """Returns an input: the same where its shape stays."""
        type_ = self.type(v.type)
        return v if type_ == v.type else Value(v.name, type_)

    def graph(self, graph: Graph, inputs: Sequence[Value], rule: Nodes | None = None) -> Graph:
        """Returns *graph* on other *inputs*, with *rule* applied to its nodes."""
        made = graph.empty_copy()
        made.inputs = list(inputs)
        made.requirements = [self.requirement(r) for r in graph.requirements]
        made.metadata, made.is_extended = graph.metadata, graph.is_extended
        known: dict[Value, Value] = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.nodes:
            given = tuple([None if v is None else known.get(v, v) for v in node.inputs])
            stand = rule(made, node, given) if rule is not None else None
            known.update(zip(node.outputs, stand or made.append(self.node(node, given)).outputs, strict=True))
        for v, name in zip(graph.outputs, graph.output_names, strict=True):
            made.output(known.get(v, v), name)
        made.guards = [self.guard(g.mapped(known)) for g in graph.guards]
        made.late_sizes = [late.mapped(known) for late in graph.late_sizes]
        return made

    def node(self, node: Node, inputs: tuple[Value | None, ...]) -> Node:
        """Returns *node* on other inputs: the same one where nothing changes."""
        same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        if same and sizes_of(node).isdisjoint(self.sizes):
            return node
        attributes = tuple([(k, self.attribute(a)) for k, a in node.attributes])
        types = (
            [self.type(v.type) for v in node.outputs]
            if node.op in REGION_OPERATORS
            else infer(node.operator, inputs, attributes, node.source)
        )
        return Node(node.operator, inputs, attributes, types, [v.name for v in node.outputs], node.source)

    def attribute(self, a: Attribute) -> Attribute:
        """Returns an attribute, of a region too."""
        if isinstance(a, tuple):
            return tuple([self.attribute(x) for x in a])
        if isinstance(a, Graph):
            return self.graph(a, [v if isinstance(v, Constant) else self.input(v) for v in a.inputs])
        return self.expr(a) if isinstance(a, Expr) else a

    def requirement(self, r: Requirement) -> Requirement:
        """Returns a condition of calls."""
        return Requirement(substitute(r.condition, self.sizes), r.message, tuple(map(self.expr, r.values)))

    def guard(self, g: Guard) -> Guard:
        """Returns a check of values."""
        return replace(g, limits=tuple([(self.expr(low), self.expr(high)) for low, high in g.limits]))
