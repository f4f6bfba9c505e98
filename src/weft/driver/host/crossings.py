"""The values of a model that cross between the memory of its device and that of the host's processor, which runs some kernels.

Every value is made in its kernel's memory. It is copied to the other memory once, as soon as it is made, where that
has a reader; both memories have the same plan, so that a value has the same place in each.

    conv(in0.at(0), t0.at(0))                      # on the device
    copy(t0_host.at(0), t0.at(0), 4096)
    nonzero(t0_host.at(0), t1_host.at(0), ...)     # on the processor
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.graph import FusedGraph, Value, state_pairs

HOSTED: Final = "global@0"
"""The scope of memory that is the host's in a model for a device, where all other memory becomes the device's."""


@dataclass(frozen=True)
class Crossings:
    """The values of one graph, by their roots, that are copied to each memory once they are made there or here.

    Those *made_there*, by the processor, are only in the host's memory unless they cross. *read_there* are those that it reads,
    and *partly_there* those that it makes a part of.
    """

    to_device: frozenset[Value] = frozenset()
    to_processor: frozenset[Value] = frozenset()
    made_there: frozenset[Value] = frozenset()
    read_there: frozenset[Value] = frozenset()
    partly_there: frozenset[Value] = frozenset()

    def uses_there(self, root: Value) -> bool:
        """Tells whether the processor reads or writes a value."""
        return root in self.read_there or root in self.made_there or root in self.partly_there


NONE_CROSS: Final = Crossings()


def uses_processor(fused: FusedGraph) -> bool:
    """Tells whether the host's processor runs kernels of a model for a device."""
    return any(g.on_processor for f in fused.all_graphs for g in f.groups)


def crossings_of(fused: FusedGraph, *, is_region: bool = False) -> Crossings:
    """Returns the values that cross; those that a region is given, and those that it leaves, are in the device's memory."""
    here, there = [[g for g in fused.groups if g.on_processor is on] for on in (False, True)]
    read_there = {fused.root(v) for g in there for v in g.inputs}
    written_there = {fused.root(v) for g in there for v in g.outputs}
    read_here = {fused.root(v) for g in here for v in g.inputs}
    written_here = {fused.root(v) for g in here for v in g.outputs}
    written_here |= {fused.root(v) for p in state_pairs(fused.graph) for v in (p.taken, p.left)}
    if is_region:
        written_here |= {fused.root(v) for v in (*fused.graph.inputs, *fused.graph.outputs)}
    return Crossings(
        frozenset(written_there & (read_here | written_here)),
        frozenset(written_here & read_there),
        frozenset(written_there - written_here),
        frozenset(read_there),
        frozenset(written_there & written_here),
    )
