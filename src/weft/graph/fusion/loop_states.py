"""Updates the states of loops where they are: an iteration writes the elements that change, and copies no others.

    s' = loop(n, s, x, body=(step, s, x) -> (true, scatter_nd(s, step, f(gather(s, step - 1), x))))

    body:  g = f(gather(s, step - 1), x); u = scatter_nd(s, step, g, in_place=True)          u is in the memory of s

All that reads a state as it was has to run before its update: groups are put into such an order. A state of which that can't be
said has two copies, of which an iteration reads one and writes the other. A loop inside of a body updates the state, too, where
its own state begins with it and is updated in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.fusion.groups import FusedGraph
from weft.graph.fusion.node_facts import is_rename
from weft.graph.regions.region_operators import LOOP, appends_of
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph

Fuse = Callable[[Graph], FusedGraph]


def fuse_body(loop: Node, fuse: Fuse) -> FusedGraph:
    """Returns the body of *loop* cut into kernels by *fuse*, in which states are updated in place where that can be done."""
    body: Graph = loop.attribute("body")
    states = [k for k in range(int(loop.attribute("states"))) if k not in appends_of(loop)]
    wanted = [k for k in states if _updates(body, k) is not None and body.inputs[1 + k].shape == loop.outputs[k].shape]
    while wanted:
        fused = fuse(_marked(body, wanted))
        made = fused
        for k in wanted:
            made = _with_state(made, k) or made
        if len(made.updates) == len(wanted):
            return made
        wanted = list(made.updates)
    return fuse(body)


def _updates(body: Graph, k: int) -> list[Node] | None:
    """Returns the nodes that update state *k* one after another, if it is made by such and by inner loops alone; else None."""
    found: list[Node] = []
    v, taken, count = body.outputs[1 + k], body.inputs[1 + k], 0
    while v is not taken:
        node = v.producer
        first = None if node is None else _updated(node, v)
        if node is None or first is None:
            return None
        if node.operator.updates_in_place:
            found.append(node)
        count += not is_rename(node)
        v = first
    return found if count else None


def _updated(node: Node, v: Value) -> Value | None:
    """Returns the value that *v* of *node* is an update of, or has all elements of; None where it is made otherwise."""
    if node.operator is LOOP:
        k = node.outputs.index(v)
        return node.inputs[2 + k] if k < int(node.attribute("states")) else None
    return node.inputs[0] if node.operator.updates_in_place or is_rename(node) else None


def _marked(body: Graph, states: Sequence[int]) -> Graph:
    """Returns *body* with the updates of *states* in place."""
    nodes = {n for k in states for n in _updates(body, k) or ()}

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        if node not in nodes:
            return None
        attributes = {**dict(node.attributes), "in_place": True}
        return [new.add(node.op, inputs, source=node.source, name=node.output.name, **attributes)]

    return rewrite_graph(body, rule)


def _with_state(fused: FusedGraph, k: int) -> FusedGraph | None:
    """Returns *fused* with state *k* in one memory, and groups in an order that allows it; None where no order does."""
    taken, v = fused.graph.inputs[1 + k], fused.root(fused.graph.outputs[1 + k])
    updates: list[Value] = []
    while v is not taken:
        before = _memory_of(fused, v)
        if before is None:
            return None
        updates.append(v)
        v = before
    made = replace(fused, updates={**fused.updates, k: tuple(updates)})
    return _in_order(made) if updates else None


def _memory_of(fused: FusedGraph, v: Value) -> Value | None:
    """Returns the root value in the memory of which the node of *v* makes it; None where it has memory of its own."""
    node = v.producer
    if node is None:
        return None
    if node.operator is LOOP:
        k = node.outputs.index(v)
        (group,) = [g for g in fused.groups if node in g.nodes]
        first = node.inputs[2 + k] if k in group.regions[0].updates else None
    else:
        first = node.inputs[0] if dict(node.attributes).get("in_place") is True else None
    return None if first is None else fused.root(first)


def _in_order(fused: FusedGraph) -> FusedGraph | None:
    """Returns *fused* with its groups in an order in which all that reads a state as it was runs before its update."""
    needs = _needs(fused)
    order = None if needs is None else _sorted(needs)
    if order is None or (order != sorted(order) and fused.graph.late_sizes):
        return None
    return replace(fused, groups=tuple([fused.groups[k] for k in order]))


def _needs(fused: FusedGraph) -> list[set[int]] | None:
    """Returns the groups that have to run before each: those that make what it reads, and that read a state as it was."""
    reads = [[fused.root(v) for n in g.nodes for v in n.inputs if v is not None] for g in fused.groups]
    writes = [set(map(fused.root, g.outputs)) for g in fused.groups]
    needs = [{j for j in range(k) if not writes[j].isdisjoint(read)} for k, read in enumerate(reads)]
    for new, old in _overwritten(fused):
        writer, *others = [k for k, made in enumerate(writes) if new in made]
        readers = {k for k, read in enumerate(reads) if old in read} - {writer}
        run_last = [fused.groups[k] for k in readers if fused.groups[k] in fused.on_demand]
        if others or run_last or reads[writer].count(old) > 1:
            return None
        needs[writer] |= readers
    return needs


def _overwritten(fused: FusedGraph) -> Iterator[tuple[Value, Value]]:
    """Yields each update of a state with the value that it overwrites."""
    for k, updates in fused.updates.items():
        yield from zip(updates, (*updates[1:], fused.graph.inputs[1 + k]), strict=True)


def _sorted(needs: Sequence[set[int]]) -> list[int] | None:
    """Returns the order nearest to the given one in which each comes behind those that it *needs*; None where there is none."""
    followers: list[list[int]] = [[] for _ in needs]
    for k, needed in enumerate(needs):
        for j in needed:
            followers[j].append(k)
    left = [len(needed) for needed in needs]
    ready = [k for k, count in enumerate(left) if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        order.append(heappop(ready))
        for k in followers[order[-1]]:
            left[k] -= 1
            if not left[k]:
                heappush(ready, k)
    return order if len(order) == len(needs) else None
