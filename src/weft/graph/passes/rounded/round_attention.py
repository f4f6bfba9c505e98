"""Rounds the factors of attention of float32 to bf16, which `precision="bf16"` allows, where fragments are faster.

    s = matmul(q, k)                          s = matmul_summed(cast(q, bf16), cast(k, bf16))
    p = softmax(f(s))            becomes      p = softmax(f(s))
    y = matmul(p, v)                          y = matmul_summed(p, cast(v, bf16))

Scores, the softmax and sums stay float32. A factor is rounded where it is computed, before it is cut in heads and transposed, so
that it becomes part of the epilogue of the product that makes it, which then writes half as many bytes. A scale of a factor is
a scale of the scores, which are not rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from weft.cost import Planner, RoundedAttention, rounded_attention_plans, size_of, subject_of
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.fusion.attention import sizes_of
from weft.graph.fusion.node_facts import facts_of, is_rename
from weft.graph.rewriting.call_patterns import known_scalar
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ops import normalize_axis
from weft.support.dtypes import bf16, f32
from weft.te import OpClass


@dataclass(frozen=True)
class _Attention:
    """Both products of an attention, and the softmax between them."""

    scores: Node
    softmax: Node
    weighted: Node

    @property
    def factors(self) -> list[Value]:
        """Queries, keys and values."""
        return [v for v in (*self.scores.inputs, self.weighted.inputs[1]) if v is not None]


def round_attention(graph: Graph, planner: Planner) -> Graph:
    """Returns *graph* with factors of attention on a grid rounded to bf16, where *planner* decides so."""
    if not planner.is_grid:
        return graph
    found = _Finding(graph)
    rounded = [a for n in graph.nodes if (a := found.attention(n)) is not None and _pays(a, found, planner)]
    return rewrite_graph(graph, _Rounding(rounded).rewrite) if rounded else graph


def _pays(a: _Attention, found: _Finding, planner: Planner) -> bool:
    """Tells whether rounded factors are faster."""
    sizes, paths = sizes_of([a.scores, a.softmax, a.weighted]), [_Path(v) for v in a.factors]
    readers = {n for p in paths for n in (a.scores, a.weighted, *p.nodes)}
    stored = dict.fromkeys(p.base for p in paths if not found.is_made_for(p, readers))
    plans = partial(rounded_attention_plans, sizes, stored=tuple([prod(map(size_of, v.shape)) for v in stored]))
    return planner.decide(subject_of(a.softmax.output.name), RoundedAttention, plans).rounded


class _Finding:
    """Looks for attention in a graph."""

    def __init__(self, graph: Graph) -> None:
        self.users = graph.users()
        self.roots = set(graph.roots)

    def attention(self, softmax: Node) -> _Attention | None:
        """Returns the attention of several heads that *softmax* is a part of; None if it is none of float32."""
        before = softmax.inputs[0] if softmax.op == "softmax" else None
        if before is None or normalize_axis(softmax.attribute("axis"), before.rank) != before.rank - 1:
            return None
        scores, weighted = self._made_by(softmax), self._read_by(softmax)
        if scores is None or weighted is None:
            return None
        made = _Attention(scores, softmax, weighted)
        return made if all(v.dtype is f32 and v.rank >= 3 for v in made.factors) else None

    def is_made_for(self, path: _Path, readers: set[Node]) -> bool:
        """Tells whether the base of *path* is the result of a product or a reduction for *readers* alone, on any way to them."""
        values = [path.base, *[n.output for n in path.nodes]]
        is_alone = all(v not in self.roots and readers.issuperset(self.users[v]) for v in values)
        return is_alone and self._is_reduced(path.base)

    def _is_reduced(self, v: Value) -> bool:
        """Tells whether *v* is a product or a reduction, or what its element-wise followers make."""
        while _is_map(v) and v.producer is not None:
            own = [x for x in v.producer.inputs if x is not None and x.producer is not None and x.shape == v.shape]
            own = [x for x in own if self._only_user(x) is v.producer]
            if len(own) != 1:
                return False
            v = own[0]
        return v.producer is not None and OpClass.REDUCTION <= facts_of(v.producer).kind < OpClass.OPAQUE

    def _only_user(self, v: Value) -> Node | None:
        users = self.users.get(v, ())
        return users[0] if len(users) == 1 and v not in self.roots else None

    def _made_by(self, softmax: Node) -> Node | None:
        """Returns the product whose results, scaled and masked, *softmax* normalizes."""
        node, shape = softmax, softmax.output.shape
        while True:
            same = [v for v in node.inputs if v is not None and v.producer is not None and v.shape == shape]
            own = [v for v in same if self._only_user(v) is node and (_is_product(v) or _is_map(v))]
            if len(own) != 1 or own[0].producer is None:
                return None
            if _is_product(own[0]):
                return own[0].producer
            node = own[0].producer

    def _read_by(self, softmax: Node) -> Node | None:
        """Returns the product whose left factor are the weights that *softmax* makes."""
        weights = softmax.output
        while (user := self._only_user(weights)) is not None:
            if user.op == "matmul" and user.inputs[0] is weights:
                return user
            if not _is_map(user.output) or user.output.shape != weights.shape:
                return None
            weights = user.output
        return None


def _is_product(v: Value) -> bool:
    return v.producer is not None and v.producer.op == "matmul"


def _is_map(v: Value) -> bool:
    return v.producer is not None and facts_of(v.producer).is_map and len(v.producer.outputs) == 1


class _Path:
    """The *nodes* that move elements of a factor, or scale all of them, the last one first, and the *base* that they begin at."""

    def __init__(self, v: Value) -> None:
        self.nodes: list[Node] = []
        self.scale = 1.0
        while (n := v.producer) is not None and (x := n.inputs[0] if n.inputs else None) is not None:
            scale = _scale(n)
            if scale is None and not _moves(n):
                break
            self.scale *= 1.0 if scale is None else scale
            self.nodes.append(n)
            v = x
        self.base = v


def _moves(n: Node) -> bool:
    """Tells whether *n* only moves elements of its one input."""
    is_one = len(n.inputs) == len(n.outputs) == 1
    return is_one and (is_rename(n) or facts_of(n).is_rearrangement)


def _scale(n: Node) -> float | None:
    """Returns the constant that *n* multiplies each element of its first input by; None if it does something else."""
    is_scaled = n.op == "mul" and n.inputs[0] is not None and n.output.shape == n.inputs[0].shape
    return known_scalar(n.inputs[1]) if is_scaled else None


class _Rounding:
    """The rounded twin of each value, made once for all that read it."""

    def __init__(self, found: Sequence[_Attention]) -> None:
        self.scores = {a.scores: a for a in found}
        self.weighted = {a.weighted: a for a in found}
        self.rounded: dict[Value, Value] = {}

    def rewrite(self, new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        """Returns the product on rounded factors that stands for *node*; None where nothing changes."""
        a, b = inputs if node in self.scores or node in self.weighted else (None, None)
        if a is None or b is None:
            return None
        left, scale = (a, 1.0) if node in self.weighted else (self.round(new, a), _Path(a).scale)
        scale *= _Path(b).scale
        name = node.output.name if scale == 1.0 else ""
        made = new.add("matmul_summed", [left, self.round(new, b)], source=node.source, name=name)
        if scale != 1.0:
            factor = new.constant(np.asarray(scale, f32.numpy))
            made = new.add("mul", [made, factor], source=node.source, name=node.output.name)
        return [made]

    def round(self, new: Graph, v: Value) -> Value:
        """Returns *v*, less its scales, of elements that are rounded before they are moved."""
        if v not in self.rounded:
            path = _Path(v)
            made = self._cast(new, path.base)
            for n in reversed(path.nodes):
                made = made if _scale(n) is not None else self._moved(new, n, made)
            self.rounded[v] = made
        return self.rounded[v]

    def _cast(self, new: Graph, base: Value) -> Value:
        if base not in self.rounded:
            self.rounded[base] = new.add("cast", [base], dtype=bf16, name=f"{base.name}_bf16")
        return self.rounded[base]

    def _moved(self, new: Graph, n: Node, x: Value) -> Value:
        """Returns the result of *n*, which moves elements, for the rounded *x*."""
        if n.output not in self.rounded:
            made = new.add(n.op, [x], source=n.source, name=f"{n.output.name}_bf16", **n.keywords)
            self.rounded[n.output] = made
        return self.rounded[n.output]
