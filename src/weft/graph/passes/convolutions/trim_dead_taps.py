"""Drops the taps of convolutions that only ever meet the padding: wide windows, or dilated ones, on small images.

y = conv2d(x[N, C, 6, 9], w[OC, C, 7, 1], pads=(6, 0, 6, 0), dilations=(2, 1))
becomes
y = conv2d(x, w[:, :, 1:6], pads=(4, 0, 4, 0), dilations=(2, 1))
"""

from __future__ import annotations

from weft.graph.core.evaluator import Evaluator
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.passes.fold_constants import rewrite_and_fold
from weft.graph.rewriting.rewriter import Inputs


def trim_dead_taps(graph: Graph, evaluator: Evaluator) -> Graph:
    """Returns *graph* without taps that meet nothing but padding; *evaluator* takes them out of the weights."""

    def rule(new: Graph, node: Node, inputs: Inputs) -> list[Value] | None:
        kept = _kept(node)
        return None if kept is None else [_without(new, node, inputs, kept)]

    return rewrite_and_fold(graph, evaluator, rule)


def _kept(node: Node) -> list[tuple[int, int]] | None:
    """Returns the first tap that is kept of each spatial dimension and the one after the last; None where all are."""
    x, w = node.inputs[0] if node.inputs else None, node.inputs[1] if len(node.inputs) > 1 else None
    if node.op != "conv2d" or x is None or not isinstance(w, Constant):
        return None
    size, made = x.sample_shape, node.output.sample_shape
    if size is None or made is None:
        return None
    strides, dilations, pads = (node.attribute(a) for a in ("strides", "dilations", "pads"))
    rank = len(strides)
    kept = []
    for d, taps in enumerate(w.extents[2:]):
        padding, reach = (pads[d], pads[rank + d]), (made[2 + d] - 1) * strides[d]
        kept.append(_live_taps(taps, dilations[d], padding, reach, size[2 + d]))
    return kept if kept != [(0, k) for k in w.extents[2:]] else None


def _live_taps(taps: int, dilation: int, padding: tuple[int, int], reach: int, size: int) -> tuple[int, int]:
    """Returns the first of *taps* that is kept and the one after the last: between them are all that ever meet the input.

    The window's begin moves by *reach* from the first place to the last, over *size* places with *padding* before and after.
    """
    before, behind = padding
    first = min(before // dilation, taps - 1)  # without those before it, the padding is not negative
    after = max(taps - behind // dilation, 1)
    idle = [k for k in range(taps) if reach + k * dilation < before or k * dilation - before >= size]
    begin = next((k for k in range(first) if k not in idle), first)
    end = next((k + 1 for k in reversed(range(after, taps)) if k not in idle), after)
    return begin, max(begin + 1, end)


def _without(new: Graph, node: Node, inputs: Inputs, kept: list[tuple[int, int]]) -> Value:
    """Returns the convolution *node* with the *kept* taps."""
    w = inputs[1]
    assert isinstance(w, Constant)  # _kept asks for it
    pads, dilations = node.attribute("pads"), node.attribute("dilations")
    begins, ends = zip(*kept, strict=True)
    less = [b * d for b, d in zip(begins, dilations, strict=True)]
    less += [(k - e) * d for k, e, d in zip(w.extents[2:], ends, dilations, strict=True)]
    axes = tuple(range(2, w.rank))
    weight = new.add("slice", [w], starts=begins, ends=ends, axes=axes, name=f"{w.name}_kept")
    attributes = {a: node.attribute(a) for a in ("strides", "dilations", "group")}
    narrow = tuple([p - n for p, n in zip(pads, less, strict=True)])
    return new.add(
        "conv2d", [inputs[0], weight, *inputs[2:]], source=node.source, name=node.output.name, pads=narrow, **attributes
    )
