"""Variables that calls read and write, as states of the graph; an operator holds one by its name.

A variable is an input where it is read before anything is written to it, and what it has at the end is the output that a call
leaves. States begin with the first values that the model gives variables, or as zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from weft.frontends.tensorflow_operators.call import Variable
from weft.frontends.tflite.lite_model import LiteTensor
from weft.graph import Constant, Graph, Value, declare_states
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator
from weft.ir import ExprLike
from weft.support.dtypes import DType

FIX: Final = "convert the model with fixed shapes"


@dataclass
class _Held:
    """The value of a variable now, None before it is read or written; its first value, and the input that it was read from."""

    first: CompileTimeConstant | None = None
    now: Operand | None = None
    taken: Value | None = None


class Variables:
    """The variables of a model."""

    def __init__(self, evaluator: PartialEvaluator) -> None:
        self._main = evaluator
        self._held: dict[str, _Held] = {}
        self._is_beginning = False

    @contextmanager
    def first_values(self) -> Iterator[None]:
        """In the block, variables are written their first values."""
        self._is_beginning = True
        try:
            yield
        finally:
            self._is_beginning = False

    def read(self, c: Builder, variable: Variable, described: LiteTensor | None) -> Operand:
        """Returns the value of a variable; one that was not written is of the type that *described* says."""
        held = self._held.setdefault(variable.name, _Held())
        if held.now is None:
            held.now = self._taken(c, variable.name, held, described)
        return held.now

    def write(self, c: Builder, variable: Variable, value: Operand) -> None:
        """Gives a variable another value."""
        held = self._held.setdefault(variable.name, _Held())
        if self._is_beginning:
            if not isinstance(value, CompileTimeConstant) or value.symbolic:
                c.fail(f"the first value of the variable {variable.name!r} is computed", "give it constants")
            held.first = value
            return
        if c.evaluator is not self._main:
            c.fail(
                "a variable is written in a branch or a loop",
                "write it behind, with what the branch or the loop returns",
            )
        if held.taken is not None and (value.dtype is not held.taken.dtype or value.shape != held.taken.shape):
            c.fail(f"{value!r} is not of the type of the variable {variable.name!r}: {held.taken!r}", FIX)
        held.now = value

    def declared(self, graph: Graph) -> Graph:
        """Returns *graph* with the variables that were read as its states."""
        left: dict[str, str] = {}
        for taken, now in [(h.taken, h.now) for h in self._held.values() if h.taken is not None and h.now is not None]:
            left[taken.name] = graph.fresh_name(f"{taken.name}_next")
            graph.output(self._main.value(now), left[taken.name])
        return declare_states(graph, left, {}) if left else graph

    def _taken(self, c: Builder, name: str, held: _Held, described: LiteTensor | None) -> Operand:
        """Returns the value of a variable as a call begins."""
        known = held.first if held.first is not None else described
        if known is None or known.dtype is None or -1 in known.shape:
            c.fail(f"the type of the variable {name!r} is not known", FIX)
        held.taken = self._input(name or "variable", known.shape, known.dtype)
        if held.first is not None and held.first.array.any():
            self._main.graph.defaults[held.taken.name] = Constant(f"{held.taken.name}_initial", held.first.array)
        return held.taken

    def _input(self, name: str, shape: Iterable[ExprLike], dtype: DType) -> Value:
        graph = self._main.graph
        while name in {v.name for v in graph.inputs}:
            name = graph.fresh_name(name)
        return graph.input(name, shape, dtype)
