"""Random models of nested branches and loops, of sizes that only a run tells, and of state.

Every value is a matrix of four columns; its rows may be any number, none among them. A body takes what the graphs around it have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import GraphProto, NodeProto, helper
from tests.driver.host.ways import BOOL, F32, I64, Array, Info, graph, model

COLUMNS, ROOM, SLOTS = 4, 8, 5
MOST_ROWS = 24
"""About how many rows a value has at most: what would be longer is cut to its sum."""

Draw = Callable[[int], int]
"""Returns a number below another, chosen by hypothesis."""

CONSTANTS: dict[str, Array] = {
    "first": np.array([0]),
    "all": np.array([0, 1]),
    "yes": np.array(True),  # ONNX's evaluator leaves out loops without a condition
    "zero": np.zeros((), np.float32),
    "limit": np.array(0.1, np.float32),
    "as_slots": np.array([SLOTS, COLUMNS]),
    "some": np.array([[0], [3]]),
    "others": np.array([[4], [3]]),
    **{f"w{k}": np.random.default_rng(k).standard_normal((COLUMNS, COLUMNS)).astype(np.float32) / 2 for k in range(3)},
}
"""What all graphs of a model use."""


@dataclass
class Scope:
    """One graph while it is made: its nodes, and the values that it may use, with about how many rows each has.

    *slots* are those that have `SLOTS` rows in each call.
    """

    nodes: list[NodeProto] = field(default_factory=list)
    values: dict[str, int] = field(default_factory=dict)
    slots: list[str] = field(default_factory=list)


class Random:
    """Makes models by random steps; names are given once in a model."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def node(self, scope: Scope, op: str, *inputs: str, rows: int | None = None, **attributes: Any) -> str:
        """Adds a node of one result, which is one of the values if it is said to have *rows*."""
        made = self.name()
        scope.nodes.append(helper.make_node(op, list(inputs), [made], **attributes))
        if rows is not None:
            scope.values[made] = rows
        return made

    def pick(self, scope: Scope) -> str:
        return list(scope.values)[-1 - self.draw(min(len(scope.values), 4))]

    def total(self, scope: Scope, v: str) -> str:
        """Adds the sum of the rows of *v*, between -1 and 1: one row."""
        return self.node(scope, "Tanh", self.node(scope, "ReduceSum", v, "first", keepdims=1), rows=1)

    def map(self, scope: Scope, v: str) -> str:
        return self.node(scope, ("Tanh", "Relu", "Sigmoid", "Neg")[self.draw(4)], v, rows=scope.values[v])

    def product(self, scope: Scope, v: str) -> str:
        return self.node(scope, "MatMul", v, f"w{self.draw(3)}", rows=scope.values[v])

    def shifted(self, scope: Scope, v: str) -> str:
        return self.node(scope, "Add", v, self.total(scope, self.pick(scope)), rows=scope.values[v])

    def joined(self, scope: Scope, v: str) -> str:
        other = self.pick(scope)
        rows = scope.values[v] + scope.values[other]
        return self.node(scope, "Concat", v, other, rows=rows, axis=0) if rows <= MOST_ROWS else self.total(scope, v)

    def chosen(self, scope: Scope, v: str) -> str:
        """Adds the rows of which the first element is positive."""
        column = self.node(scope, "Squeeze", self.node(scope, "Gather", v, "first", axis=1), "one")
        mask = self.node(scope, "Greater", column, "zero")
        return self.node(scope, "Compress", v, mask, rows=scope.values[v], axis=0)

    def condition(self, scope: Scope, v: str) -> str:
        if self.draw(2):
            return "c"
        return self.node(scope, "Greater", self.node(scope, "ReduceSum", v, "all", keepdims=0), "limit")

    def branch(self, scope: Scope, v: str, depth: int) -> tuple[GraphProto, int]:
        inner = Scope(values={**scope.values, v: scope.values[v]}, slots=list(scope.slots))
        last = self.steps(inner, 1 + self.draw(2), depth + 1)
        result = self.node(inner, "Identity", last)
        return graph(inner.nodes, [], [(result, F32, [None, COLUMNS])]), inner.values[last]

    def taken(self, scope: Scope, v: str, depth: int) -> str:
        (then, m), (other, n) = (self.branch(scope, v, depth) for _ in range(2))
        condition = self.condition(scope, v)
        return self.node(scope, "If", condition, rows=max(m, n), then_branch=then, else_branch=other)

    def looped(self, scope: Scope, v: str, depth: int) -> str:
        """Adds a loop whose state is one row, or grows by one in each iteration, and whose rows are stacked."""
        grows, trips = self.draw(2), 4
        start, state, go = self.total(scope, v), self.name(), self.name()
        inner = Scope(values={**scope.values, state: 1 + trips * grows}, slots=list(scope.slots))
        row = self.total(inner, self.steps(inner, 1 + self.draw(2), depth + 1))
        after = self.node(inner, "Concat", state, row, axis=0) if grows else self.node(inner, "Add", row, state)
        on, kept = self.node(inner, "Identity", go), self.node(inner, "Squeeze", row, "first")
        shape: list[int | str | None] = [None if grows else 1, COLUMNS]
        given: list[Info] = [(self.name(), I64, []), (go, BOOL, []), (state, F32, shape)]
        body = graph(inner.nodes, given, [(on, BOOL, []), (after, F32, shape), (kept, F32, [COLUMNS])])
        last, rows = self.name(), self.name()
        scope.nodes.append(helper.make_node("Loop", ["k", "yes", start], [last, rows], body=body))
        scope.values |= {last: 1 + trips * grows, rows: trips}
        return rows

    def put(self, scope: Scope, slots: str, row: str) -> str:
        """Adds an update of two slots."""
        rows = self.node(scope, "Concat", row, row, axis=0)
        how = ("none", "add")[self.draw(2)]
        made = self.node(scope, "ScatterND", slots, ("some", "others")[self.draw(2)], rows, reduction=how, rows=SLOTS)
        scope.slots.append(made)
        return made

    def written(self, scope: Scope, v: str, depth: int) -> str:
        """Adds a loop whose state are slots, some of which each iteration writes; a loop inside may do so, too."""
        start = scope.slots[-1] if scope.slots else self.node(scope, "Expand", self.total(scope, v), "as_slots")
        state, go = self.name(), self.name()
        inner = Scope(values={**scope.values, state: SLOTS}, slots=[*scope.slots, state])
        row = self.total(inner, self.steps(inner, 1 + self.draw(2), depth + 1))
        made = self.put(inner, inner.slots[-1 - self.draw(2) * (len(inner.slots) > 1)], row)
        if self.draw(2):
            row = self.total(inner, self.steps(inner, 1, depth + 1))
            made = self.put(inner, made, row)
        after, on, kept = (
            self.node(inner, op, *given)
            for op, *given in (("Identity", made), ("Identity", go), ("Squeeze", row, "first"))
        )
        given: list[Info] = [(self.name(), I64, []), (go, BOOL, []), (state, F32, [SLOTS, COLUMNS])]
        body = graph(inner.nodes, given, [(on, BOOL, []), (after, F32, [SLOTS, COLUMNS]), (kept, F32, [COLUMNS])])
        last, rows = self.name(), self.name()
        scope.nodes.append(helper.make_node("Loop", ["k", "yes", start], [last, rows], body=body))
        scope.values |= {last: SLOTS, rows: 4}
        scope.slots.append(last)
        return last

    def steps(self, scope: Scope, count: int, depth: int) -> str:
        """Adds some steps; returns the value that the last makes."""
        made = self.pick(scope)
        for _ in range(count):
            v = self.pick(scope)
            plain = [self.map, self.product, self.shifted, self.joined, self.chosen]
            nested = [self.taken, self.looped, self.written] if depth < 2 else []
            k = self.draw(len(plain) + 2 * len(nested))
            made = plain[k](scope, v) if k < len(plain) else nested[(k - len(plain)) % 3](scope, v, depth)
        return made

    def states(self, scope: Scope) -> dict[str, str]:
        """Adds states, some of them: one that is computed anew, a buffer of which rows are put, one that grows."""
        found = {}
        if self.draw(2):
            scope.values["h"] = 1
            found["h"] = "next_h"
        if self.draw(2):
            made = self.node(scope, "ScatterND", "slots", "at", self.total(scope, "x"))
            for _ in range(self.draw(2)):
                made = self.node(scope, "ScatterND", made, "at2", self.total(scope, "x"), reduction="add")
            scope.nodes.append(helper.make_node("Identity", [made], ["next_slots"]))
            scope.values["next_slots"] = SLOTS
            found["slots"] = "next_slots"
        if self.draw(2):
            scope.nodes.append(helper.make_node("Concat", ["past", self.total(scope, "x")], ["next_past"], axis=0))
            scope.values["next_past"] = ROOM
            found["past"] = "next_past"
        return found

    def model(self) -> tuple[onnx.ModelProto, dict[str, str]]:
        """Returns a model, and its states."""
        scope = Scope(values={"x": 4})
        states = self.states(scope)
        last = self.steps(scope, 2 + self.draw(4), 0)
        if "h" in states:
            sum_ = self.node(scope, "Add", "h", self.total(scope, self.pick(scope)))
            scope.nodes.append(helper.make_node("Tanh", [sum_], ["next_h"]))
        outputs: list[Info] = [(self.node(scope, "Tanh", last), F32, [None, COLUMNS])]
        shapes: dict[str, list[int | str | None]] = {"h": [1, COLUMNS], "slots": [SLOTS, COLUMNS]}
        inputs: list[Info] = [("x", F32, ["n", COLUMNS]), ("c", BOOL, []), ("k", I64, [])]
        inputs += [(name, I64, [1, 1]) for name in ("at", "at2")] if "slots" in states else []
        for name, left in states.items():
            inputs.append((name, F32, shapes.get(name, ["p", COLUMNS])))
            outputs.append((left, F32, shapes.get(name, [None, COLUMNS])))
        return model(scope.nodes, inputs, outputs, {**CONSTANTS, "one": np.array([1])}), states


@st.composite
def models(draw: st.DrawFn) -> tuple[onnx.ModelProto, dict[str, str]]:
    """Draws a model, and which of its inputs become which outputs."""
    return Random(lambda n: draw(st.integers(0, n - 1))).model()
