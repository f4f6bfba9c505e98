"""The states of recurrent layers, which Darknet keeps from one step of a sequence to the next."""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontends.darknet.sections import Section
from weft.graph import Graph, Value, declare_states
from weft.graph.builder import Operand, PartialEvaluator
from weft.ir import ExprLike
from weft.support.dtypes import f32


class States:
    """Inputs of the graph for the states of layers, called by type and number (`rnn_3_state`), and their next values."""

    def __init__(self, graph: Graph, evaluator: PartialEvaluator) -> None:
        self._graph, self._evaluator = graph, evaluator
        self._held: dict[int, list[Value]] = {}
        self._left: list[tuple[Value, Operand]] = []

    def declare(self, section: Section, shape: Sequence[ExprLike]) -> Operand:
        """Returns another state of a layer, in *shape*."""
        held = self._held.setdefault(section.index, [])
        number = f"_{len(held)}" if held else ""
        held.append(self._graph.input(f"{section.type}_{section.index}_state{number}", tuple(shape), f32))
        return held[-1]

    def keep(self, section: Section, values: Sequence[Operand]) -> None:
        """Sets the next states of a layer."""
        self._left += zip(self._held[section.index], values, strict=True)

    def finish(self) -> Graph:
        """Returns the graph with the states, if there are any."""
        names: dict[str, str] = {}
        for state, value in self._left:
            names[state.name] = self._graph.fresh_name(f"{state.name}_next")
            self._graph.output(self._evaluator.value(value), names[state.name])
        return declare_states(self._graph, names, {}) if names else self._graph
