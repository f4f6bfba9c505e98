"""Computes attention by blocks of rows: the scores of a block stay in cache, and those of all heads are never in memory.

    y = matmul(softmax(matmul(q, k') * c + m), v)     becomes     for each head:
                                                                      for each block of rows of q (and m):
                                                                          y = matmul(softmax(matmul(q, k') * c + m), v)

Softmax moves each score several times, which for many keys is from memory, and as long as the products take. A block has all keys
of its rows, so that its softmax is what it was (an online softmax, as in Dao et al., "FlashAttention", 2022, pays where scores
have to fit registers; the second level of cache holds the rows of tens of thousands of keys). Heads and blocks are loops of
control flow, whose bodies go through all passes: keys and values are packed once a head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Final

from weft.cost import AttentionBlock, AttentionSizes, Planner, attention_block_plans, subject_of
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.fusion.node_facts import is_plain_map
from weft.graph.regions.stacked_rows import stacked_rows
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE
from weft.ops import normalize_axis

MATRIX: Final = 2
"""Dimensions of the scores of one head."""


@dataclass(frozen=True)
class _Attention:
    """The product of queries and keys, the maps of the scores, softmax and the maps of weights, and the product with values."""

    nodes: tuple[Node, ...]

    @property
    def scores(self) -> tuple[int, ...]:
        """The shape of the scores."""
        return self.nodes[0].output.static_shape or ()

    @property
    def sizes(self) -> AttentionSizes:
        """The sizes that its blocks are chosen by; heads are its batch."""
        q, _ = _factors(self.nodes[0])
        *heads, rows, keys = self.scores
        depth, columns = (v.static_shape or (0,) for v in (q, self.nodes[-1].output))
        return AttentionSizes(prod(heads), rows, keys, depth[-1], columns[-1])


@dataclass(frozen=True)
class _Operand:
    """A *value* whose dimension `dims[k]` is dimension k of the scores, or of a factor; None where it broadcasts along that."""

    value: Value
    dims: tuple[int | None, ...]

    def element(self, graph: Graph, step: Value | None) -> _Operand:
        """Returns the operand at the index *step* of its first dimension; without one, that is of one element."""
        d, *rest = self.dims
        if d is None:
            return replace(self, dims=tuple(rest))
        dims = tuple([e if e is None or e < d else e - 1 for e in rest])
        if step is not None and self.value.shape[d] is not ONE:
            return _Operand(graph.add("element_at", [self.value, step], axis=d), dims)
        shape = (*self.value.shape[:d], *self.value.shape[d + 1 :])
        return _Operand(graph.add("reshape", [self.value], shape=shape), dims)

    def block(self, graph: Graph, step: Value, rows: int) -> _Operand:
        """Returns its block of so many *rows*, of its first dimension, that has the number *step*."""
        d = self.dims[0]
        size = None if d is None else self.value.static_shape
        if d is None or size is None or size[d] == 1:
            return self
        shape = (*size[:d], size[d] // rows, rows, *size[d + 1 :])
        blocks = graph.add("reshape", [self.value], shape=shape)
        return replace(self, value=graph.add("element_at", [blocks, step], axis=d))

    def plain(self, graph: Graph) -> Value:
        """Returns it as a value whose dimensions are in order."""
        known = tuple([d for d in self.dims if d is not None])
        in_order = known == tuple(sorted(known))
        return self.value if in_order else graph.add("transpose", [self.value], perm=known)


Operands = Mapping[Value, _Operand]


def block_attention(graph: Graph, planner: Planner) -> Graph:
    """Returns *graph* with attention in loops over heads and blocks of rows, where *planner* decides so."""
    users = graph.users()
    found = {a.nodes[-1]: a for n in graph.nodes if (a := _attention_around(n, users, graph.roots)) is not None}
    if not found:
        return graph

    known: dict[Value, Value] = {}

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        known.update((a, b) for a, b in zip(node.inputs, inputs, strict=True) if a is not None and b is not None)
        attention = found.get(node)
        if attention is None:
            return None
        plans = partial(attention_block_plans, attention.sizes, node.output.dtype.bytes)
        rows = planner.decide(subject_of(node.output.name), AttentionBlock, plans).rows
        if rows == 0:
            return None
        made = _over_heads(new, attention, _operands(attention, known), attention.scores, rows)
        return [new.add("reshape", [made], shape=node.output.shape, name=node.output.name)]

    return rewrite_graph(graph, rule)


def _attention_around(
    softmax: Node, users: Mapping[Value, Sequence[Node]], roots: Sequence[Value]
) -> _Attention | None:
    """Returns the attention with *softmax*, None if there is none of known sizes whose keys and values are computed."""
    x = softmax.inputs[0] if softmax.op == "softmax" else None
    if x is None or x.static_shape is None or x.rank < MATRIX:
        return None

    def only_user(v: Value) -> Node | None:
        read = users.get(v, ())
        return read[0] if len(read) == 1 and v not in roots and v.shape == x.shape else None

    scores = _from_product(x, only_user)
    weights = _maps_after(softmax, only_user)
    last = weights[-1].output
    after = only_user(last)
    if not scores or normalize_axis(softmax.attribute("axis"), x.rank) != x.rank - 1:
        return None
    if after is None or after.op != "matmul" or after.inputs[0] is not last or not _keeps_rows(after, x):
        return None
    is_known = any(isinstance(_source(_factors(n)[1])[0], Constant) for n in (scores[0], after))
    return None if is_known else _Attention((*scores, *weights, after))


def _from_product(v: Value, only_user: Callable[[Value], Node | None]) -> list[Node]:
    """Returns the product of which maps, that each are read by the next alone, make *v*, and these maps; nothing if none does."""
    node = v.producer
    if node is None or only_user(v) is None:
        return []
    if node.op == "matmul":
        return [node]
    paths = [_from_product(i, only_user) for i in node.inputs if i is not None] if is_plain_map(node) else []
    found = next((path for path in paths if path), None)
    return [] if found is None else [*found, node]


def _maps_after(node: Node, only_user: Callable[[Value], Node | None]) -> list[Node]:
    """Returns *node* and the maps after it, of which each alone reads the result of the one before."""
    found = [node]
    while (
        (after := only_user(found[-1].output)) is not None
        and is_plain_map(after)
        and after.output.rank == node.output.rank
    ):
        found.append(after)
    return found


def _keeps_rows(product: Node, scores: Value) -> bool:
    """Tells whether a product has the rows of *scores*, of known columns, and no batch that these do not have."""
    y = product.output
    return y.static_shape is not None and y.rank == scores.rank and y.shape[:-1] == scores.shape[:-1]


def _factors(product: Node) -> tuple[Value, Value]:
    a, b = product.inputs
    assert a is not None  # a product has two factors
    assert b is not None
    return a, b


def _source(v: Value) -> tuple[Value, tuple[int, ...]]:
    """Returns the value that *v* is a transposition of, and the order; *v* itself in its own order if it is none."""
    node = v.producer
    if node is not None and node.op == "transpose" and node.inputs[0] is not None:
        return node.inputs[0], tuple(node.attribute("perm"))
    return v, tuple(range(v.rank))


def _operands(attention: _Attention, known: Mapping[Value, Value]) -> dict[Value, _Operand]:
    """Returns the operands that *attention* reads from outside, in the graph in which *known* stands for the values of before."""
    own = {v for n in attention.nodes for v in n.outputs}
    found: dict[Value, _Operand] = {}
    for v in dict.fromkeys(v for n in attention.nodes for v in n.inputs if v is not None and v not in own):
        source, order = _source(v)
        missing = (None,) * (len(attention.scores) - v.rank)
        found[v] = _Operand(known.get(source, source), (*missing, *order))
    return found


def _over_heads(graph: Graph, attention: _Attention, given: Operands, sizes: Sequence[int], rows: int) -> Value:
    """Returns the attention of scores of *sizes*, one after another along the first dimension unless only a matrix is left."""
    if len(sizes) == MATRIX:
        return _over_blocks(graph, attention, given, sizes[0], rows)
    if sizes[0] == 1:
        return _over_heads(graph, attention, _elements(graph, given, None), sizes[1:], rows)

    def of_one(body: Graph, step: Value) -> Value:
        return _over_heads(body, attention, _elements(body, given, step), sizes[1:], rows)

    return stacked_rows(graph, sizes[0], of_one, attention.nodes[-1].source)


def _elements(graph: Graph, given: Operands, step: Value | None) -> dict[Value, _Operand]:
    return {v: operand.element(graph, step) for v, operand in given.items()}


def _over_blocks(graph: Graph, attention: _Attention, given: Operands, size: int, rows: int) -> Value:
    """Returns the attention of a matrix of scores of *size* rows, in blocks of *rows*."""
    if rows == size:
        return _of_matrix(graph, attention, given)
    whole = {_factors(attention.nodes[0])[1], _factors(attention.nodes[-1])[1]}  # keys and values

    def of_one(body: Graph, step: Value) -> Value:
        own = {v: operand if v in whole else operand.block(body, step, rows) for v, operand in given.items()}
        return _of_matrix(body, attention, own)

    blocks = stacked_rows(graph, size // rows, of_one, attention.nodes[-1].source)
    return graph.add("reshape", [blocks], shape=(size, blocks.shape[-1]))


def _of_matrix(graph: Graph, attention: _Attention, given: Operands) -> Value:
    """Returns the attention of one matrix of scores."""
    made = {v: operand.plain(graph) for v, operand in given.items()}
    for node in attention.nodes:
        keywords = {**node.keywords, "axis": 1} if node.op == "softmax" else node.keywords
        inputs = [None if v is None else made[v] for v in node.inputs]
        made[node.output] = graph.add(node.op, inputs, source=node.source, **keywords)
    return made[attention.nodes[-1].output]
