"""Evaluates at compile time the calls whose operands are all constants.

    y = mul(x, sqrt(2.0))     becomes     y = mul(x, 1.4142135)

A reshape of a constant is a view of the same memory, and so is a transposition of a large one, of which models have as many as
weights. Large results may be left to be computed when they are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from weft.cost import LARGEST_FOLDED_GROWTH, SMALLEST_DEFERRED
from weft.graph.core.evaluator import Evaluator
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Array, Constant, Deferred, Value
from weft.graph.core.symbols import symbols_in
from weft.graph.fusion.node_facts import is_rename
from weft.graph.rewriting.rewriter import Inputs, Rule, rewrite_graph


def fold_constants(graph: Graph, evaluator: Evaluator, *, defer: bool = False) -> Graph:
    """Returns *graph* with each call on constants replaced by its results.

    With *defer*, large ones are constants whose elements are computed when asked for: right where nothing looks at them any more.
    Those of calls on parameters always are.
    Calls whose results exceed the graph's `fold_budget` are left to be computed when the model runs.
    """
    graph.fold_budget.begin(c.nbytes for c in graph.constants())

    def fold(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        given = _operands(node, inputs)
        if given is None:
            return None
        if (view := _view(node, given[0] if given else None)) is not None:
            return [view]
        if not graph.fold_budget.take(_bytes(node)):
            return None
        fixed = all(v is None or v.is_fixed for v in given)
        if len(node.outputs) == 1 and (not fixed or (defer and _bytes(node) >= SMALLEST_DEFERRED)):
            return [_deferred(node, given, evaluator, is_fixed=fixed)]
        if not fixed:
            return None
        results = evaluator.evaluate(node.operator, _arrays(given), node.keywords)
        return [Constant(v.name, a) for v, a in zip(node.outputs, results, strict=True)]

    return rewrite_graph(graph, fold)


def _operands(node: Node, inputs: Inputs) -> list[Constant | None] | None:
    """Returns the operands of a call that can be folded, None for those that are absent; None for any other call."""
    if node.operator.on_host or not all(v is None or isinstance(v, Constant) for v in inputs):
        return None
    given = [v if isinstance(v, Constant) else None for v in inputs]
    return given if _has_known_sizes(node) and not _grows(node, given) else None


def _view(node: Node, weight: Constant | None) -> Constant | None:
    """Returns a constant that a call only moves as a view of its memory: reshaped, or a large weight transposed."""
    if weight is None:
        return None
    if is_rename(node):
        return weight.reshaped(node.output.static_shape or (), node.output.name)
    if (
        node.op != "transpose"
        or isinstance(weight, Deferred)
        or not weight.is_fixed
        or weight.nbytes < LARGEST_FOLDED_GROWTH
    ):
        return None
    return Constant(node.output.name, weight.array.transpose(node.attribute("perm")))


def rewrite_and_fold(graph: Graph, evaluator: Evaluator, *rules: Rule) -> Graph:
    """Returns *graph* rewritten by one of *rules* after another, and its calls on constants then folded by *evaluator*."""
    made = graph
    for rule in rules:
        made = rewrite_graph(made, rule)
    return graph if made is graph else fold_constants(made, evaluator)


def _has_known_sizes(node: Node) -> bool:
    """Tells whether neither the outputs' shapes nor the attributes have a symbolic size."""
    return all(v.static_shape is not None for v in node.outputs) and not symbols_in(node.attributes)


def _grows(node: Node, given: Sequence[Constant | None]) -> bool:
    """Tells whether folding *node* would hold more than it saves.

    A pass that prepares weights has weighed their size; the elements of an operand that stays in use would be held twice, and
    packed ones in more bytes.
    """
    if node.operator.unpacks:
        return True
    if node.operator.prepares:
        return False
    before = sum(v.nbytes for v in given if v is not None)
    return _bytes(node) > (LARGEST_FOLDED_GROWTH if node.operator.keeps_operand else 2 * before + LARGEST_FOLDED_GROWTH)


def _bytes(node: Node) -> int:
    """Returns the bytes of a node's outputs, whose sizes are known."""
    return sum(prod(v.static_shape or ()) * v.dtype.bytes for v in node.outputs)


def _deferred(node: Node, given: Sequence[Constant | None], evaluator: Evaluator, *, is_fixed: bool) -> Deferred:
    """Returns the output of a node on constants as a constant that is computed when its elements are asked for."""
    types = [None if v is None else v.type for v in given]
    fill = evaluator.prepare(node.operator, types, node.keywords)
    return Deferred(node.output.name, node.output.type, lambda out: fill(_arrays(given), [out]), is_fixed=is_fixed)


def _arrays(given: Sequence[Constant | None]) -> list[Array | None]:
    return [None if v is None else v.array for v in given]
