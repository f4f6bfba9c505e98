"""Multiplies by rows of pages, which a table chooses, where they lie: no copy is made of them for each call.

    k = slice(reshape(gather(pages, table), (n * page, heads, depth)), 0, length)
    y = einsum(q, k)                          becomes     y = einsum(q, gather_pages(pages, table, rows=length))

Caches of several conversations are kept so (Kwon et al., "Efficient memory management for large language model serving with
PagedAttention", SOSP 2023). A product of one row reads each element of its operand once, and takes in what looks the pages up; of
more rows it reads them from a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.fusion.node_facts import facts_of
from weft.graph.passes.states.first_rows import first_rows_axis
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE, Const, Expr
from weft.ops import same_size


def read_pages(graph: Graph) -> Graph:
    """Returns *graph* with `gather_pages` in the place of the operands of products that are gathered and read once."""

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        once = [] if node.operator.has_regions else facts_of(node).once
        given = list(inputs)
        for i, (v, dims) in enumerate(zip(inputs, once, strict=False)):
            if v is not None and dims is not None:
                given[i] = _looked_up(new, v) or v
        if given == list(inputs):
            return None
        names, types = [v.name for v in node.outputs], [v.type for v in node.outputs]
        return new.append(Node(node.operator, tuple(given), node.attributes, types, names, node.source)).outputs

    return rewrite_graph(graph, rule)


def _looked_up(new: Graph, v: Value) -> Value | None:
    """Returns *v* made of `gather_pages`, where it is gathered pages, transposed or not; else None."""
    node = v.producer
    if node is None:
        return None
    if node.op in ("transpose", "tie_shape") and node.inputs[0] is not None:
        below = _looked_up(new, node.inputs[0])
        return None if below is None else new.add(node.op, [below], source=node.source, **node.keywords)
    found = _pages(v)
    if found is None:
        return None
    pages, table, axis = found.pages, found.table, found.axis
    if pages.shape != found.shape:
        pages = new.add("reshape", [pages], source=node.source, shape=found.shape)
    if table.shape[:-1] != found.lead:
        table = new.add("reshape", [table], source=node.source, shape=(*found.lead, table.shape[-1]))
    return new.add("gather_pages", [pages, table], source=node.source, name=v.name, rows=found.rows, axis=axis)


@dataclass(frozen=True)
class _Pages:
    """Rows of *pages*, in the *shape* given, that *table* chooses; *lead* are the dimensions of the result before the rows."""

    pages: Value
    table: Value
    axis: int
    shape: tuple[Expr, ...]
    lead: tuple[Expr, ...]
    rows: Expr


def _pages(v: Value) -> _Pages | None:
    """Returns the pages whose rows *v* is: it is gathered, and its dimension of pages joined to that of their rows."""
    cut = None if v.producer is None else first_rows_axis(v.producer)
    joined = v if cut is None else _first_input(v, "slice")
    before = _first_input(joined, "reshape")
    found = None if joined is None or before is None else _gathered(joined, before)
    if found is None or cut not in (None, len(found.lead)):
        return None
    return replace(found, rows=v.shape[len(found.lead)])


def _gathered(joined: Value, before: Value) -> _Pages | None:
    """Returns the rows *joined* of pages *before* they are joined, which are gathered, and may be transposed since."""
    turned = _first_input(before, "transpose")
    gather = (before if turned is None else turned).producer
    if gather is None or gather.op != "gather":
        return None
    pages, table = gather.inputs
    if pages is None or table is None or not table.rank or gather.attribute("axis") % pages.rank:
        return None
    axis = 1 if turned is None else _axis_of_rows(before, table.rank)
    return None if axis is None else _joined(pages, table, axis, before, joined)


def _first_input(v: Value | None, op: str) -> Value | None:
    """Returns the operand of which *op* makes *v*; None where another operator does."""
    node = None if v is None else v.producer
    return node.inputs[0] if node is not None and node.op == op else None


def _axis_of_rows(turned: Value, lead: int) -> int | None:
    """Returns the dimension of pages that a transposition of gathered ones brings to the front; the others keep their order."""
    assert turned.producer is not None
    perm = turned.producer.attribute("perm")
    rest = [d for d in range(lead, len(perm)) if d != perm[lead]]
    return perm[lead] - lead + 1 if list(perm) == [*range(lead), perm[lead], *rest] else None


def _joined(pages: Value, table: Value, axis: int, before: Value, joined: Value) -> _Pages | None:
    """Returns the rows *joined*, which are a reshape of the gathered pages *before*."""
    count, rest = table.shape[-1] * pages.shape[axis], before.shape[table.rank + 1 :]
    for k, size in enumerate(joined.shape):
        lead, tail = joined.shape[:k], joined.shape[k + 1 :]
        if same_size(size, count) and _same(_longer(lead), _longer(table.shape[:-1])):
            if _same(tail, rest):
                return _Pages(pages, table, axis, pages.shape, lead, size)
            if axis == 1 and _elements(tail) == _elements(rest) is not None:
                return _Pages(pages, table, axis, (*pages.shape[:2], *tail), lead, size)
    return None


def _longer(shape: Sequence[Expr]) -> list[Expr]:
    return [s for s in shape if s is not ONE]


def _same(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return len(a) == len(b) and all(same_size(m, n) for m, n in zip(a, b, strict=True))


def _elements(shape: Sequence[Expr]) -> int | None:
    sizes = [int(s.value) for s in shape if isinstance(s, Const)]
    return prod(sizes) if len(sizes) == len(shape) else None
