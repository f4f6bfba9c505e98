"""Packs weights of few bits into panels without expanding them: the kernels that multiply by them unpack the bits.

y = matmul_bits(x, q, s, z)     becomes     y = matmul_bits_packed(x, pack_bits(q), pack_bits(s), pack_bits(z))
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from weft.cost import Panel, Planner, TakenApart, low_bit_panel_plans, subject_of, taken_apart_plans
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.passes.quantized.quantized_patterns import product_rows
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph


def pack_low_bits(graph: Graph, planner: Planner) -> Graph:
    """Returns *graph* with its products by constant weights of few bits on panels of them."""
    packed: dict[tuple[Value, int], Value] = {}

    def in_panels(new: Graph, v: Value, block: int) -> Value:
        key = (v, block)
        if key not in packed:
            packed[key] = new.add("pack_bits", [v], name=f"{v.name}_packed", block=block)
        return packed[key]

    def rewrite(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        if node.op != "matmul_bits" or not isinstance(inputs[1], Constant):
            return None
        a, q, *rest = inputs
        assert q is not None  # it is a constant
        columns = q.static_shape[0] if q.static_shape else 1
        plans = partial(low_bit_panel_plans, columns)
        block = planner.decide(subject_of(q.name), Panel, plans).columns
        rows = product_rows(node)
        apart = planner.decide(subject_of(node.output.name), TakenApart, lambda m: taken_apart_plans(rows, m))
        operands = [a, *[None if v is None else in_panels(new, v, block) for v in (q, *rest)]]
        attributes = {"bits": node.attribute("bits"), "columns": columns, "by_panels": apart.by_panels}
        return [new.add("matmul_bits_packed", operands, source=node.source, name=node.output.name, **attributes)]

    return rewrite_graph(graph, rewrite)
