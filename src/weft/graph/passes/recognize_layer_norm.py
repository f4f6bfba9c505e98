"""Finds layer normalizations that a model spells out, so that each is computed by one kernel.

c = sub(x, mean(x)); y = add(mul(div(c, sqrt(add(mean(mul(c, c)), eps))), scale), bias)
becomes     y = layer_norm(x, scale, bias, epsilon=eps)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.rewriting.call_patterns import Pattern, known_scalar, match, match_any
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph

_DEVIATION: Final[tuple[Pattern, ...]] = (
    ("sqrt", ("add", "variance", "#epsilon")),
    ("power", ("add", "variance", "#epsilon"), "#half"),
)
_NORMALIZED: Final[tuple[Pattern, ...]] = (
    *[("div", "centred", d) for d in _DEVIATION],
    ("mul", "centred", ("reciprocal", _DEVIATION[0])),
    ("mul", "centred", ("rsqrt", ("add", "variance", "#epsilon"))),
)
_SCALED: Final[tuple[Pattern, ...]] = tuple([("mul", n, "scale") for n in _NORMALIZED])
_SQUARES: Final[tuple[Pattern, ...]] = (
    ("mul", "centred", "centred"),
    ("square", "centred"),
    ("power", "centred", "#two"),
)


def recognize_layer_norm(graph: Graph) -> Graph:
    """Returns *graph* with the normalizations over the last dimension that it spells out as `layer_norm`."""

    def recognize(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        if node.op != "add":
            return None
        for scaled, bias in (inputs, inputs[::-1]):
            found = match_any(_SCALED, scaled, {})
            x = None if found is None else _normalized(found)
            if found is not None and x is not None and _is_vector(bias, x) and _is_vector(found["scale"], x):
                return [_layer_norm(new, node, x, found["scale"], bias, _scalar(found["#epsilon"]))]
        return None

    return rewrite_graph(graph, recognize)


def _layer_norm(new: Graph, node: Node, x: Value, scale: Value, bias: Value | None, epsilon: float | None) -> Value:
    attributes = {"axis": -1, "epsilon": epsilon}
    return new.add("layer_norm", [x, scale, bias], source=node.source, name=node.output.name, **attributes)


def _normalized(found: dict[str, Value]) -> Value | None:
    """Returns the normalised value; None unless mean, variance and constants are those of a layer normalization."""
    centred = match(("sub", "x", ("reduce_mean", "x")), found["centred"])
    squares = found["variance"].producer
    if centred is None or squares is None or squares.op != "reduce_mean" or _scalar(found["#epsilon"]) is None:
        return None
    mean = found["centred"].producer.inputs[1] if found["centred"].producer is not None else None
    of_squares = match_any(_SQUARES, squares.inputs[0], {"centred": found["centred"]})
    if of_squares is None or mean is None or mean.producer is None:
        return None
    constants = _scalar(found.get("#half"), 0.5) == 0.5 and _scalar(of_squares.get("#two"), 2.0) == 2.0
    return centred["x"] if constants and _over_last(mean.producer) and _over_last(squares) else None


def _over_last(node: Node) -> bool:
    """Tells whether a reduction is over the last dimension alone, which it keeps."""
    axes, x = node.attribute("axes"), node.inputs[0]
    return (
        axes is not None and x is not None and node.attribute("keepdims") and {a % x.rank for a in axes} == {x.rank - 1}
    )


def _scalar(v: Value | None, absent: float | None = None) -> float | None:
    """Returns the one element of a constant; *absent* where there is no value, None where it is not known."""
    return absent if v is None else known_scalar(v)


def _is_vector(v: Value | None, x: Value) -> bool:
    """Tells whether *v* has one element for each of the last dimension of *x*."""
    return v is not None and v.rank == 1 and v.shape[-1:] == x.shape[-1:]
