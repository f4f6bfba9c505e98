"""Rounds the result of a reduction in the kernel that computes it, where others read it as it is.

    y = layer_norm(x)                        y, z = with_rounded(layer_norm(x))
    z = cast(y, bf16)           becomes
    w = f(z) + y                             w = f(z) + y

Activations of float32 that products take in fewer bits, and residual connections as they are, are written in both types at once:
no kernel reads them to round them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.fusion.node_facts import facts_of
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.support.dtypes import DType
from weft.te import OpClass, is_narrow


def round_beside(graph: Graph) -> Graph:
    """Returns *graph* with results of reductions that are read as they are, and rounded, made as two results."""
    users = graph.users()
    rounded: dict[Value, DType] = {}
    for n in graph.nodes:
        x = _before_rounding(n)
        if x is not None and (len(users[x]) > 1 or x in graph.roots) and _is_reduced(x):
            rounded.setdefault(x, n.output.dtype)
    return rewrite_graph(graph, _Beside(rounded).rewrite) if rounded else graph


def _before_rounding(n: Node) -> Value | None:
    """Returns the value that *n* rounds, to a narrow type or to tf32; None where it does something else."""
    x = n.inputs[0] if n.op in ("cast", "round_tf32") else None
    if x is None or n.op == "round_tf32":
        return x
    return x if x.dtype.is_float and not is_narrow(x.dtype) and is_narrow(n.output.dtype) else None


def _is_reduced(x: Value) -> bool:
    """Tells whether *x* is the result of a node that reduces rows, and no product of matrices."""
    return x.producer is not None and facts_of(x.producer).kind is OpClass.REDUCTION and len(x.producer.outputs) == 1


class _Beside:
    """The twins, of fewer bits, of the values of *rounded*: each is made with its value."""

    def __init__(self, rounded: Mapping[Value, DType]) -> None:
        self.rounded = rounded
        self.twins: dict[Value, Value] = {}

    def rewrite(self, new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        """Returns the result of a reduction that has a twin, or that twin in the place of a conversion."""
        if (x := _before_rounding(node)) in self.twins and x is not None:
            return [self.twins[x]] if self.twins[x].dtype is node.output.dtype else None
        if len(node.outputs) != 1 or node.output not in self.rounded:
            return None
        made, dtype = new.append(node.with_inputs(inputs)).output, self.rounded[node.output]
        names = [f"{made.name}_kept", f"{made.name}_{dtype}"]
        kept, twin = new.add_many("with_rounded", [made], names=names, dtype=dtype, source=node.source)
        self.twins[node.output] = twin
        return [kept]
