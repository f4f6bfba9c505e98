"""Makes equal calls on equal inputs one node, and small equal constants one constant.

a = relu(x); b = relu(x); c = add(a, b)     becomes     a = relu(x); c = add(a, a)
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import LARGEST_COMPARED_CONSTANT
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Deferred, Parameter, Value
from weft.graph.core.type_text import attribute_text
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """Returns *graph* with each distinct call made once."""
    known: dict[object, Sequence[Value]] = {}
    constants = _Constants()

    def merge(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        given = tuple([constants.the_one(v) if isinstance(v, Constant) else v for v in inputs])
        key = (node.op, given, attribute_text(tuple([v for item in node.attributes for v in item])))
        if key in known:
            return known[key]
        same = all(a is b for a, b in zip(given, node.inputs, strict=True))
        known[key] = new.append(node if same else node.with_inputs(given)).outputs
        return known[key]

    return rewrite_graph(graph, merge)


class _Constants:
    """The first constant seen of each contents."""

    def __init__(self) -> None:
        self.first: dict[object, Constant] = {}

    def the_one(self, c: Constant) -> Constant:
        """Returns the constant that stands for all with the contents of *c*; a parameter stands for itself."""
        if isinstance(c, Parameter | Deferred):
            return c
        contents = c.array.tobytes() if c.nbytes <= LARGEST_COMPARED_CONSTANT else id(c.array)
        return self.first.setdefault((c.type, contents), c)
