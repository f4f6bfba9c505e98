"""How large a model becomes when its functions are written out where they are called: counted before it is done.

Thirty functions that each call the one before twice are a small file, and 2**30 nodes. Counting takes a step for each function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from onnx import FunctionProto, GraphProto, NodeProto

from weft.frontends.onnx.check import nested_nodes, opsets_of
from weft.frontends.onnx.functions import Functions
from weft.frontends.onnx.model_node import DAMAGED, domain_of, source_of
from weft.support.errors import ModelError

MOST_NODES: Final = 1 << 17
"""Nodes up to which functions and loops are written out; a model that has more as it is may grow to twice those."""

DEEPEST: Final = 64
"""Functions and nested graphs inside one another: the importer goes down into each."""

_UNCOUNTED: Final = 1 << 60
"""Nodes from which on the number does not matter: that of a thousand functions would itself have a thousand digits."""

SHOWN: Final = 8
"""Functions of a circle that are named."""

Opsets: TypeAlias = Mapping[str, int]
Key: TypeAlias = tuple[str, str, str, int]


class Size(NamedTuple):
    """The size of an expanded body: its nodes, and the depth to which functions and nested graphs lie inside one another."""

    nodes: int
    depth: int


class _Call(NamedTuple):
    """A call of a function: the node, in how many nested graphs it lies, and the operator sets that its body sees."""

    node: NodeProto
    level: int
    opsets: Opsets

    @property
    def key(self) -> Key:
        domain = domain_of(self.node)
        return (domain, self.node.op_type, self.node.overload, self.opsets.get(domain, 1))


class _Body(NamedTuple):
    """The nodes of a body without those that it calls, how deep its own graphs are nested, and its calls."""

    nodes: int
    depth: int
    calls: list[_Call]


def check_expansion(graph: GraphProto, opsets: Opsets, functions: Functions) -> int:
    """Returns the most nodes that may be made in importing *graph*.

    Raises `ModelError` where functions call one another in a circle, or where written out they make too many nodes or too deep
    a nest.
    """
    bodies: dict[Key | None, _Body] = {None: _body(graph, opsets, functions)}
    sizes = _sizes(bodies, functions)
    most = max(MOST_NODES, 2 * sum([b.nodes for b in bodies.values()]))
    total = sizes[None]
    if total.depth > DEEPEST:
        raise ModelError(
            f"functions and nested graphs lie {total.depth} deep inside one another; {DEEPEST} is the most",
            where=graph.name or None,
            hint="export the model with its functions inlined, and with fewer graphs inside one another",
        )
    if total.nodes > most:
        largest = max(bodies[None].calls, key=lambda c: sizes[c.key].nodes)
        count = f"{total.nodes:,}" if total.nodes < _UNCOUNTED else "countless"
        raise ModelError(
            f"its functions call others many times over: written out, the model has {count} nodes; {most:,} is the most",
            where=source_of(largest.node),
            hint="no exporter writes such a model: do not load one that you do not trust",
        )
    return most


def _body(graph: GraphProto | FunctionProto, opsets: Opsets, functions: Functions) -> _Body:
    nodes, depth = 0, 0
    calls: list[_Call] = []
    for node, level in nested_nodes(graph):
        nodes, depth = nodes + 1, max(depth, level)
        if functions.is_known(node, opsets.get(domain_of(node), 1)):
            calls.append(_Call(node, level, opsets))
    return _Body(nodes, depth, calls)


def _sizes(bodies: dict[Key | None, _Body], functions: Functions) -> dict[Key | None, Size]:
    """Returns the size of each body that the one of None needs, and adds it to *bodies*; raises `ModelError` for a circle."""
    sizes: dict[Key | None, Size] = {}
    path: dict[Key | None, Iterator[_Call]] = {None: iter(bodies[None].calls)}
    while path:
        key = next(reversed(path))
        call = next((c for c in path[key] if c.key not in sizes), None)
        if call is None:
            sizes[key] = _sized(bodies[key], sizes)
            del path[key]
        elif call.key in path:
            raise _circle([k for k in path if k is not None], call)
        else:
            called = functions.called(call.node, call.key[3])
            inner = {**call.opsets, **opsets_of(called)} if called is not None else call.opsets
            bodies[call.key] = _body(called, inner, functions) if called is not None else _Body(1, 0, [])
            path[call.key] = iter(bodies[call.key].calls)
    return sizes


def _sized(body: _Body, sizes: Mapping[Key | None, Size]) -> Size:
    nodes = body.nodes + sum([sizes[c.key].nodes for c in body.calls])
    depth = max([body.depth, *[c.level + 1 + sizes[c.key].depth for c in body.calls]])
    return Size(min(nodes, _UNCOUNTED), depth)


def _circle(path: list[Key], call: _Call) -> ModelError:
    names = [f"{domain}.{name}" if domain else name for domain, name, *_ in path[path.index(call.key) :]]
    shown = [*names[:SHOWN], *(["..."] if len(names) > SHOWN else []), names[0]]
    return ModelError(
        f"the functions {' -> '.join(shown)} call one another in a circle"
        if len(names) > 1
        else f"the function {names[0]} calls itself",
        where=source_of(call.node),
        hint=DAMAGED,
    )
