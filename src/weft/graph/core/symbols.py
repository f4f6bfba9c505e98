"""The symbolic sizes that nodes use: in their shapes, and in their attributes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.graph.core.graph import Graph, Node
from weft.ir import Const, Expr, Var, free_vars


def symbols_in(attribute: object) -> Sequence[Expr]:
    """Returns the non-constant expressions in an attribute, or in a tuple of attributes."""
    if isinstance(attribute, tuple):
        return [e for a in attribute for e in symbols_in(a)]
    if isinstance(attribute, Graph):  # a nested graph declares its late sizes itself
        own = {late.size for late in attribute.late_sizes}
        of_inputs = variables_of([s for v in attribute.inputs for s in v.shape])
        used = [*[v for n in attribute.nodes for v in sizes_of(n)], *of_inputs]
        return [v for v in used if v not in own]
    return [attribute] if isinstance(attribute, Expr) and not isinstance(attribute, Const) else []


def variables_of(exprs: Iterable[Expr]) -> set[Var]:
    """Returns the variables in *exprs*."""
    return {v for e in exprs for v in free_vars(e)}


def sizes_of(node: Node) -> set[Var]:
    """Returns the symbolic sizes in the shapes of a node's inputs and outputs, and in its attributes."""
    shapes = [s for v in (*node.inputs, *node.outputs) if v is not None for s in v.shape]
    return variables_of([*shapes, *[e for _, a in node.attributes for e in symbols_in(a)]])
