"""The states of a graph with their values: the inputs that a call takes them from, and the outputs that it leaves them in."""

from __future__ import annotations

from dataclasses import dataclass

from weft.graph.core.graph import Graph
from weft.graph.core.graph_state import State
from weft.graph.core.graph_values import Value
from weft.ir import ONE, Expr, Var


@dataclass(frozen=True)
class Pair:
    """A state with its values in a graph: the input that a call takes, the output that it leaves, and their positions."""

    state: State
    taken: Value
    left: Value
    input: int
    output: int

    @property
    def called_shape(self) -> tuple[Expr, ...]:
        """The shape with which a call is given the state."""
        growth = self.state.growth
        return self.taken.shape if growth is None else _with(self.taken, growth.axis, growth.length)

    @property
    def left_shape(self) -> tuple[Expr, ...]:
        """The shape that the state has after the call."""
        growth = self.state.growth
        return self.left.shape if growth is None else _with(self.left, growth.axis, growth.grown)


def state_pairs(graph: Graph) -> list[Pair]:
    """Returns the states of *graph* with their values."""
    first_in, first_out = len(graph.inputs) - len(graph.states), len(graph.outputs) - len(graph.states)
    return [
        Pair(s, graph.inputs[first_in + k], graph.outputs[first_out + k], first_in + k, first_out + k)
        for k, s in enumerate(graph.states)
    ]


def updated_in_place(pair: Pair) -> list[Value]:
    """Returns the values that nodes write in the memory of a state, the last first; a call may update it several times."""
    found: list[Value] = []
    v = pair.left
    while (
        v.producer is not None
        and dict(v.producer.attributes).get("in_place") is True
        and v.producer.inputs[0] is not None
    ):
        found.append(v)
        v = v.producer.inputs[0]
    return found


def bound_lengths(graph: Graph) -> dict[Var, Expr]:
    """Returns the values of the symbols that the graph has for the lengths of states: each is the length, and one."""
    return {s.growth.bound: s.growth.length + ONE for s in graph.states if s.growth is not None}


def _with(v: Value, axis: int, size: Expr) -> tuple[Expr, ...]:
    return (*v.shape[:axis], size, *v.shape[axis + 1 :])
