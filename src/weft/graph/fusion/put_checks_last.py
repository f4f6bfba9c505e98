"""Puts the groups that look for indices outside of their limits behind all others, where they run only if a kernel saw one.

    l, h = extremes(i); y = gather(x, i); z = f(y)     becomes     y = gather(x, i); z = f(y); l, h = extremes(i)

So the indices stay in memory to the end.
"""

from __future__ import annotations

from dataclasses import replace

from weft.graph.fusion.groups import FusedGraph


def put_checks_last(fused: FusedGraph) -> FusedGraph:
    """Returns *fused* with those groups last that only serve watched guards."""
    late = [g for g in fused.groups if g in fused.on_demand]
    return replace(fused, groups=(*fused.calls, *late)) if late else fused
