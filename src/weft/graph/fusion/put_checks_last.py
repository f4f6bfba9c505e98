"""Moves the groups that search for indices outside their limits behind all others: they run only if a kernel reported one.

    l, h = extremes(i); y = gather(x, i); z = f(y)     becomes     y = gather(x, i); z = f(y); l, h = extremes(i)

The index tensors therefore stay live to the end.
"""

from __future__ import annotations

from dataclasses import replace

from weft.graph.fusion.groups import FusedGraph


def put_checks_last(fused: FusedGraph) -> FusedGraph:
    """Returns *fused* with the groups last that only serve watched guards."""
    late = [g for g in fused.groups if g in fused.on_demand]
    return replace(fused, groups=(*fused.calls, *late)) if late else fused
