"""Results that are views of arguments, or of other results: as in PyTorch they share memory, and nothing is computed.

    (y, t) = (addmm(b, x, w), t(w))     gives the one result y, and with it w.t()

Graphs of training return such views of parameters, which the graphs of their gradients read. A view of an argument has to be
one, whatever its sizes: PyTorch makes the views that a caller gets anew, by the strides of those that it is given.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import torch
from torch.fx import Graph, GraphModule, Node

_SIZES: Final = (torch.SymInt, torch.SymFloat, torch.SymBool, int, float)


class SharedResults(NamedTuple):
    """The *numbers* of results that are views; *replay* makes them of some *arguments* and of results, the *bases*.

    Nothing else reads the nodes of *own*.
    """

    numbers: tuple[int, ...]
    arguments: tuple[int, ...]
    bases: tuple[int, ...]
    replay: GraphModule
    own: frozenset[Node]


NONE_SHARED: Final = SharedResults((), (), (), GraphModule({}, Graph()), frozenset())


def shared_results(graph: Graph, places: Sequence[Node], results: Sequence[Any]) -> SharedResults:
    """Finds those of a graph's *results* that are views; *places* are its arguments."""
    given, steps = _views_and_sizes(graph, places, results)
    numbers = tuple([k for k, n in enumerate(results) if n in steps and isinstance(n.meta.get("val"), torch.Tensor)])
    if not numbers:
        return NONE_SHARED
    views = [results[k] for k in numbers]
    needed = _needed(views, steps)
    read = [n for n in given if n in needed]
    argument = {n: k for k, n in enumerate(places)}
    return SharedResults(
        numbers,
        tuple([argument[n] for n in read if n in argument]),
        tuple([results.index(n) for n in read if n not in argument]),
        _graph_of(read, [n for n in graph.nodes if n in needed and n in steps], views),
        _read_by_results_alone(graph, {n for k, n in enumerate(results) if k not in numbers}, steps),
    )


def _views_and_sizes(graph: Graph, places: Sequence[Node], results: Sequence[Any]) -> tuple[list[Node], set[Node]]:
    """Returns arguments, and behind them results, that views may be of; and the views and sizes that are made of them."""
    given, steps, returned = dict.fromkeys(places), set[Node](), set(filter(_is_as_it_lies, results))
    for n in graph.nodes:
        if (_is_view(n) or _is_size(n)) and all(i in given or i in steps for i in n.all_input_nodes):
            steps.add(n)
        elif n in returned:
            given.setdefault(n)
    return list(given), steps


def _graph_of(given: Sequence[Node], steps: Sequence[Node], results: Sequence[Node]) -> GraphModule:
    """Returns a graph of *steps* that makes *results* of the values *given*."""
    made = Graph()
    copies = {n: made.placeholder(f"given_{k}") for k, n in enumerate(given)}
    for n in steps:
        copies[n] = made.node_copy(n, copies.__getitem__)
    made.output(tuple([copies[n] for n in results]))
    return GraphModule({}, made)


def _needed(nodes: list[Node], steps: Collection[Node]) -> set[Node]:
    """Returns *nodes* and all that they are made of by *steps*."""
    found, waiting = set[Node](), list(nodes)
    while waiting:
        n = waiting.pop()
        if n not in found:
            found.add(n)
            waiting += n.all_input_nodes if n in steps else ()
    return found


def _read_by_results_alone(graph: Graph, others: Collection[Any], steps: Collection[Node]) -> frozenset[Node]:
    """Returns those of *steps* that only results read, of which none is one of the *others*."""
    found = set[Node]()
    for n in reversed(graph.nodes):
        if n in steps and n not in others and all(u in found or u.op == "output" for u in n.users):
            found.add(n)
    return frozenset(found)


def _is_view(node: Node) -> bool:
    """Tells whether a node is a view of its argument, or one of several."""
    if node.target is operator.getitem and isinstance(node.args[0], Node):
        return _is_view(node.args[0])
    return isinstance(node.target, torch._ops.OpOverload) and bool(node.target.is_view)


def _is_size(node: Node) -> bool:
    """Tells whether a node computes a number of sizes."""
    return node.op == "call_function" and isinstance(node.meta.get("val"), _SIZES)


def _is_as_it_lies(node: Any) -> bool:
    """Tells whether a node is a tensor that PyTorch has as it lies in memory, with no conjugation or sign left to be applied."""
    meta = node.meta.get("val") if isinstance(node, Node) else None
    return isinstance(meta, torch.Tensor) and not meta.is_conj() and not meta.is_neg()
