"""Takes prefix sums on grids apart: threads combine chunks, then the prefixes of these, then those within each chunk.

    y = cumsum(x)     becomes     chunks = reshape(x, (n / 32, 32))
                                  before = cumsum(reduce_sum(chunks, axes=(1,)), exclusive=True)
                                  y      = reshape(cumsum(chunks, before, axis=1), (n,))

The order of a prefix leaves one thread to each slice. In chunks the sums of floats are reassociated, as those of reductions are;
the prefixes of the chunks' sums are taken apart in turn. After Blelloch, "Prefix sums and their applications" (1990), section
1.2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from weft.cost import Planner, PrefixChunk, prefix_chunk_plans, size_of, subject_of
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import Const
from weft.ops import PREFIXES
from weft.support.dtypes import f32
from weft.te import is_narrow


def split_prefixes(graph: Graph, planner: Planner) -> Graph:
    """Returns *graph* with its prefix sums and products in chunks, where *planner* decides so."""

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        if node.op not in PREFIXES or len(inputs) > 1 or inputs[0] is None:
            return None
        x, axis = inputs[0], node.attribute("axis") % inputs[0].rank
        chunk = _chunk(node, x, axis, planner)
        if chunk == 1:
            return None
        wide = new.add("cast", [x], dtype=f32) if is_narrow(x.dtype) else x
        made = _in_chunks(new, node, wide, axis, chunk)
        return [made if made.dtype is x.dtype else new.add("cast", [made], dtype=x.dtype, name=node.output.name)]

    before, made = graph, rewrite_graph(graph, rule)
    while made is not before:  # until the sums of chunks are few
        before, made = made, rewrite_graph(made, rule)
    return made


def _chunk(node: Node, x: Value, axis: int, planner: Planner) -> int:
    """Returns the elements of a chunk, 1 where threads go through whole slices."""
    if not isinstance(x.shape[axis], Const):
        return 1
    steps, slices = size_of(x.shape[axis]), prod([size_of(s) for d, s in enumerate(x.shape) if d != axis])
    plans = partial(prefix_chunk_plans, steps, slices, x.dtype.bytes)
    return planner.decide(subject_of(node.output.name), PrefixChunk, plans).elements


def _in_chunks(new: Graph, node: Node, x: Value, axis: int, chunk: int) -> Value:
    """Returns the prefixes of *x* by *node*'s operator, in chunks of so many elements along *axis*."""
    reduction, neutral = PREFIXES[node.op]
    size, attributes = size_of(x.shape[axis]), {**node.keywords, "axis": axis + 1}
    is_reverse = bool(node.attribute("reverse"))
    parts = -(-size // chunk)
    if added := parts * chunk - size:  # behind the elements in their order
        pads = [0] * (2 * x.rank)
        pads[axis if is_reverse else x.rank + axis] = added
        x = new.add("pad", [x], pads=tuple(pads), value=float(neutral))
    shape = (*x.shape[:axis], parts, chunk, *x.shape[axis + 1 :])
    chunks = new.add("reshape", [x], shape=shape)
    sums = new.add(reduction, [chunks], axes=(axis + 1,), keepdims=False)
    before = new.add(node.op, [sums], axis=axis, exclusive=True, reverse=is_reverse)
    starts = new.add("reshape", [before], shape=(*shape[: axis + 1], 1, *shape[axis + 2 :]))
    within = new.add(node.op, [chunks, starts], source=node.source, **attributes)
    if not added:
        return new.add("reshape", [within], shape=node.output.shape, name=node.output.name)
    whole = new.add("reshape", [within], shape=x.shape)
    first = added if is_reverse else 0
    return new.add("slice", [whole], starts=(first,), ends=(first + size,), axes=(axis,), name=node.output.name)
