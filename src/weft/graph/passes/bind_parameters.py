"""Makes the parameters that kernels read as they lie inputs of the model: these are held once, by the caller.

    z = add(matmul_packed(x, W_packed), b)     where b is a parameter, reads it from an input of its name

A parameter of which only a packed form is read needs no input: that form is computed again when the parameter has changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Parameter, Value
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph


def bind_parameters(graph: Graph) -> Graph:
    """Returns *graph* with an input for each parameter that is an operand, after the other inputs and before the states.

    The inputs have the parameters' names. Parameters that are read by regions alone, or are outputs, stay constants.
    """
    inputs: dict[Parameter, Value] = {}

    def bind(new: Graph, node: Node, given: Inputs) -> Sequence[Value] | None:
        read = [v for v in given if isinstance(v, Parameter)]
        if not read:
            return None
        for p in read:
            if p not in inputs:
                inputs[p] = new.input(p.name, p.extents, p.dtype)
                new.inputs.insert(len(new.inputs) - 1 - len(new.states), new.inputs.pop())
        return new.append(
            node.with_inputs(tuple([inputs.get(v, v) if isinstance(v, Parameter) else v for v in given]))
        ).outputs

    return rewrite_graph(graph, bind)
