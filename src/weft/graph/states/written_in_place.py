"""Which states of one shape a call writes where they are: those that are read before they are written, element by element.

c' = f * c + i * g      each element of c' needs that of c alone: it is written in the memory of c
h' = o * tanh(c')       h is read by a product before: h' is written in its memory, too
h' = h @ w              each element needs all of h: h' is written to a second buffer, and the two change places
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.graph.core.graph_values import Value
from weft.graph.core.state_pairs import Pair, state_pairs, updated_in_place
from weft.graph.fusion.groups import FusedGraph
from weft.graph.memory.in_place import can_take_over, last_reads


def states_in_place(fused: FusedGraph) -> list[Pair]:
    """Returns the states that are written in the memory that they are read from, as those that grow always are."""
    last = last_reads(fused)
    return [p for p in state_pairs(fused.graph) if updated_in_place(p) or _is_in_place(fused, p, last)]


def _is_in_place(fused: FusedGraph, pair: Pair, last_read: Mapping[Value, int]) -> bool:
    """Tells whether the group that makes the state runs when all else has read it, and reads it at its own index if at all."""
    written = fused.root(pair.left)
    step, group = next((n, g) for n, g in enumerate(fused.groups) if written in map(fused.root, g.outputs))
    if any(fused.root(v) is pair.taken for g in fused.on_demand for v in g.inputs):
        return False  # these run at the end
    if sum(written is fused.root(v) for g in fused.groups for v in g.outputs) > 1:
        return False  # it is written piece by piece
    last = last_read.get(pair.taken, -1)
    if last != step:
        return last < step
    read = [v for v in group.inputs if fused.root(v) is pair.taken]
    return len(read) == len(group.outputs) == 1 and not group.regions and can_take_over(fused, group, read[0])
