"""Packs operands that no iteration of a loop changes once, before the loop (loop-invariant code motion).

    loop(...): p = pack_matrix(w); y = matmul_packed(x, p)     becomes     p = pack_matrix(w); loop(...): y = matmul_packed(x, p)

Other invariant nodes stay: as part of a kernel they cost less than memory for their results.
"""

from __future__ import annotations

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.regions.closing import with_values
from weft.graph.regions.region_operators import LOOP, captures_begin
from weft.graph.regions.stacked_rows import append_regions


def append_hoisted(graph: Graph, node: Node) -> Node:
    """Appends the control-flow *node* to *graph*; of a loop, the captures that its body packs are packed before it."""
    body = node.attribute("body") if node.operator is LOOP else None
    if body is None:
        return graph.append(node)
    begin = captures_begin(node)
    own = len(body.inputs) - (len(node.inputs) - begin)
    around = {inner: v for inner, v in zip(body.inputs[own:], node.inputs[begin:], strict=True) if v is not None}
    opened = with_values(body, body.inputs[:own], around)
    packs = _invariant_packs(opened)
    if not packs:
        return graph.append(node)
    for pack in packs:
        graph.append(pack)
    opened.nodes = [n for n in opened.nodes if n not in packs]
    facts = {k: a for k, a in node.attributes if k != "body"}
    made = append_regions(graph, LOOP, node.inputs[:begin], {"body": opened}, facts, node.source)
    for old, new in zip(node.outputs, made.outputs, strict=True):
        new.name = old.name
    return made


def _invariant_packs(body: Graph) -> list[Node]:
    """Returns the nodes of *body* that pack loop invariants, and the nodes that those read, in order."""
    varying: set[Value] = set(body.inputs)
    invariant: list[Node] = []
    for node in body.nodes:
        if node.operator.has_regions or any(v in varying for v in node.inputs if not isinstance(v, Constant)):
            varying.update(node.outputs)
        else:
            invariant.append(node)
    needed: set[Value] = set()
    for node in reversed(invariant):
        if node.operator.prepares or needed.intersection(node.outputs):
            needed.update([v for v in (*node.outputs, *node.inputs) if v is not None])
    return [n for n in invariant if needed.intersection(n.outputs)]
