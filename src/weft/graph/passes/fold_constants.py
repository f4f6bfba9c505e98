"""Computes at compile time what depends on constants alone.

    y = mul(x, sqrt(2.0))     becomes     y = mul(x, 1.4142135)

A reshape of a constant is a view of the same memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from weft.graph.evaluator import Evaluator
from weft.graph.facts import is_rename
from weft.graph.graph import Array, Constant, Graph, Node, Parameter, Value
from weft.graph.groups import symbols_in
from weft.graph.rewriting import Inputs, rewrite_graph

LARGEST_GROWTH = 1 << 20
"""Bytes by which the result of a folded call may exceed its operands: an expanded scalar is better left to the kernel."""

PREPARED = frozenset({"pack_winograd_weight"})
"""Operators that a pass chose knowing how large their results are: computing them at run time would defeat the purpose."""

VIEWS = frozenset({"unpack_matrix"})
"""Operators that read a large constant as another one; to fold them would hold its elements twice."""


def fold_constants(graph: Graph, evaluator: Evaluator) -> Graph:
    """Returns *graph* with each call on constants (parameters excepted) replaced by its results."""

    def fold(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        if not all(v is None or (isinstance(v, Constant) and not isinstance(v, Parameter)) for v in inputs):
            return None
        arrays = [v.array if isinstance(v, Constant) else None for v in inputs]
        shapes = [v.static_shape for v in node.outputs]
        if any(s is None for s in shapes) or symbols_in(node.attributes) or _grows(node, arrays):
            return None
        results = _results(node, arrays, evaluator)
        return [Constant(v.name, a) for v, a in zip(node.outputs, results, strict=True)]

    return rewrite_graph(graph, fold)


def _grows(node: Node, arrays: Sequence[Array | None]) -> bool:
    if node.op in PREPARED:
        return False
    before = sum(a.nbytes for a in arrays if a is not None)
    after = sum(prod(v.static_shape or ()) * v.dtype.bytes for v in node.outputs)
    return after > (LARGEST_GROWTH if node.op in VIEWS else 2 * before + LARGEST_GROWTH)


def _results(node: Node, arrays: Sequence[Array | None], evaluator: Evaluator) -> list[Array]:
    if is_rename(node) and arrays[0] is not None:
        return [arrays[0].reshape(node.output.static_shape or ())]
    return evaluator.evaluate(node.operator, arrays, node.keywords)
