"""The regions of a graph in which convolutions depend on one another's layouts."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.graph.facts import facts_of
from weft.graph.graph import Graph, Node, Value
from weft.te.classify import OpClass

CONVOLUTIONS = frozenset({"conv2d", "conv_transpose2d"})


@dataclass(eq=False)
class _Region:
    """The convolutions of a region; once it is joined to another, *joined* says to which."""

    nodes: list[Node] = field(default_factory=list)
    joined: _Region | None = None

    def top(self) -> _Region:
        """Returns the region that this one is part of by now."""
        region = self
        while region.joined is not None:
            region = region.joined
        return region

    def join(self, other: _Region) -> _Region:
        """Makes one region of two, the larger one, and returns it."""
        a, b = self.top(), other.top()
        if a is b:
            return a
        if len(a.nodes) < len(b.nodes):
            a, b = b, a
        a.nodes += b.nodes
        b.joined = a
        return a


def convolution_regions(graph: Graph) -> list[list[Node]]:
    """Returns the convolutions that are connected by operators which channel blocks pass through: maps, pools, sums."""
    regions: dict[Value, _Region] = {}
    for node in graph.nodes:
        if node.output.rank != 4 or not (node.op in CONVOLUTIONS or _passes_blocks(node)):
            continue
        region = _Region([node] if node.op in CONVOLUTIONS else [])
        for v in node.inputs:
            if v in regions:
                region = region.join(regions[v])
        regions.update((v, region) for v in node.outputs)
    return [r.nodes for r in dict.fromkeys(r.top() for r in regions.values())]


def _passes_blocks(node: Node) -> bool:
    facts = facts_of(node)
    return facts.is_map or facts.kind is OpClass.REDUCTION or node.op == "concat"
