"""The states of a model: declared in its graph by the options, and told to the runtime."""

from __future__ import annotations

from weft.driver.options import CompileOptions
from weft.graph import FusedGraph, Graph, declare_states, state_pairs, states_in_place
from weft.runtime.package import StateSpec


def with_states(graph: Graph, options: CompileOptions) -> Graph:
    """Returns *graph* with the states that the options name."""
    if not options.states and not options.capacity:
        return graph
    return declare_states(graph, dict(options.states), dict(options.capacity))


def state_specs(fused: FusedGraph) -> tuple[StateSpec, ...]:
    """Returns the states as the runtime takes them."""
    in_place = {p.state.name for p in states_in_place(fused)}
    pairs = [(p.state.growth, p.state.name in in_place) for p in state_pairs(fused.graph)]
    return tuple([StateSpec(None if growth is None else growth.axis, here) for growth, here in pairs])
