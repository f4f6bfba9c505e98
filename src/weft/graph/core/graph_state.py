"""State: values that live across calls, such as caches of keys and values, running statistics, and hidden states of RNNs.

A state is an input and an output of a graph: a call takes the input, and the next call takes the output. The last inputs
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

from weft.graph.core.graph_values import Constant
from weft.ir import Expr, Var


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
