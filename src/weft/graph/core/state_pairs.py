"""State: values that live across calls, such as caches of keys and values, running statistics, and hidden states of RNNs.

A state is an input and an output of a graph: a call takes the input, and the output is what the next call takes. The last inputs
and the last outputs of a graph are its states, in the order of `Graph.states`; a call never gets them from its caller.

    state h becomes y                                              its shape stays
    state past_k becomes present_k, grows along 2 from (bound - 1) to (new + bound - 1) of 1024

One *begins with* a constant where the model gives its first value: `state h becomes y, begins with h0`.

A state that grows has memory for its *capacity* along an axis, and strides by that: an `append` writes the new rows alone. Its
value in the graph is all of that memory. Kernels compute with sizes of at least one, and the length of a state begins with zero:
so the graph's own symbol is *bound*, which is the *length* and one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.ir import ONE, Expr, Var

if TYPE_CHECKING:
    from weft.graph.core.graph import Graph
    from weft.graph.core.graph_values import Constant, Value


@dataclass(frozen=True)
class Growth:
    """How a state grows: along *axis*, from *length* rows, which the graph calls `bound - 1`, to *grown* in a call."""

    axis: int
    length: Var
    bound: Var
    grown: Expr


@dataclass(frozen=True)
class State:
    """One state, named as the model's input; *growth* is None for one whose shape stays, *initial* where it begins with zeros."""

    name: str
    growth: Growth | None = None
    initial: Constant | None = None


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
    """Returns what the symbols are that the graph has for the lengths of states: each length, and one."""
    return {s.growth.bound: s.growth.length + ONE for s in graph.states if s.growth is not None}


def _with(v: Value, axis: int, size: Expr) -> tuple[Expr, ...]:
    return (*v.shape[:axis], size, *v.shape[axis + 1 :])
