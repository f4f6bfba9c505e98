"""Looks functions of one byte up in a table of their 256 results, where computing them takes longer.

    cast(clip(round(sigmoid((x - 128) * 0.02) / 0.004), 0, 255), u8)     becomes     gather(table, cast(x, i32))

Quantised models have their activation functions between a dequantisation and a quantisation, which nothing folds. The table is
computed by the same operators, so that results are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.cost import LARGEST_GROUP, Planner, Tabulate, operations_of, subject_of, table_plans
from weft.graph.core.evaluator import Evaluator
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Array, Constant, Value
from weft.graph.fusion.node_facts import is_plain_map
from weft.graph.passes.quantized.quantized_patterns import BYTES
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import Expr
from weft.ops import TensorType
from weft.support.dtypes import i32, u8
from weft.te import Compute, topological

ALL_BYTES: Final = np.arange(1 << u8.bits, dtype=np.uint8)


def tabulate_bytes(graph: Graph, evaluator: Evaluator, planner: Planner) -> Graph:
    """Returns *graph* with functions from bytes to bytes as tables, where *planner* decides so; grids compute them."""
    if planner.is_grid:
        return graph

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        found = _function_of_a_byte(node, inputs)
        if found is None:
            return None
        operations = sum(_operations(n) for n, _ in found.calls)
        choice = planner.decide(subject_of(node.output.name), Tabulate, lambda m: table_plans(operations, m))
        if not choice.table:
            return None
        table = Constant(new.fresh_name("table"), found.results(evaluator))
        pattern = found.x if found.x.dtype is u8 else new.add("cast", [found.x], dtype=u8)
        places = new.add("cast", [pattern], dtype=i32)
        return [new.add("gather", [table, places], axis=0, source=node.source, name=node.output.name)]

    return rewrite_graph(graph, rule)


@dataclass(frozen=True)
class _ByteFunction:
    """A function of the element of *x* at the same index, as *calls*: nodes in their order, with their inputs."""

    x: Value
    calls: Sequence[tuple[Node, Inputs]]

    def results(self, evaluator: Evaluator) -> Array:
        """Returns the result for each byte, in the order of their bit patterns."""
        known: dict[Value, Array] = {self.x: ALL_BYTES.view(self.x.dtype.numpy)}
        for node, inputs in self.calls:
            given = [v.array.reshape(()) if isinstance(v, Constant) else known.get(v) if v else None for v in inputs]
            (known[node.output],) = evaluator.evaluate(node.operator, given, node.keywords)
        return known[self.calls[-1][0].output]


def _function_of_a_byte(node: Node, inputs: Inputs) -> _ByteFunction | None:
    """Returns the function of a byte that *node*, of the inputs *inputs*, is the end of; None where it is none."""
    if node.output.dtype not in BYTES or not _is_scalar_function(node, node.output.shape):
        return None
    shape = node.output.shape
    calls: dict[Value, tuple[Node, Inputs]] = {}
    bytes_read: set[Value] = set()
    stack = [(node, inputs)]
    while stack:
        operands = [v for v in _operands(stack[-1][1]) if v not in calls]
        bytes_read |= {v for v in operands if v.dtype in BYTES and v.shape == shape}
        producers = [v.producer for v in operands if v not in bytes_read]
        if (
            len(bytes_read) > 1
            or len(stack) > LARGEST_GROUP
            or not all(_is_scalar_function(p, shape) for p in producers)
        ):
            return None
        stack += [(p, p.inputs) for p in producers if p is not None]
        if not producers:
            user, given = stack.pop()
            calls[user.output] = user, given
    return _ByteFunction(bytes_read.pop(), list(calls.values())) if bytes_read else None


def _is_scalar_function(node: Node | None, shape: tuple[Expr, ...]) -> bool:
    """Tells whether *node* applies one function of scalars to each element, and nothing else, of tensors of *shape*."""
    return node is not None and len(node.outputs) == 1 and is_plain_map(node) and node.output.shape == shape


def _operands(inputs: Inputs) -> list[Value]:
    """Returns the inputs but constants of one element."""
    return [v for v in inputs if v is not None and not (isinstance(v, Constant) and v.is_fixed and v.size == 1)]


def _operations(node: Node) -> float:
    """Returns the arithmetic instructions of *node* for one element."""
    scalars = [None if v is None else TensorType((), v.dtype) for v in node.inputs]
    formulas = [op for op in topological(node.operator.formulas(scalars, node.keywords)[1]) if isinstance(op, Compute)]
    return sum(operations_of(value, fma=True) for op in formulas for value in op.values)
