"""Cuts the regions of control flow into kernels, as the graph around them is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weft.graph.core.graph import Graph
from weft.graph.fusion.groups import FusedGraph, Group
from weft.graph.regions.region_operators import regions_of


def fuse_regions(fused: FusedGraph, fuse: Callable[[Graph], FusedGraph]) -> FusedGraph:
    """Returns *fused* with *fuse* applied to the regions of each control-flow node."""

    def with_regions(g: Group) -> Group:
        found = regions_of(g.nodes[0])
        return Group(g.nodes, g.outputs, tuple([fuse(r) for r in found])) if found else g

    groups = tuple([with_regions(g) for g in fused.groups])
    changed = any(a is not b for a, b in zip(groups, fused.groups, strict=True))
    return replace(fused, groups=groups) if changed else fused
