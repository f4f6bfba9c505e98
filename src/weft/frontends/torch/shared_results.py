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
    returned = {node: k for k, node in reversed(list(enumerate(results))) if isinstance(node, Node)}
    given, steps = dict.fromkeys(places), set[Node]()
    for n in graph.nodes:
        if (_is_view(n) or _is_size(n)) and all(i in given or i in steps for i in n.all_input_nodes):
            steps.add(n)
        elif n in returned and _is_as_it_lies(n):
            given.setdefault(n)
    numbers = tuple([k for k, n in enumerate(results) if n in steps and isinstance(n.meta.get("val"), torch.Tensor)])
    if not numbers:
        return NONE_SHARED
    needed = _needed([results[k] for k in numbers], steps)
    read, argument = [n for n in given if n in needed], {n: k for k, n in enumerate(places)}
    made = Graph()
    copies = {n: made.placeholder(f"given_{k}") for k, n in enumerate(read)}  # arguments come first, as in `given`
    for n in graph.nodes:
        if n in needed and n in steps:
            copies[n] = made.node_copy(n, copies.__getitem__)
    made.output(tuple([copies[results[k]] for k in numbers]))
    arguments = tuple([argument[n] for n in read if n in argument])
    bases = tuple([returned[n] for n in read if n not in argument])
    own = _read_by_results_alone(graph, {n for k, n in enumerate(results) if k not in numbers}, steps)
    return SharedResults(numbers, arguments, bases, GraphModule({}, made), own)


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


def _is_as_it_lies(node: Node) -> bool:
    """Tells whether a node is a tensor that PyTorch has as it lies in memory, with no conjugation or sign left to be applied."""
    meta = node.meta.get("val")
    return isinstance(meta, torch.Tensor) and not meta.is_conj() and not meta.is_neg()
