"""Operators of PyTorch that run graphs: branches, loops and scans, as regions of Weft's graph.

    cond(p, then, other, (x,))            if(p, x, then=Graph, other=Graph)
    while_loop(go_on, body, (s,), (x,))   loop(go_on(s, x), s, x, body=Graph)
    scan(combine, (s,), (rows,), (x,))    loop(len(rows), s, rows, x, body=Graph, scans=...)
    map(function, (rows,), (x,))          the same, without states

A graph takes its captured values as arguments, which are given to the operator one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from torch.fx import GraphModule

from weft.graph.builder import Builder, Operand
from weft.graph.composites.branches_and_loops import branch, loop
from weft.support.dtypes import bool_


class Graph(NamedTuple):
    """A graph of PyTorch's, and the function that adds its operators to a region."""

    module: GraphModule
    add_to: Callable[[Builder, Sequence[Any], Operand | None], list[Any]]

    def __call__(self, b: Builder, given: Sequence[Any], step: Operand | None = None) -> list[Any]:
        """Returns its results, given its arguments, in the region of *b*: in a loop, of the iteration of the number *step*."""
        return self.add_to(b, given, step)


Call: TypeAlias = Callable[..., list[Any]]

CONTROL_FLOW: Final[dict[str, Call]] = {}
"""The importers of operators that run graphs, by their names."""


def controls(name: str) -> Callable[[Call], Call]:
    """Enters the decorated function as the importer of the operator *name*."""

    def enter(function: Call) -> Call:
        CONTROL_FLOW[name] = function
        return function

    return enter


@controls("higher_order.cond")
def cond(b: Builder, condition: Operand, then: Graph, other: Graph, given: Sequence[Any] = ()) -> list[Operand]:
    """Returns the results of one of two graphs."""
    return branch(b, condition, lambda r: then(r, given), lambda r: other(r, given))


@controls("higher_order.while_loop")
def while_loop(b: Builder, go_on: Graph, body: Graph, first: Sequence[Any], given: Sequence[Any] = ()) -> list[Operand]:
    """Returns the states of a loop that ends when *go_on* does not hold of them."""

    def step(r: Builder, number: Operand, states: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
        made = body(r, [*states, *given], number)
        return go_on(r, [*made, *given], number)[0], made, []

    return loop(b, None, go_on(b, [*first, *given])[0], first, step)[0]


@controls("higher_order.scan")
def scan(
    b: Builder, combine: Graph, first: Sequence[Any], rows: Sequence[Operand], given: Sequence[Any] = ()
) -> list[Operand]:
    """Returns the states after all rows, and the result of each row, one after another in a new first dimension."""

    def step(r: Builder, number: Operand, states: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
        own = [r.add("gather", x, number, axis=0) for x in rows]
        made = combine(r, [*states, *own, *given], number)
        return r.scalar(True, bool_), made[: len(first)], made[len(first) :]

    states, made = loop(b, b.size(rows[0].shape[0]), None, first, step)
    return [*states, *made]


@controls("higher_order.map_impl")
def mapped(b: Builder, function: Graph, rows: Sequence[Operand], given: Sequence[Any] = ()) -> list[Operand]:
    """Returns the results of each row, one after another in a new first dimension."""
    return scan(b, function, (), rows, given)
