"""Outputs that are computed in the memory of a dead input: one that no later group reads.

y = relu(x)     with x read nowhere else: y is in the memory of x
"""

from __future__ import annotations

from weft.graph.core.graph_values import Value
from weft.graph.core.state_pairs import state_pairs, updated_in_place
from weft.graph.fusion.groups import FusedGraph, Group
from weft.graph.fusion.node_facts import facts_of
from weft.graph.memory.buffer_size import buffer_size


def find_in_place(fused: FusedGraph) -> dict[Value, Value]:
    """Returns, for each output that can reuse the memory of an input that dies there, that input's root value, in group order.

    The group may read that input only at the output's own index; its kernel's parameters then alias and must not be `noalias`.
    """
    last = last_reads(fused)
    fixed = outside(fused)
    reused: dict[Value, Value] = {}
    for step, g in enumerate(fused.groups):
        if len(g.outputs) != 1 or fused.root(g.outputs[0]) in fixed or g.outputs[0] in fused.aliases:
            continue
        roots = [fused.root(v) for v in g.inputs]
        for v, root in zip(g.inputs, roots, strict=True):
            dies = last[root] == step and root not in fixed and roots.count(root) == 1
            if dies and can_take_over(fused, g, v):
                reused[g.outputs[0]] = root
                last[root] = -1
                break
    return reused


def outside(fused: FusedGraph) -> set[Value]:
    """Returns the values whose memory is not in the arena.

    They are inputs, constants, outputs and views of outputs, updates of states, and results of control flow that are kept.
    """
    updates = [v for p in state_pairs(fused.graph) for v in updated_in_place(p)]
    updates += [v for of_one in fused.updates.values() for v in of_one]
    kept = [v for g in fused.groups if g.regions for v in g.outputs if fused.is_kept(v)]
    return {*fused.graph.inputs, *fused.constants, *kept, *[fused.root(v) for v in (*fused.graph.outputs, *updates)]}


def last_reads(fused: FusedGraph) -> dict[Value, int]:
    """Returns the last step in which each root value is read."""
    return {fused.root(v): step for step, g in enumerate(fused.groups) for v in g.inputs}


def can_take_over(fused: FusedGraph, group: Group, v: Value) -> bool:
    """Tells whether the output may overwrite *v*: a whole root, read only at the output's index, with elements of equal size."""
    root, output = fused.root(v), group.outputs[0]
    same = v.shape == output.shape and v.dtype.bytes == output.dtype.bytes
    return same and buffer_size(v) == buffer_size(root) and reads_at_own_index(group, v)


def reads_at_own_index(group: Group, v: Value) -> bool:
    """Tells whether each element of the group's output needs, of *v*, only the element at its own index."""
    reached = {v}
    for n in group.nodes:
        for i, u in enumerate(n.inputs):
            if u in reached:
                if not facts_of(n).same_index(i):
                    return False
                reached.update(n.outputs)
    return True
