"""Fusion: puts nodes into groups by the classes derived from their formulas.

The rules are those of Chen et al., "TVM" (OSDI 2018), section 3: injective operators fuse with one another; a reduction
takes in the injective operators before it; a contraction (and a reduction) takes the element-wise operators after it. A value
with several users fuses into its post-dominator, where all its uses join again, with all nodes on the paths to it. Beyond these
rules, a contraction takes in producers that only rearrange elements of its A operand, of which it reads single elements. No group
takes more buffers than the machine lets a kernel have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf, prod
from typing import Final

from weft.cost import (
    FALLBACK_SIZE,
    LARGEST_GROUP,
    JoinAttention,
    Planner,
    Recompute,
    join_attention_plans,
    recomputation_plans,
    subject_of,
)
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.core.symbols import variables_of
from weft.graph.fusion.attention import Surroundings, attention_around, sizes_of
from weft.graph.fusion.dominators import between, post_dominators
from weft.graph.fusion.groups import Alias, FusedGraph, Group
from weft.graph.fusion.node_facts import facts_of, is_rename, view_offset
from weft.ir import ONE, Const, Expr, Var, index, simplify, substitute
from weft.ops import OPERATORS
from weft.te import OpClass, is_narrow

SPARE_BUFFERS: Final = 2
"""The number of buffers reserved for a kernel's intermediate results."""


def fuse(
    graph: Graph,
    planner: Planner | None = None,
    *,
    merge: bool = True,
    most_buffers: int | None = None,
    whole_attention: bool = False,
    read_once: bool = False,
    on_processor: Collection[Node] = frozenset(),
) -> FusedGraph:
    """Returns the groups of *graph*, each equal workload with an equal key, and the views between them as aliases.

    Without *merge*, each node is a group of its own. *planner* decides which nodes are recomputed by each consumer; without one,
    the cheaper way is taken. A kernel may take *most_buffers*, if that is a limit. With *whole_attention*, a kernel takes both
    products of an attention, and the softmax between them. With *read_once*, a product that reads each element of an operand once
    takes in nodes that only move these, from wherever they lie. Nodes *on_processor* have kernels of their own.
    """
    fusion = _Fusion(with_copied_outputs(graph), planner, most_buffers, on_processor, read_once=read_once)
    for node in fusion.graph.nodes if merge else ():
        if fusion.is_anchor(node):
            fusion.extend_forward(node)
    for node in fusion.graph.nodes if merge and whole_attention else ():
        fusion.join_attention(node)
    for node in fusion.graph.nodes if merge else ():
        if fusion.is_injective(node):
            fusion.sink_into_users(node)
    return fusion.result()


class _Fusion:
    """Union-find over nodes while groups grow; `anchor` is the reduction or contraction of a set, if it has one."""

    def __init__(
        self,
        graph: Graph,
        planner: Planner | None,
        most_buffers: int | None,
        on_processor: Collection[Node],
        *,
        read_once: bool,
    ) -> None:
        self.graph = graph
        self.on_processor = on_processor
        self.read_once = read_once
        self.planner = planner
        self.most_buffers = most_buffers
        self.users = graph.users()
        self.above = post_dominators(graph, self.users)
        offsets = {n: view_offset(n) for n in graph.nodes}
        self.views = {n: offset for n, offset in offsets.items() if offset is not None}
        self.facts = {n: facts_of(n) for n in graph.nodes if n not in self.views}
        self.set_of: dict[Node, set[Node]] = {n: {n} for n in graph.nodes}
        self.anchor: dict[Node, Node] = {n: n for n in graph.nodes if self.is_anchor(n)}
        self.position = {n: i for i, n in enumerate(graph.nodes)}
        self.attention: set[Node] = set()

    def is_anchor(self, node: Node) -> bool:
        """Tells whether *node* reduces."""
        return node not in self.views and OpClass.INJECTIVE < self.facts[node].kind < OpClass.OPAQUE

    def is_injective(self, node: Node) -> bool:
        """Tells whether *node* can be computed inside the loops of another."""
        return node not in self.views and self.facts[node].kind <= OpClass.INJECTIVE

    def extend_forward(self, anchor: Node) -> None:
        """Takes the element-wise nodes after *anchor* into its group, as far as they reach."""
        sink = anchor
        while (end := self.above[sink]) is not None:
            path = between(sink, end, self.users)
            if not self._may_join(anchor, path) or not all(self._can_follow(n, anchor, {sink, *path}) for n in path):
                return
            self._merge(anchor, path)
            sink = end

    def _can_follow(self, node: Node, anchor: Node, path: set[Node]) -> bool:
        """Tells whether *node* reads every value of the group only at the index that it writes."""
        if not self.is_injective(node) or node in self.anchor or len(anchor.outputs) != 1:
            return False
        if len(node.outputs) > 1 and self.facts[anchor].kind is not OpClass.REDUCTION:
            return False
        if any(v.shape != anchor.output.shape for v in node.outputs):
            return False
        facts = self.facts[node]
        return all(facts.same_index(i) for i, v in enumerate(node.inputs) if v is not None and v.producer in path)

    def join_attention(self, softmax: Node) -> None:
        """Merges the product whose rows *softmax* normalizes, and the product that takes these, into one group."""
        known = Surroundings(self.set_of.__getitem__, self.anchor, self.users, set(self.graph.roots), self.facts)
        found = attention_around(softmax, known)
        if found is None:
            return
        nodes = {m for n in found for m in self.set_of[n]}
        if not self._is_of_one_machine(list(nodes)):
            return
        if len(nodes) <= LARGEST_GROUP and not self._takes_too_many(nodes) and self._pays_as_one(found):
            self._merge(found[0], nodes)
            self.attention.update(nodes)

    def _pays_as_one(self, found: Sequence[Node]) -> bool:
        """Tells whether an attention is faster as one kernel."""
        sizes, subject = sizes_of(found), subject_of(found[1].output.name)
        if self.planner is None:
            return False
        return self.planner.decide(subject, JoinAttention, lambda m: join_attention_plans(sizes, m)).join

    def sink_into_users(self, node: Node) -> None:
        """Merges an injective *node* into its post-dominator, if every node on the paths between can be fused with it."""
        end = self.above[node]
        if end is None or node in self.anchor or end in self.views or len(node.outputs) != 1:
            return
        path = between(node, end, self.users)
        if not self._may_join(node, path):
            return
        inner = [n for n in path if n is not end]
        if not all(self.is_injective(n) and n not in self.anchor and len(n.outputs) == 1 for n in inner):
            return
        if self._reads_once(end, {node, *inner}) or self._takes_in(end, node, path):
            self._merge(end, [node, *inner])

    def _takes_in(self, end: Node, node: Node, path: Sequence[Node]) -> bool:
        """Tells whether *end* may compute *node* and those on the *path* to it, where it needs their elements."""
        whole = [node, *[n for n in path if n is not end]]
        return self._can_end(end, set(whole)) and (
            self._is_operand(end, whole) or self._may_repeat(node, max(_times(node.output, n.output) for n in path))
        )

    def _reads_once(self, end: Node, path: Collection[Node]) -> bool:
        """Tells whether *end*, a product, reads each element of *path* once, which are moved so that vectors of them stay."""
        nodes = {n for m in path for n in self.set_of[m]}
        found = [(v, dims) for v, dims in zip(end.inputs, self.facts[end].once, strict=False) if _made_by(v, nodes)]
        if not self.read_once or len(found) != 1:
            return False
        ((v, dims),) = found
        while v is not None and v.producer in nodes:
            facts = self.facts[v.producer]
            if dims is None or facts.last not in dims or facts.moved is None or v.producer.operator.prepares:
                return False
            v = v.producer.inputs[facts.moved[0]]
            dims = None if v is None else frozenset([v.rank - 1])
        return True

    def _is_operand(self, end: Node, path: Sequence[Node]) -> bool:
        """Tells whether *path* makes a factor of an attention, which blocks of threads fetch for many rows at once."""
        is_product = end in self.attention and self.facts[end].kind is OpClass.COMPLEX_OUT_FUSABLE
        return is_product and all(self.facts[n].is_map or self.facts[n].is_rearrangement for n in path)

    def _may_repeat(self, node: Node, times: float) -> bool:
        """Tells whether each element of *node* may be computed so many *times*.

        An unfolded expression of constants is a table in another layout: a call needs the elements that it looks up.
        """
        if times == inf:
            return bool(node.inputs) and all(isinstance(v, Constant) for v in node.inputs)
        if times <= 1:
            return True
        plans = recomputation_plans(times)
        if self.planner is None:
            return plans[0].decision.fuse
        return self.planner.decide(subject_of(node.output.name), Recompute, lambda _: plans).fuse

    def _can_end(self, end: Node, path: set[Node]) -> bool:
        """Tells whether *end* may compute the values of *path* in its own loops: it is injective, or it reduces them."""
        if self.is_injective(end):
            return True
        facts = self.facts[end]
        if end in self.attention:
            return not self._rounds(path)
        read = [i for i, v in enumerate(end.inputs) if v is not None and v.producer in path]
        if facts.kind is OpClass.COMPLEX_OUT_FUSABLE:
            return all(facts.streams[i] for i in read) and self._only_rearranges(path)
        return end in self.anchor and all(facts.reads[i] <= OpClass.REDUCTION for i in read)

    def _rounds(self, nodes: set[Node]) -> bool:
        """Tells whether the sets of *nodes* make a factor of 16 bits of a wider one: fragments take it as it is in memory."""
        return any(_narrows(n) for m in nodes for n in self.set_of[m])

    def _only_rearranges(self, nodes: set[Node]) -> bool:
        """Tells whether all nodes in the sets of *nodes* move elements without computing."""
        return all(self.facts[n].is_rearrangement for m in nodes for n in self.set_of[m])

    def _may_join(self, into: Node, nodes: Sequence[Node]) -> bool:
        """Tells whether the sets of *into* and *nodes* merged make a kernel: of one machine, and not too large."""
        if len(self.set_of[into]) + len(nodes) > 2 * LARGEST_GROUP or not self._is_of_one_machine([into, *nodes]):
            return False
        merged = self.set_of[into].union(*[self.set_of[n] for n in nodes])
        return len(merged) <= LARGEST_GROUP and not self._takes_too_many(merged)

    def _is_of_one_machine(self, nodes: Sequence[Node]) -> bool:
        """Tells whether the same machine computes all of *nodes*."""
        return len({n in self.on_processor for n in nodes}) == 1

    def _takes_too_many(self, nodes: set[Node]) -> bool:
        """Tells whether a kernel of *nodes* would take more buffers than the machine lets it have."""
        if self.most_buffers is None:
            return False
        read = {v for n in nodes for v in n.inputs if v is not None and v.producer not in nodes}
        return len(read) + 1 + SPARE_BUFFERS > self.most_buffers

    def _merge(self, into: Node, nodes: Iterable[Node]) -> None:
        """Merges the sets of *nodes* into that of *into*."""
        merged = set(self.set_of[into])
        for n in nodes:
            merged |= self.set_of[n]
        anchors = [self.anchor[n] for n in merged if n in self.anchor]
        for n in merged:
            self.set_of[n] = merged
            if anchors:
                self.anchor[n] = anchors[0]

    def result(self) -> FusedGraph:
        """Returns the groups, ordered by their last nodes, and the aliases."""
        groups: list[Group] = []
        aliases: dict[Value, Alias] = {}
        for node in self.graph.nodes:
            if node in self.views:
                source = node.inputs[0]
                assert source is not None  # a view has an input
                aliases[node.output] = Alias(source, self.views[node])
            elif self.position[node] == max(self.position[n] for n in self.set_of[node]):
                nodes = sorted(self.set_of[node], key=self.position.__getitem__)
                groups.append(Group(tuple(nodes), node.outputs, on_processor=node in self.on_processor))
        return FusedGraph(self.graph, tuple(groups), aliases)


def _made_by(v: Value | None, nodes: Collection[Node]) -> bool:
    return v is not None and v.producer in nodes


def _narrows(node: Node) -> bool:
    """Tells whether *node* makes floats of 16 bits or less of wider ones."""
    wide = [v for v in node.inputs if v is not None and v.dtype.is_float and not is_narrow(v.dtype)]
    return bool(wide) and all(is_narrow(v.dtype) for v in node.outputs)


def _times(before: Value, after: Value) -> float:
    """Returns how many times each element of *before* is computed inside the loops of *after*; infinity for unknown sizes.

    Panels have as many elements as their matrix, but for padding.
    """
    if before.static_shape is not None and after.static_shape is not None:
        return prod(after.static_shape) / max(1, prod(before.static_shape))
    pairs = zip(reversed(before.shape), reversed(after.shape), strict=False)
    if before.rank < after.rank:
        return _growth(before, after)
    return inf if any(a is ONE and b is not ONE for a, b in pairs) else 1.0


def _growth(before: Value, after: Value) -> float:
    """Returns how many elements *after* has for each of *before*; infinity where that grows with some size."""
    sizes = variables_of((*before.shape, *after.shape))
    usual = dict.fromkeys(sizes, index(FALLBACK_SIZE))

    def times(given: Mapping[Var, Expr]) -> float:
        found = [[simplify(substitute(s, given)) for s in v.shape] for v in (after, before)]
        most, least = [prod([int(s.value) if isinstance(s, Const) else 0 for s in shape]) for shape in found]
        return most / least if least else inf

    large = [times({**usual, v: index(FALLBACK_SIZE**2)}) for v in sizes]
    return times(usual) if max(large, default=1.0) < 2 * times(usual) else inf


def with_copied_outputs(graph: Graph) -> Graph:
    """Returns *graph* with a copy for each output that is an input, a constant, or another output's memory.

    One whose late sizes are known only after its elements are computed is a copy, too: then there is memory for it.
    """
    roots: set[Value] = set()
    late = {known.size for known in graph.late_sizes}
    made = graph.empty_copy()
    made.nodes, made.guards, made.late_sizes = list(graph.nodes), graph.guards, graph.late_sizes
    for name, v in zip(graph.output_names, graph.outputs, strict=True):
        root = v
        while root.producer is not None and is_rename(root.producer) and root.producer.inputs[0] is not None:
            root = root.producer.inputs[0]
        is_later = not variables_of(v.shape) & late <= variables_of(root.shape)
        owned = root not in roots and _owns_memory(graph, root) and not is_later
        roots.add(root)
        made.output(v if owned else _copy(made, v), name)
    return made


def _owns_memory(graph: Graph, v: Value) -> bool:
    """Tells whether the node of *v* may write it to an output: it is no view, nor in the memory that control flow keeps."""
    node = v.producer
    if node is None or view_offset(node) is not None:
        return False
    return not node.operator.has_regions or variables_of(v.shape).isdisjoint(late.size for late in graph.late_sizes)


def _copy(graph: Graph, v: Value) -> Value:
    operator = OPERATORS["identity"]
    return graph.append(Node(operator, (v,), (), [v.type], [f"{v.name}_copy"])).output
