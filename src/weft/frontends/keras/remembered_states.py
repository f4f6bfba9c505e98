"""Values that stateful layers keep for the next call: states of the graph, which begin as zeros."""

from __future__ import annotations

from collections.abc import Sequence

from weft.graph import Graph, Value, declare_states
from weft.graph.builder import Builder, Operand, PartialEvaluator, static_sizes
from weft.ir import Expr
from weft.support.dtypes import f32


class States:
    """The states of a model's layers, by the names of the inputs that they are."""

    def __init__(self, evaluator: PartialEvaluator) -> None:
        self._main = evaluator
        self._next: dict[str, Operand] = {}

    def taken(self, b: Builder, name: str, shape: Sequence[Expr], count: int) -> tuple[Value, ...]:
        """Returns *count* states of a layer as a call finds them."""
        if static_sizes(shape) is None:
            b.fail(
                "it is stateful, and the size of its batch is open",
                "give the input a batch_shape, or a size in `shapes`",
            )
        if b.evaluator is not self._main or f"{name}.state0" in {v.name for v in self._main.graph.inputs}:
            b.fail("it is stateful and called twice, or in a loop", "call it once, or build it with stateful=False")
        return tuple([self._main.graph.input(f"{name}.state{k}", shape, f32) for k in range(count)])

    def left(self, name: str, states: Sequence[Operand]) -> None:
        """Sets the next *states* of the layer *name*."""
        self._next.update({f"{name}.state{k}": x for k, x in enumerate(states)})

    def declared(self, graph: Graph) -> Graph:
        """Returns *graph* with its states, if there are any."""
        names: dict[str, str] = {}
        for name, x in self._next.items():
            names[name] = graph.fresh_name(f"{name}.next")
            graph.output(self._main.value(x), names[name])
        return declare_states(graph, names, {}) if names else graph
