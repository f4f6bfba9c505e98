"""Control flow of TensorFlow 1, and such as is lowered to it, as calls of functions, which is how TensorFlow 2 writes it.

    Enter, Merge, LoopCond, Switch, body, NextIteration, Exit   ->   While(cond, body)
    Switch, branches, Merge                                     ->   If(then_branch, else_branch)

Loops come first, the inner ones before those around them; then branches, the outer ones first. Nodes of other shapes stay as they
are. The operators are described in Yu et al., "Dynamic Control Flow in Large-Scale Machine Learning", 2018, section 4.
"""

from __future__ import annotations

from dataclasses import replace

from weft.frontends.tensorflow.file.graph_def import FLOW, GraphDef
from weft.frontends.tensorflow.file.model_files import SourceModel
from weft.frontends.tensorflow.functions_of_branches import with_branches
from weft.frontends.tensorflow.functions_of_loops import with_loops
from weft.frontends.tensorflow.made_functions import Functions, Nodes, kind


def structured(source: SourceModel) -> SourceModel:
    """Returns a model whose branches and loops are calls of functions, where they have such a shape."""
    if not any(kind(n) in FLOW for n in source.graph.nodes):
        return source
    functions = Functions(dict(source.graph.functions))
    nodes: Nodes = {n.name: n for n in source.graph.nodes}
    with_loops(nodes, functions)
    with_branches(nodes, list(source.outputs.values()), functions)
    return replace(source, graph=GraphDef(list(nodes.values()), functions.made))
