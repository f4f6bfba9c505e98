"""Attention in a graph: two products of matrices, the rows of the first one normalized by a softmax before the second takes them.

    s = matmul(q, k') ...              scores, with whatever element-wise operators scale and mask them
    p = softmax(s) ...
    y = matmul(p, v) ...

On a machine whose blocks of threads share memory, one kernel computes all of it, without the scores ever being in the device's
memory (`schedule.rules.grid.streamed_attention`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from weft.cost import AttentionSizes, size_of
from weft.graph.core.graph import Node
from weft.graph.core.graph_values import Value
from weft.graph.fusion.node_facts import NodeFacts
from weft.ops import normalize_axis
from weft.te import OpClass


@dataclass(frozen=True)
class Surroundings:
    """The state of fusion when it looks for attention: groups so far, users, and the facts of nodes."""

    group: Callable[[Node], Collection[Node]]
    anchor: Mapping[Node, Node]
    users: Mapping[Value, Sequence[Node]]
    roots: Collection[Value]
    facts: Mapping[Node, NodeFacts]

    def product(self, node: Node | None) -> Node | None:
        """Returns the contraction in the group of *node*, if it has one."""
        found = None if node is None else self.anchor.get(node)
        return found if found is not None and self.facts[found].kind is OpClass.COMPLEX_OUT_FUSABLE else None

    def only_user(self, v: Value) -> Node | None:
        """Returns the one node that reads *v*, at one place; None if there are others, or *v* is an output."""
        users = self.users.get(v, ())
        return users[0] if len(users) == 1 and users[0].inputs.count(v) == 1 and v not in self.roots else None

    def result(self, node: Node) -> Value | None:
        """Returns the one value of the group of *node* that is read outside of it."""
        group = self.group(node)
        read = [v for n in group for v in n.outputs if v in self.roots or any(u not in group for u in self.users[v])]
        return read[0] if len(read) == 1 else None


def attention_around(softmax: Node, known: Surroundings) -> list[Node] | None:
    """Returns a node of each group that is one attention with *softmax*, in order; None if there is none.

    Where all that reads the result is a transposition, as of heads that are joined again, or a map of it alone, as a conversion,
    these are the last of them.
    """
    scores = softmax.inputs[0] if softmax.op == "softmax" else None
    if scores is None or normalize_axis(softmax.attribute("axis"), scores.rank) != scores.rank - 1:
        return None
    first, rows = known.product(scores.producer), known.result(softmax)
    after = None if rows is None else known.only_user(rows)
    if first is None or rows is None or after is None or rows.shape != scores.shape:
        return None
    if after is not known.product(after) or known.only_user(scores) is not softmax or known.result(first) is not scores:
        return None
    return [first, softmax, after, *_followers(after, known)]


def _followers(product: Node, known: Surroundings) -> list[Node]:
    """Returns the epilogue of *product*: nodes that read each element once, each the only reader of the one before."""
    found: list[Node] = []
    made = known.result(product)
    while made is not None and (after := known.only_user(made)) is not None and _keeps_elements(after, known):
        found.append(after)
        made = after.output
    return found


def _keeps_elements(node: Node, known: Surroundings) -> bool:
    """Tells whether *node* makes an element of each element that it reads: a transposition, or a map of its one input."""
    if node not in known.facts or len(known.group(node)) > 1:
        return False
    is_map = known.facts[node].is_map and len(node.inputs) == 1
    return node.op == "transpose" or (is_map and len(node.outputs) == 1)


def sizes_of(found: Sequence[Node]) -> AttentionSizes:
    """Returns the sizes of an attention that `attention_around` found; unknown ones as they are guessed."""
    product, softmax, weighted = found[:3]
    scores, query = softmax.output.shape, product.inputs[0]
    assert query is not None  # a product has two factors
    rows, keys = size_of(scores[-2]) if len(scores) > 1 else 1, size_of(scores[-1])
    batch = prod(map(size_of, scores[:-2]))
    depth = prod(map(size_of, query.shape)) // max(1, batch * rows)
    return AttentionSizes(batch, rows, keys, depth, size_of(weighted.output.shape[-1]))
