"""The element-wise nodes behind a node that is computed with some axes merged are computed so, too, and still fuse with it.

    y = relu(f(x) + b)      becomes     t = relu(f'(x) + reshape(b)); y = reshape(t)

The reshapes cost nothing. A pass says which nodes are computed so, and which shapes operands of maps then have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.fusion.node_facts import is_plain_map
from weft.graph.rewriting.rewriter import Inputs
from weft.ir import Expr

Shape: TypeAlias = tuple[Expr, ...]


class MergedAxes(ABC):
    """The values that were computed with axes merged, by the values that stand for them."""

    def __init__(self) -> None:
        self.twins: dict[Value, Value] = {}

    @abstractmethod
    def computed(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns the value of *node* with its axes merged, if it is one of the nodes that the pass is about."""

    @abstractmethod
    def merged_shape(self, shape: Shape, whole: Shape) -> Shape | None:
        """Returns how an operand of *shape* broadcasts to a result whose axes are merged, of *whole* before; None if it can't."""

    def rewrite(self, new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        """Returns the value of *node* computed with its axes merged, in its own shape; None where nothing is to be merged."""
        if len(node.outputs) != 1:
            return None
        twin = self.computed(new, node, inputs)
        if twin is None:
            twin = self._map(new, node, inputs)
        if twin is None:
            return None
        made = new.add("reshape", [twin], shape=node.output.shape, name=node.output.name)
        self.twins[made] = twin
        return [made]

    def merged(self, new: Graph, v: Value, shape: Shape) -> Value:
        """Returns *v* with its axes merged to *shape*."""
        if v.shape == shape:
            return v
        if v not in self.twins:
            self.twins[v] = new.add("reshape", [v], shape=shape)
        return self.twins[v] if self.twins[v].shape == shape else new.add("reshape", [v], shape=shape)

    def _map(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns a map on merged axes; None if no operand is there so, or one can't be read by them."""
        whole, present = node.output.shape, [v for v in inputs if v is not None]
        if not any(v in self.twins and v.shape == whole for v in present) or not is_plain_map(node):
            return None
        shapes = [self.merged_shape(v.shape, whole) for v in present]
        if None in shapes:
            return None
        operands = {v: self._operand(new, v, s, whole) for v, s in zip(present, shapes, strict=True) if s is not None}
        twins = [None if v is None else operands[v] for v in inputs]
        return new.add(node.op, twins, source=node.source, **node.keywords)

    def _operand(self, new: Graph, v: Value, shape: Shape, whole: Shape) -> Value:
        """Returns an operand of a map; reshapes that other maps may share are remembered."""
        if v.shape == whole:
            return self.merged(new, v, shape)
        return v if v.shape == shape else new.add("reshape", [v], shape=shape)
