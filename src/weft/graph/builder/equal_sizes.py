"""Sizes that have to be equal and are not known to be: operands are tied to one of the two, and calls check that it was so.

    y = add(x: f32[n], w: f32[m])     becomes     require(n == m); y = add(x, tie_shape(w, shape=(n,)))

Sizes that a model computes, and sizes that only a run tells, may be equal for reasons that no formula shows. Where an
operand is broadcast, a late size may also be 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.graph.core.graph import Graph, freeze_attributes
from weft.graph.core.graph_values import Value
from weft.graph.core.type_text import dim_text
from weft.ir import Expr, Var, eq, free_vars, post_order
from weft.ops import OPERATORS, possibly_equal_sizes
from weft.support.errors import ModelError, WeftError

Inputs = Sequence[Value | None]


@dataclass(frozen=True)
class EqualSizes:
    """Two sizes that must be equal, of which *kept* takes the place of *other*, which *may be one* instead."""

    kept: Expr
    other: Expr
    may_be_one: bool

    def require(self, graph: Graph, source: str) -> None:
        """Makes calls fail in which the sizes differ."""
        condition = eq(self.kept, self.other) | eq(self.other, 1) if self.may_be_one else eq(self.kept, self.other)
        shown = [dim_text(e) for e in (self.kept, self.other)]
        message = f"the sizes {shown[0]} and {shown[1]} must be equal, but are {{0}} and {{1}}"
        graph.require(condition, message, self.kept, self.other, source=source)


def add_tied(
    graph: Graph, op: str, inputs: Inputs, attributes: dict[str, Any], source: str
) -> tuple[Value, ...] | None:
    """Adds a call that was refused for its sizes, with a check that they are equal; None where that is no help."""
    needed = _equal_sizes(graph, op, inputs, attributes)
    if not needed:
        return None
    if op == "reshape":  # to a shape of as many elements
        made: tuple[Value, ...] = (graph.add("reshape_checked", inputs, source=source, **attributes),)
    else:
        tied = [None if v is None else _tied(graph, v, needed, source) for v in inputs]
        try:
            made = graph.add_many(op, tied, source=source, **attributes)
        except ModelError:
            return None
    for pair in needed:
        pair.require(graph, source)
    return made


def _equal_sizes(graph: Graph, op: str, inputs: Inputs, attributes: dict[str, Any]) -> list[EqualSizes]:
    """Returns the sizes that must be equal for a call that was refused; none if it would be all the same."""
    if op not in OPERATORS:
        return []
    types = tuple([None if v is None else v.type for v in inputs])
    with possibly_equal_sizes() as found:
        try:
            OPERATORS[op].infer(types, dict(freeze_attributes(attributes)))
        except (WeftError, TypeError):
            return []
    return _tied_sizes(found, {known.size for known in graph.late_sizes})


def _tied_sizes(pairs: Sequence[tuple[Expr, Expr, bool]], late: set[Var]) -> list[EqualSizes]:
    """Returns what sizes of *pairs* are tied to: of those that must all be equal, the one that is known earliest, or is shortest.

    A size that is known no earlier than the call may be 1 instead where all pairs that it is in say so.
    """
    root: dict[Expr, Expr] = {}
    once: dict[Expr, bool] = {}

    def is_late(e: Expr) -> bool:
        return not late.isdisjoint(free_vars(e))

    def rank(e: Expr) -> tuple[bool, int]:
        return is_late(e), sum(1 for _ in post_order(e))

    for a, b, may_be_one in pairs:
        for e in (a, b):
            once[e] = once.get(e, True) and may_be_one
        ends = root.get(a, a), root.get(b, b)
        kept = min(ends, key=rank)
        root |= {e: kept for e in (a, b, *root) if root.get(e, e) in ends}
    return [EqualSizes(kept, e, once[e] and is_late(e)) for e, kept in root.items() if e is not kept]


def _tied(graph: Graph, v: Value, needed: Sequence[EqualSizes], source: str) -> Value:
    """Returns *v* with the sizes that take the place of its own."""
    shape, repeated = list(v.shape), list[int]()
    for pair in needed:
        for d, s in enumerate(shape):
            if s is pair.other:
                shape[d] = pair.kept
                repeated += [d] if pair.may_be_one else []
    if all(a is b for a, b in zip(shape, v.shape, strict=True)):
        return v
    return graph.add("tie_shape", [v], shape=tuple(shape), repeated=tuple(repeated), source=source, name=v.name)
