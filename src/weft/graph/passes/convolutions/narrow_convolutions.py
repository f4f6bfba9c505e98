"""Convolutions of float32 in channel blocks on factors in bf16, where matrix registers make them faster.

    y = conv2d_blocked(x, pack_conv_weight(w), b)
                                   becomes
    y = conv2d_grouped(cast(x in blocks of 32, bf16), pack_conv_weight_groups(cast(w, bf16))) + b

Factors of models in bf16 are so already, which `widen_halves` has converted: they stay as they are. Others are rounded for
`precision="bf16"`. The places of a row of the image are the rows of a tile, and 32 channels of a place are 64 bytes of it:
nothing is copied but in other blocks, while it is rounded (docs/design/0050).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

from weft.cost import NARROW_BLOCK, BlockedConvolution, NarrowFactors, Planner, narrow_convolution_plans, subject_of
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Deferred, Value
from weft.graph.passes.quantized.quantized_patterns import operand_of
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE
from weft.support.dtypes import bf16, f32
from weft.targets.instructions import group_of

LOWER_BITS: Final = (1 << bf16.bits) - 1
"""The bits of a float32 that bf16 lacks."""


def narrow_convolutions(graph: Graph, planner: Planner, *, narrow: bool) -> Graph:
    """Returns *graph* with convolutions of one group in bf16, where these are faster: on rounded factors, if *narrow*."""
    return rewrite_graph(graph, _Narrowing(planner, narrow=narrow).rewrite)


class _Narrowing:
    """The rounded twin of each image, made once for all of its users."""

    def __init__(self, planner: Planner, *, narrow: bool) -> None:
        self.planner = planner
        self.narrow = narrow
        self.rounded: dict[Value, Value] = {}

    def rewrite(self, new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        """Returns the convolution on rounded factors; None for any other node."""
        if node.op != "conv2d_blocked" or node.attribute("group") != 1 or node.output.dtype is not f32:
            return None
        x, packed, bias = (*inputs, None)[:3]
        weight = operand_of("pack_conv_weight", packed)
        if x is None or not isinstance(weight, Constant):
            return None
        if not (self.narrow or (_before_widening(x) and _is_in_bf16(weight))) or not self._is_faster(node, x, weight):
            return None
        lanes = _sizes(node.output)[4]
        name, narrow = f"{weight.name}_packed", new.add("cast", [weight], dtype=bf16, name=f"{weight.name}_bf16")
        panels = new.add(
            "pack_conv_weight_groups", [narrow], name=name, in_block=NARROW_BLOCK, out_block=lanes, group=group_of(bf16)
        )
        window = {k: node.attribute(k) for k in ("strides", "pads", "dilations")}
        made = new.add(
            "conv2d_grouped", [self._round(new, x), panels], source=node.source, name=node.output.name, **window
        )
        if bias is None:
            return [made]
        wide = new.add("reshape", [bias], shape=(bias.shape[0], ONE, ONE, bias.shape[1]))
        return [new.add("add", [made, wide], source=node.source)]

    def _is_faster(self, node: Node, x: Value, weight: Constant) -> bool:
        """Decides on the form of a convolution whose sizes are known and whose channels fill blocks."""
        if x.static_shape is None or node.output.static_shape is None or weight.extents[1] % NARROW_BLOCK:
            return False
        places, window = _sizes(node.output), weight.extents[2:]
        problem = BlockedConvolution(
            lines=places[0] * places[2],
            width=places[3],
            read=weight.extents[1],
            made=weight.extents[0],
            window=prod(window),
            image=prod(_sizes(x)),
            by_winograd=window == (3, 3) and set(node.attribute("strides")) == {1},
        )
        subject = subject_of(node.output.name)
        return self.planner.decide(subject, NarrowFactors, lambda m: narrow_convolution_plans(problem, m)).panel > 0

    def _round(self, new: Graph, x: Value) -> Value:
        """Returns *x* [N, C/b, H, W, b] rounded to bf16 in blocks of `NARROW_BLOCK` channels."""
        given = _before_widening(x) or x
        if given not in self.rounded:
            n, blocks, height, width, block = _sizes(given)
            parts = NARROW_BLOCK // block
            apart = new.add("reshape", [given], shape=(n, blocks // parts, parts, height, width, block))
            turned = new.add("transpose", [apart], perm=(0, 1, 3, 4, 2, 5))
            whole = new.add("reshape", [turned], shape=(n, blocks // parts, height, width, NARROW_BLOCK))
            rounded = whole if given is not x else new.add("cast", [whole], dtype=bf16, name=f"{x.name}_bf16")
            self.rounded[given] = rounded
        return self.rounded[given]


def _before_widening(v: Value) -> Value | None:
    """Returns the value in bf16 that *v* is converted from; None where it is not."""
    given = operand_of("cast", v)
    return given if given is not None and given.dtype is bf16 else None


def _is_in_bf16(v: Constant) -> bool:
    """Tells whether all elements of a constant in float32 are numbers of bf16, whose lower bits are zero."""
    return not isinstance(v, Deferred) and not (v.array.view(np.uint32) & LOWER_BITS).any()


def _sizes(v: Value) -> tuple[int, ...]:
    """Returns the shape of a value whose sizes _is_faster has found to be known."""
    return v.static_shape or ()
