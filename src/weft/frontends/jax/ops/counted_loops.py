"""Loops of a known number of iterations, and their uses of states: the form of `jax.lax.scan` in StableHLO.

while(i = 0, xs = %xs, h = %h, ys = zeros)            a counted loop of 10 iterations
  cond i < 10                                         i    the counter
  do   h = f(h, xs[i]); ys[i] = h; i = i + 1          xs   invariant: it is a value from around
                                                      h    a state
                                                      ys   rows: each iteration makes one, nothing is copied

The loop is built once for trial, in a region that is dropped, and its nodes say which state is which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from weft.frontends.jax.call import Call
from weft.graph import Constant, Node, Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator

Line: TypeAlias = tuple[int, int]
"""A scale and an offset: `scale * counter + offset`."""


@dataclass(frozen=True)
class CountedLoop:
    """A loop of *trips* iterations; `rows` says of states that are rows whether the last is made first."""

    trips: int
    counter: int
    first: int
    rows: dict[int, bool]


def counted_loop(c: Call, invariant: Sequence[bool]) -> CountedLoop | None:
    """Returns how a `while` counts; None for one whose number of iterations only a run tells."""
    graph = c.evaluator.graph.region("trial")
    b = Builder(PartialEvaluator(graph, around=c.evaluator), c.source)
    states: list[Operand] = []
    for k, v in enumerate(c.operands):
        states.append(v if invariant[k] else graph.input(f"state{k}", v.shape, v.dtype))
    go_on, made = c.region(0, states, b), c.region(1, states, b)
    counter, limit = _limit(go_on[0], states) if go_on else (-1, 0)
    first = c.operands[counter] if counter >= 0 else None
    if not isinstance(first, CompileTimeConstant) or first.symbolic or len(made) != len(states):
        return None
    if not _grows_by_one(made[counter], states[counter]):
        return None
    begin = int(first.array)
    counts = _Counts(states[counter], begin, max(limit - begin, 0))
    used = _uses(graph.nodes, [*go_on, *made])
    rows: dict[int, bool] = {}
    for k, (state, new) in enumerate(zip(states, made, strict=True)):
        backwards = None if invariant[k] or used.get(state, 0) != 1 else counts.row_order(state, new)
        if backwards is not None:
            rows[k] = backwards
    return CountedLoop(counts.trips, counter, begin, rows)


def row_of(new: Operand) -> Operand:
    """Returns the row that an iteration wrote to a state of rows, whose new value is *new*."""
    write = _write_of(new)
    assert write is not None
    row = write.inputs[1]
    assert row is not None
    return row


def _limit(go_on: Operand, states: Sequence[Operand]) -> tuple[int, int]:
    """Returns which state a condition compares with a number, and with which; -1 for other conditions."""
    node = go_on.producer if isinstance(go_on, Value) else None
    if node is None or node.operator.name not in ("less", "less_equal"):
        return -1, 0
    left, right = node.inputs
    found = [k for k, s in enumerate(states) if s is left]
    if not found or not isinstance(right, Constant) or right.array.size != 1:
        return -1, 0
    return found[0], int(right.array.reshape(-1)[0]) + (node.operator.name == "less_equal")


def _grows_by_one(new: Operand, old: Operand) -> bool:
    node = new.producer if isinstance(new, Value) else None
    if node is None or node.operator.name != "add" or old not in node.inputs:
        return False
    other = node.inputs[1] if node.inputs[0] is old else node.inputs[0]
    return isinstance(other, Constant) and other.array.size == 1 and int(other.array.reshape(-1)[0]) == 1


def _uses(nodes: Sequence[Node], results: Sequence[Operand]) -> dict[Operand, int]:
    """Returns how often values are read by nodes, and are results."""
    made: dict[Operand, int] = {}
    for v in [v for n in nodes for v in n.inputs if v is not None] + list(results):
        made[v] = made.get(v, 0) + 1
    return made


def _write_of(new: Operand) -> Node | None:
    """Returns the node that wrote one row of a state; None for a value that was made otherwise."""
    node = _before_reshapes(new)
    if node is None or node.operator.name != "write_at" or node.attribute("axis") != 1:
        return None
    x, row = node.inputs[0], node.inputs[1]
    one_row = row is not None and row.static_shape is not None and row.static_shape[:2] == (1, 1)
    return node if one_row and x is not None and x.static_shape is not None and x.static_shape[0] == 1 else None


def _before_reshapes(v: Operand | None) -> Node | None:
    """Returns the node that made a value, before it was reshaped."""
    node = v.producer if isinstance(v, Value) else None
    while node is not None and node.operator.name == "reshape" and node.inputs[0] is not None:
        v = node.inputs[0]
        node = v.producer
    return node


class _Counts:
    """Formulas of a counter that goes from *begin* on, *trips* times."""

    def __init__(self, counter: Operand, begin: int, trips: int) -> None:
        self.counter, self.begin, self.trips = counter, begin, trips

    def row_order(self, state: Operand, new: Operand) -> bool | None:
        """Tells whether a state's rows are all written, from the last to the first; None where they are not."""
        write = _write_of(new)
        if write is None or not isinstance(state, Value) or state.static_shape is None:
            return None
        source = write.inputs[0]
        while source is not None and source is not state:
            node = source.producer
            if node is None or node.operator.name != "reshape":
                return None
            source = node.inputs[0]
        place = self.formula(write.inputs[2])
        if place is None or state.static_shape[0] != self.trips:
            return None
        scale, offset = place
        at = scale * self.begin + offset
        if (scale, at) == (1, 0):
            return False
        return True if (scale, at) == (-1, self.trips - 1) else None

    def formula(self, v: Value | None, depth: int = 0) -> Line | None:
        """Returns *v* as `scale * counter + offset` while the loop runs; None where it is no such."""
        if v is self.counter:
            return 1, 0
        if isinstance(v, Constant):
            return (0, int(v.array.reshape(-1)[0])) if v.array.size == 1 else None
        node = None if v is None else v.producer
        if node is None or depth > 50:
            return None
        name = node.operator.name
        if name in ("reshape", "cast"):
            return self.formula(node.inputs[0], depth + 1)
        given = [self.formula(i, depth + 1) for i in node.inputs]
        if name == "where":
            return self._chosen(node, given, depth)
        return self._of_two(name, *given) if len(given) == 2 else None

    def _of_two(self, name: str, left: Line | None, right: Line | None) -> Line | None:
        """Returns the formula of an operator of two operands."""
        if left is None or right is None:
            return None
        if name in ("add", "sub"):
            sign = 1 if name == "add" else -1
            return left[0] + sign * right[0], left[1] + sign * right[1]
        if name in ("maximum", "minimum"):
            is_less = self._is_less(left, right)
            return None if is_less is None else right if is_less == (name == "maximum") else left
        return None

    def _chosen(self, node: Node, given: Sequence[Line | None], depth: int) -> Line | None:
        """Returns the operand of a `where` that is always chosen."""
        condition = node.inputs[0]
        test = None if condition is None else condition.producer
        if test is None or test.operator.name != "less":
            return None
        left, right = (self.formula(i, depth + 1) for i in test.inputs)
        holds = None if left is None or right is None else self._is_less(left, right, strictly=True)
        return None if holds is None else given[1] if holds else given[2]

    def _is_less(self, a: Line, b: Line, *, strictly: bool = False) -> bool | None:
        """Tells whether one formula is below another in all iterations, or in none; None where in some. Equal ones are either."""
        ends = (self.begin, self.begin + max(self.trips - 1, 0))
        distances = [(b[0] - a[0]) * i + b[1] - a[1] for i in ends]
        if all(d > 0 or (d == 0 and not strictly) for d in distances):
            return True
        return False if all(d <= 0 for d in distances) else None
