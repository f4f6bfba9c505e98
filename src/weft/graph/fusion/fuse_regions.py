"""Cuts the regions of control flow into kernels, as the graph around them is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weft.graph.core.graph import Graph
from weft.graph.fusion.groups import FusedGraph, Group
from weft.graph.fusion.loop_states import fuse_body
from weft.graph.regions.region_operators import LOOP, regions_of


def fuse_regions(fused: FusedGraph, fuse: Callable[[Graph], FusedGraph]) -> FusedGraph:
    """Returns *fused* with *fuse* applied to the regions of each control-flow node."""

    def with_regions(g: Group) -> Group:
        node = g.nodes[0]
        if node.operator is LOOP:
            return Group(g.nodes, g.outputs, (fuse_body(node, fuse),))
        found = regions_of(node)
        return Group(g.nodes, g.outputs, tuple([fuse(r) for r in found])) if found else g

    groups = tuple([with_regions(g) for g in fused.groups])
    changed = any(a is not b for a, b in zip(groups, fused.groups, strict=True))
    return replace(fused, groups=groups) if changed else fused
