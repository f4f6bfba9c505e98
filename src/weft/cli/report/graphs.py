"""The three graphs of a compilation as pictures: the model's nodes, those after the passes, and the calls of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from weft.cli.report.drawing import Arrow, Box, Drawing
from weft.graph import Constant, FusedGraph, Graph, Group, Node, Value, attribute_text, dim_text, facts_of, type_text
from weft.te import OpClass

KINDS: Final = {
    OpClass.ELEMENTWISE: "elementwise",
    OpClass.BROADCAST: "elementwise",
    OpClass.INJECTIVE: "movement",
    OpClass.REDUCTION: "reduction",
    OpClass.COMPLEX_OUT_FUSABLE: "contraction",
    OpClass.OPAQUE: "other",
}
"""The names of the fusion classes for people."""

TIMES: Final = "\N{MULTIPLICATION SIGN}"

SHARE: Final = 7
"""Characters in which a call tells its part of the time."""

SHOWN_ATTRIBUTE: Final = 120
"""Characters of an attribute that are shown."""


def draw_model(graph: Graph, fused: FusedGraph) -> Drawing:
    """Returns the graph as it was read; a node's calls are those that say they stand for it."""
    stands = [f", {g.source}, " for g in fused.groups]

    def calls_of(node: Node) -> list[int]:
        wanted = f", {node.source}, "
        return [step for step, source in enumerate(stands) if node.source and wanted in source]

    return _draw_nodes(graph, calls_of)


def draw_optimized(fused: FusedGraph) -> Drawing:
    """Returns the graph after the passes, of which groups were made."""
    step = {n: s for s, g in enumerate(fused.groups) for n in g.nodes}

    def inside(a: Node, b: Node) -> bool:
        return a in step and step[a] == step.get(b)

    return _draw_nodes(fused.graph, lambda n: [step[n]] if n in step else [], inside)


def draw_calls(fused: FusedGraph) -> Drawing:
    """Returns the calls of kernels; an arrow leads from the call that writes memory to those that read it."""
    made = Drawing()
    writers: dict[Value, list[tuple[int, Value]]] = {}
    for v in fused.graph.inputs:
        writers.setdefault(fused.root(v), []).append((made.add(_pill(v.name, v, "input")), v))
    for step, g in enumerate(fused.groups):
        number = made.add(_call_box(g, step))
        made.arrows += _arrows_to(number, g.inputs, writers, fused)
        for v in g.outputs:
            writers.setdefault(fused.root(v), []).append((number, v))
    for name, v in zip(fused.graph.output_names, fused.graph.outputs, strict=True):
        number = made.add(_pill(name, v, "output"))
        made.arrows += _arrows_to(number, [v], writers, fused)
    return made


def _arrows_to(
    box: int, read: Iterable[Value], writers: Mapping[Value, Sequence[tuple[int, Value]]], fused: FusedGraph
) -> list[Arrow]:
    """Returns an arrow from each box that writes memory that is read."""
    shapes: dict[int, list[str]] = {}
    for v in read:
        for writer in _writers_of(v, writers, fused):
            shapes.setdefault(writer, []).append(_shape(v))
    return [Arrow(writer, box, ", ".join(found)) for writer, found in shapes.items()]


def _writers_of(v: Value, writers: Mapping[Value, Sequence[tuple[int, Value]]], fused: FusedGraph) -> Iterable[int]:
    """Returns the boxes that write the memory of *v*, of which each may write a part."""
    begin, size = fused.offset(v), _bytes(v)
    found = [
        box
        for box, w in writers.get(fused.root(v), ())
        if size is None or (n := _bytes(w)) is None or (fused.offset(w) < begin + size and begin < fused.offset(w) + n)
    ]
    return dict.fromkeys(found)


def _bytes(v: Value) -> int | None:
    total = v.dtype.bytes
    for n in v.static_shape or ():
        total *= n
    return None if v.static_shape is None else total


def _call_box(g: Group, step: int) -> Box:
    weights = [v for v in g.inputs if isinstance(v, Constant)]
    facts = [
        ("for", g.source),
        ("operators", " → ".join(n.op for n in g.nodes)),
        ("reads", _typed(v for v in g.inputs if not isinstance(v, Constant))),
        ("weights", _typed(weights)),
        ("writes", _typed(g.outputs)),
    ]
    computing = [facts_of(n).kind for n in g.nodes if not facts_of(n).is_rearrangement]
    kind = KINDS[max(computing)] if computing else "movement"
    title = " + ".join(n.op for n in g.nodes)
    return Box(title, _shape(g.outputs[0]), kind, (step,), [f for f in facts if f[1]], SHARE)


def _draw_nodes(
    graph: Graph,
    calls_of: Callable[[Node], Sequence[int]],
    inside: Callable[[Node, Node], bool] = lambda a, b: False,
) -> Drawing:
    made = Drawing()
    number: dict[Value, int] = {v: made.add(_pill(v.name, v, "input")) for v in graph.inputs}
    for n in graph.nodes:
        box = made.add(_node_box(n, calls_of(n)))
        for v in dict.fromkeys(v for v in n.inputs if v is not None and v in number):
            one = v.producer is not None and inside(v.producer, n)
            made.arrows.append(Arrow(number[v], box, _shape(v), one))
        number.update(dict.fromkeys(n.outputs, box))
    for name, v in zip(graph.output_names, graph.outputs, strict=True):
        pill = made.add(_pill(name, v, "output"))
        if v in number:
            made.arrows.append(Arrow(number[v], pill, _shape(v)))
    return made


def _node_box(n: Node, calls: Sequence[int]) -> Box:
    found = facts_of(n)
    kind = "movement" if found.is_rearrangement else KINDS[found.kind]
    given = [v for v in n.inputs if v is not None]
    facts = [
        ("for", n.source),
        ("reads", _typed(v for v in given if not isinstance(v, Constant))),
        ("weights", _typed(v for v in given if isinstance(v, Constant))),
        ("writes", _typed(n.outputs)),
        *[(name, _cut(attribute_text(a))) for name, a in n.attributes],
    ]
    return Box(n.op, _shape(n.outputs[0]) if n.outputs else "", kind, calls, [f for f in facts if f[1]])


def _pill(name: str, v: Value, kind: str) -> Box:
    return Box(name, _shape(v), kind, (), [(kind, f"{name}: {type_text(v.type)}")])


def _typed(values: Iterable[Value]) -> str:
    return "\n".join(f"{v.name}: {type_text(v.type)}" for v in values)


def _shape(v: Value) -> str:
    """Returns a shape for people: `1×64×56×56`."""
    return TIMES.join(dim_text(s) for s in v.shape) or "scalar"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_ATTRIBUTE else f"{text[: SHOWN_ATTRIBUTE - 1]}…"
