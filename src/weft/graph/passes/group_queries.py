"""Multiplies the queries that share a head of keys or values by that head at once, in the place of copies of it for each query.

    r = reshape(expand(reshape(k, (b, h, 1, n, d)), (b, h, g, n, d)), (b, h * g, n, d))
    y = matmul(a, r)                                   with a: f32[b, h * g, m, n]

becomes

    y = reshape(matmul(reshape(a, (b, h, g * m, n)), k), (b, h * g, m, d))

and likewise where r is transposed in its last two dimensions. Grouped-query attention (Ainslie et al., "GQA", EMNLP 2023) has
fewer heads of keys and values than of queries, and exporters repeat them. Here nothing is repeated, and each element is read once
for all queries that share it.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE, Const
from weft.ops import normalize_axis, simplify_size


def group_queries(graph: Graph) -> Graph:
    """Returns *graph* without repeated heads of keys and values."""

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        a, b = inputs if node.op == "matmul" else (None, None)
        if a is None or b is None or a.rank != b.rank or a.rank < 3:
            return None
        turned = _turned(b)
        repeated = b if turned is None else turned
        heads = _heads(repeated)
        if heads is None or a.shape[:-2] != repeated.shape[:-2]:
            return None
        count, group = heads.shape[-3], simplify_size(repeated.shape[-3] // heads.shape[-3])
        if not isinstance(count, Const) or not isinstance(group, Const):
            return None
        rows = (*a.shape[:-3], count, simplify_size(group * a.shape[-2]), a.shape[-1])
        right, name = heads, node.output.name
        if turned is not None:
            right = new.add("transpose", [heads], name=f"{heads.name}_turned", perm=_swapped(b.rank))
        grouped = new.add("reshape", [a], name=f"{a.name}_grouped", shape=rows)
        made = new.add("matmul", [grouped, right], source=node.source, name=f"{name}_grouped", **dict(node.attributes))
        return [new.add("reshape", [made], name=name, shape=node.output.shape)]

    return rewrite_graph(graph, rule)


def _swapped(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)


def _turned(v: Value) -> Value | None:
    """Returns the operand of a transposition of the last two dimensions; None where *v* is none."""
    is_swap = (
        v.producer is not None and v.producer.op == "transpose" and v.producer.attribute("perm") == _swapped(v.rank)
    )
    return _made_by(v, "transpose") if is_swap else None


def _heads(v: Value) -> Value | None:
    """Returns the heads that *v* has each of several times, one after another, in its third dimension from the last."""
    heads = _made_by(v, "repeat")
    if v.producer is not None and heads is not None:
        return heads if normalize_axis(v.producer.attribute("axis"), v.rank) == v.rank - 3 else None
    wide = _made_by(v, "reshape")
    narrow = _made_by(wide, "expand")
    heads = _made_by(narrow, "reshape")
    if wide is None or narrow is None or heads is None or heads.rank != v.rank or wide.rank != v.rank + 1:
        return None
    *batch, count, rows, depth = heads.shape
    one_each, groups = (*batch, count, ONE, rows, depth), (*batch, count, wide.shape[-3], rows, depth)
    joined = (*batch, simplify_size(count * wide.shape[-3]), rows, depth)
    return heads if (narrow.shape, wide.shape, v.shape) == (one_each, groups, joined) else None


def _made_by(v: Value | None, op: str) -> Value | None:
    """Returns the first input of the node that makes *v*, if that is an *op*."""
    node = None if v is None else v.producer
    return node.inputs[0] if node is not None and node.op == op else None
