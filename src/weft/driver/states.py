"""The states of a model: declared in its graph by the options, and passed to the runtime."""

from __future__ import annotations

from weft.driver.host.host_memory import Constants
from weft.driver.options import CompileOptions
from weft.graph import FusedGraph, Graph, State, declare_states, states_in_place
from weft.runtime.package import InitialValue, StateSpec


def with_states(graph: Graph, options: CompileOptions) -> Graph:
    """Returns *graph* with the states that the options name."""
    if not options.states and not options.capacity:
        return graph
    return declare_states(graph, dict(options.states), dict(options.capacity))


def state_tensors(graph: Graph) -> frozenset[str]:
    """Returns the names in a host program of the inputs and outputs that are states: `in2`, `out1`."""
    ends = (("in", len(graph.inputs)), ("out", len(graph.outputs)))
    return frozenset([f"{word}{count - 1 - k}" for word, count in ends for k in range(len(graph.states))])


def state_specs(fused: FusedGraph, constants: Constants) -> tuple[StateSpec, ...]:
    """Returns the states as the runtime takes them; *constants* has the places of the values that they begin with."""
    in_place = {p.state for p in states_in_place(fused)}

    def spec(s: State) -> StateSpec:
        axis = None if s.growth is None else s.growth.axis
        if s.initial is None:
            return StateSpec(axis, s in in_place)
        rows = 0 if axis is None else s.initial.extents[axis]
        return StateSpec(axis, s in in_place, InitialValue(constants.offsets[s.initial], rows))

    return tuple(map(spec, fused.graph.states))
