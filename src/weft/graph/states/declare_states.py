"""Makes pairs of inputs and outputs the states of a graph (see `graph.core.state_pairs`).

A state of one shape stays as it is. One that a call makes longer, by a concatenation, becomes memory for its capacity:

    graph (past: f32[1, 8, p, 64], ...):                  graph (..., past: f32[1, 8, 1024, 64]):
      present = concat(past, new, axis=2)                   all = append(past, new, axis=2, begin=p, in_place=True)
      y = matmul(q, present)                                y = matmul(q, slice(all, 0, p + n, axis=2))
      return y, present                                     return y, all
                                                            state past becomes all, grows along 2 from p to p + n of 1024
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_state import Growth, State
from weft.graph.core.graph_values import Constant, Value
from weft.graph.core.type_text import type_text
from weft.graph.rewriting.rewriter import drop_dead
from weft.graph.states.match_states import match_states, matching
from weft.graph.states.renamed import Renaming
from weft.ir import ONE, ZERO, Expr, Var, index
from weft.ops import normalize_axis
from weft.runtime.model_state import FULL
from weft.support.dtypes import handle
from weft.support.errors import ModelError
from weft.support.text import in_format

CAPACITY = 'give the most rows that it may ever have: capacity={{"{0}": 1024}}'


@dataclass(frozen=True)
class _Growing:
    """A state that a call makes longer along *axis*: *node* appends to it; *length* is how long it was."""

    axis: int
    length: Var
    node: Node
    capacity: int


def declare_states(graph: Graph, patterns: Mapping[str, str], capacity: Mapping[str, int]) -> Graph:
    """Returns *graph* with the states that *patterns* name, inputs to outputs; *capacity* has the most rows of those that grow.

    They begin with the graph's `defaults`. Raises `ModelError` for names that there are not, pairs whose types differ other than
    by a concatenation, a capacity that is missing or not asked for, and first values that are no values of the states.
    """
    found = match_states(graph, patterns)
    growing: dict[int, _Growing] = {}
    for n, m in found.items():
        made = _growing(graph, graph.inputs[n], m, capacity)
        if made is not None:
            growing[n] = made
    _check_capacities(graph, capacity, growing)
    bounds = {length: _bound(graph, length) for length in dict.fromkeys(g.length for g in growing.values())}
    return _Declaring(graph, found, growing, bounds).graph()


def _refuse_strings(taken: Value) -> None:
    """Raises `ModelError` for a state of strings."""
    if taken.dtype is handle:  # the runtime has the strings of a call until the next one alone
        raise ModelError(
            f"{taken.name} is a tensor of strings, which can't be a state", hint="keep numbers, or give it in each call"
        )


def _growing(graph: Graph, taken: Value, output: int, capacity: Mapping[str, int]) -> _Growing | None:
    """Returns how a state grows; None where its shape stays."""
    left, name = graph.outputs[output], graph.output_names[output]
    _refuse_strings(taken)
    if taken.type == left.type:
        return None
    types = f"{taken.name} is {type_text(taken.type)}, and {name}, which it is to become, is {type_text(left.type)}"
    hint = "a state keeps its type and its shape, but for one symbolic size along which rows are concatenated"
    if taken.dtype is not left.dtype or taken.rank != left.rank:
        raise ModelError(types, hint=hint)
    axes = [d for d, (a, b) in enumerate(zip(taken.shape, left.shape, strict=True)) if a != b]
    length, node = taken.shape[axes[0]], left.producer
    if len(axes) > 1 or not isinstance(length, Var):
        raise ModelError(types, hint=hint)
    if node is None or node.op != "concat" or node.inputs[0] is not taken or len(node.inputs) != 2:
        source = None if node is None else node.source or None
        raise ModelError(f"{types}, but not as a concatenation of the state and new rows", where=source, hint=hint)
    if normalize_axis(node.attribute("axis"), taken.rank) != axes[0]:
        raise ModelError(types, where=node.source, hint=hint)
    most = matching(capacity, taken.name)
    if most is None:
        raise ModelError(f"the state {taken.name} grows along axis {axes[0]}", hint=CAPACITY.format(taken.name))
    return _Growing(axes[0], length, node, most[1])


def _check_capacities(graph: Graph, capacity: Mapping[str, int], growing: Mapping[int, _Growing]) -> None:
    """Refuses a capacity for an input that is no growing state."""
    names = [graph.inputs[n].name for n in growing]
    for pattern in capacity:
        if not any(matching({pattern: 0}, name) for name in names):
            hint = f"the states that grow are {', '.join(names)}" if names else "no state of this model grows"
            raise ModelError(f"capacity names {pattern}, which is no state that grows", hint=hint)


def _check_initial(taken: Value, initial: Constant, g: _Growing | None) -> None:
    """Refuses a first value that a state can't have."""
    wanted = [initial.shape[d] if g is not None and d == g.axis else s for d, s in enumerate(taken.shape)]
    if initial.dtype is not taken.dtype or list(initial.shape) != wanted:
        raise ModelError(
            f"the state {taken} begins with the model's value for it, which is {type_text(initial.type)}",
            hint=f"give the sizes of that: shapes={{'{taken.name}': {initial.extents}}}",
        )
    if g is not None and initial.extents[g.axis] > g.capacity:
        raise ModelError(
            f"the state {taken.name} begins with {initial.extents[g.axis]} rows, and has room for {g.capacity}",
            hint="give it more capacity",
        )


def _bound(graph: Graph, length: Var) -> Var:
    """Returns the graph's symbol for a length and one: kernels take sizes for at least one, and a state begins empty."""
    return graph.fresh_dim(f"{length.name}_and_one")


class _Declaring:
    """Rebuilds one graph."""

    def __init__(
        self, graph: Graph, found: Mapping[int, int], growing: Mapping[int, _Growing], bounds: Mapping[Var, Var]
    ) -> None:
        self.old, self.found, self.growing, self.bounds = graph, found, growing, bounds
        self.sizes = Renaming({length: bound - ONE for length, bound in bounds.items()})
        self.storage = {graph.inputs[n]: self.memory_of(graph.inputs[n], g) for n, g in growing.items()}
        self.appends = {g.node: graph.inputs[n] for n, g in growing.items()}
        self.grown: dict[Value, Value] = {}
        self.rows = {graph.inputs[n]: g for n, g in growing.items()}

    def memory_of(self, v: Value, g: _Growing) -> Value:
        """Returns the value of all the memory of a state that grows."""
        shape = list(map(self.sizes.expr, v.shape))
        shape[g.axis] = index(g.capacity)
        return Graph(self.old.name).input(v.name, shape, v.dtype)

    def graph(self) -> Graph:
        """Returns the graph with its states, behind its other inputs and outputs."""
        inputs = [self.storage.get(v) or self.sizes.input(v) for v in self.old.inputs]
        made = self.sizes.graph(self.old, inputs, self.rule)
        states = [(inputs[n], self.left(made, n, m)) for n, m in self.found.items()]
        taken = [v for v, _ in states]
        made.inputs = [v for v in inputs if v not in taken] + taken
        names = [made.output_names[m] for m in self.found.values()]
        others = [k for k in range(len(made.outputs)) if k not in self.found.values()]
        made.outputs = [*[made.outputs[k] for k in others], *[left for _, left in states]]
        made.output_names = [*[made.output_names[k] for k in others], *names]
        made.states = [self.state(n, m) for n, m in self.found.items()]
        drop_dead(made)
        return made

    def left(self, made: Graph, n: int, m: int) -> Value:
        """Returns the value that a call leaves of the state that is input *n*."""
        return self.grown[self.old.inputs[n]] if n in self.growing else made.outputs[m]

    def state(self, n: int, m: int) -> State:
        """Returns the description of the state that is input *n*."""
        g, taken = self.growing.get(n), self.old.inputs[n]
        initial = self.old.defaults.get(taken.name)
        if initial is not None:
            _check_initial(taken, initial, g)
        if g is None:
            return State(taken.name, None, initial)
        grown = self.sizes.expr(self.old.outputs[m].shape[g.axis])
        return State(taken.name, Growth(g.axis, g.length, self.bounds[g.length], grown), initial)

    def rule(self, made: Graph, node: Node, inputs: tuple[Value | None, ...]) -> Sequence[Value] | None:
        """Replaces the concatenation of a state with new rows; other nodes read the rows that the state had before."""
        state = self.appends.get(node)
        if state is None:
            read = [self.rows_of(made, v) for v in inputs]
            return None if read == list(inputs) else made.append(self.sizes.node(node, tuple(read))).outputs
        g, rows = self.rows[state], self.rows_of(made, inputs[1])
        begin = self.sizes.expr(g.length)
        whole = made.add(
            "append",
            [self.storage[state], rows],
            source=node.source,
            name=f"{node.output.name}_memory",
            axis=g.axis,
            begin=begin,
            in_place=True,
        )
        self.grown[state] = whole
        size = self.sizes.expr(node.output.shape[g.axis])
        what = f"the state {in_format(state.name)} would be {{0}} long, and has room for {g.capacity}: {FULL}"
        made.require(size <= index(g.capacity), what, size)
        return [self.first(made, whole, g.axis, size, node.output.name)]

    def rows_of(self, made: Graph, v: Value | None) -> Value | None:
        """Returns the rows that a state had when the call began where *v* is its memory, else *v* itself."""
        for state, memory in self.storage.items():
            if v is memory:
                g = self.rows[state]
                return self.first(made, memory, g.axis, self.sizes.expr(g.length), f"{state.name}_rows")
        return v

    @staticmethod
    def first(made: Graph, v: Value, axis: int, size: Expr, name: str) -> Value:
        """Returns the first *size* rows of *v*."""
        return made.add("slice", [v], name=name, starts=(ZERO,), ends=(size,), axes=(axis,), steps=(1,), inside=True)
