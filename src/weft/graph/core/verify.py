"""The verifier of graphs: `verify_graph` raises `VerifyError` naming the node that breaks an invariant."""

from __future__ import annotations

from weft.graph.core.graph import Graph, Node, infer
from weft.graph.core.graph_values import Constant, Value
from weft.graph.core.type_text import type_text
from weft.ir import Var, free_vars
from weft.support.errors import VerifyError


def verify_graph(graph: Graph) -> None:
    """Checks order, types, attributes, names and symbolic sizes of *graph*, nested graphs too."""
    _check_names(graph)
    known = set(graph.inputs)
    unbound = [late for late in graph.late_sizes if late.value not in known and not isinstance(late.value, Constant)]
    for node in graph.nodes:
        _check_inputs(node, known)
        _check_types(node)
        later = {late.size for late in unbound if late.value.producer is not node}
        _check_sizes(node, set(graph.dims.values()), later)
        known.update(node.outputs)
        unbound = [late for late in unbound if late.value not in known]
        for _, attribute in node.attributes:
            if isinstance(attribute, Graph):
                verify_graph(attribute)
    _check_roots(graph, known)
    if unbound:
        size, value = unbound[0].size, unbound[0].value
        raise VerifyError(f"the size {size.name} is read from {value!r}, which no node makes", where=graph.name)


def _check_roots(graph: Graph, known: set[Value]) -> None:
    """Checks that outputs and guards are results of nodes of the graph."""
    for name, v in zip(graph.output_names, graph.outputs, strict=True):
        if v not in known and not isinstance(v, Constant):
            raise VerifyError(f"the output {name} is {v!r}, which no node of the graph makes", where=graph.name)
    for g in graph.guards:
        lost = [v for v in (g.least, g.greatest) if v not in known and not isinstance(v, Constant)]
        if lost:
            raise VerifyError(f"a guard looks at {lost[0]!r}, which no node of the graph makes", where=g.source)


def describe(node: Node) -> str:
    """Names a node for an error message: the model's node where it is known, and the operator."""
    return f"{node.source} ({node.op})" if node.source else f"{node.op} -> {node.outputs[0].name}"


def _check_names(graph: Graph) -> None:
    for kind, names in (("inputs", [v.name for v in graph.inputs]), ("outputs", graph.output_names)):
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise VerifyError(f"two {kind} are called {', '.join(twice)}", where=graph.name)


def _check_inputs(node: Node, known: set[Value]) -> None:
    for v in node.inputs:
        if v is not None and v not in known and not isinstance(v, Constant):
            raise VerifyError(f"reads {v!r} before it is made", where=describe(node))
    if any(v in known for v in node.outputs):
        raise VerifyError("is in the graph twice", where=describe(node))


def _check_types(node: Node) -> None:
    types = infer(node.operator, node.inputs, node.attributes, node.source)
    for v, t in zip(node.outputs, types, strict=True):
        if v.type != t:
            raise VerifyError(f"{v!r} should be {type_text(t)}", where=describe(node))


def _check_sizes(node: Node, dims: set[Var], unbound: set[Var]) -> None:
    for v in node.outputs:
        for s in [s for e in v.shape for s in free_vars(e) if s not in dims or s in unbound]:
            why = "is not known yet" if s in unbound else "is not the graph's"
            raise VerifyError(f"{v!r} uses the size {s.name}, which {why}", where=describe(node))
