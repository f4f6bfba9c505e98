"""A part of a graph, as small as can be, of which something is still true: a model that fails, cut down to why it does.

Delta debugging (Zeller and Hildebrandt, 2002) over windows of the nodes in their order, then over outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.graph import Constant, Graph, Node, Value


def reduce_graph(graph: Graph, fails: Callable[[Graph], bool]) -> Graph:
    """Returns a part of *graph*, which fails, that still does: values from outside of it are its inputs.

    A graph with states, or sizes that only a run tells, stays whole: its parts mean something else.
    """
    if graph.late_sizes or graph.states or graph.requirements:
        return graph
    begin, end = _smallest_window(len(graph.nodes), lambda a, b: fails(_window(graph, graph.nodes[a:b])))
    found = _window(graph, graph.nodes[begin:end])
    if (begin, end) == (0, len(graph.nodes)) and not fails(found):
        return graph
    for output in found.outputs if len(found.outputs) > 1 else ():
        part = _window(graph, _ancestors(found, output), [output])
        if fails(part):
            return part
    return found


def _smallest_window(count: int, fails: Callable[[int, int], bool]) -> tuple[int, int]:
    """Returns the borders of a window that fails, and that fails no more with one less at either end."""
    begin, end, step = 0, count, count // 2
    while step:
        if begin + step < end and fails(begin + step, end):
            begin += step
        elif begin < end - step and fails(begin, end - step):
            end -= step
        else:
            step //= 2
    return begin, end


def _window(graph: Graph, nodes: Sequence[Node], outputs: Sequence[Value] | None = None) -> Graph:
    """Returns the graph of some nodes; without *outputs*, values that others read, or that nobody does, are its outputs."""
    made = Graph(graph.name)
    made.dims, made.dimensions, made.is_extended = graph.dims, graph.dimensions, graph.is_extended
    inside = {v for n in nodes for v in n.outputs}
    read = dict.fromkeys(v for n in nodes for v in n.inputs if v is not None and v not in inside)
    made.inputs = [v for v in read if not isinstance(v, Constant)]
    for n in nodes:
        made.append(n)
    for v in outputs if outputs is not None else _results(graph, nodes, inside):
        made.output(v)
    return made


def _results(graph: Graph, nodes: Sequence[Node], inside: set[Value]) -> list[Value]:
    own, users = set(nodes), graph.users()
    used = {v for v in inside if own.issuperset(users.get(v, ())) and users.get(v)}
    return [v for n in nodes for v in n.outputs if v not in used or v in graph.outputs]


def _ancestors(graph: Graph, output: Value) -> list[Node]:
    """Returns the nodes that *output* depends on, in order."""
    wanted, found = {output}, list[Node]()
    for n in reversed(graph.nodes):
        if not wanted.isdisjoint(n.outputs):
            wanted.update(v for v in n.inputs if v is not None)
            found.append(n)
    return found[::-1]
