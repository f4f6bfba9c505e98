"""Convolutions of float32 in channel blocks on factors in bf16, where matrix registers make them faster.

    y = conv2d_blocked(x, pack_conv_weight(w), b)
                                   becomes
    y = conv2d_grouped(cast(x in blocks of 32, bf16), pack_conv_weight_groups(cast(w, bf16))) + b

The factors of a model in bf16 are exact in it, though `widen_halves` has converted them: the conversion is left out. Those of
other models are rounded for `precision="bf16"`, or split in parts, whose products are summed (docs/design/0084):

    y = conv2d_in_parts(split_in_parts(x in blocks of 32), pack_conv_weight_parts(w)) + b

The places of a row of the image are the rows of a tile, and 32 channels of a place are 64 bytes of it: an image is copied at most
once, into other blocks, while it is rounded or split (docs/design/0050).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Final

import numpy as np

from weft.cost import (
    NARROW_BLOCK,
    BlockedConvolution,
    FactorsInParts,
    NarrowFactors,
    Planner,
    convolution_in_parts_plans,
    multiplies_parts,
    narrow_convolution_plans,
    subject_of,
)
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Deferred, Value
from weft.graph.passes.convolutions.wide_blocks import RANK, WideBlocks
from weft.graph.passes.quantized.quantized_patterns import operand_of
from weft.graph.rewriting.call_patterns import is_known
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE, Const
from weft.support.dtypes import bf16, f32
from weft.targets.instructions import group_of

LOWER_BITS: Final = (1 << bf16.bits) - 1
"""The bits of a float32 that bf16 lacks."""


def narrow_convolutions(graph: Graph, planner: Planner, *, narrow: bool, in_parts: bool = False) -> Graph:
    """Returns *graph* with convolutions of one group in bf16, where these are faster: on rounded factors, if *narrow*.

    If *in_parts*, factors may be split instead.
    """
    return rewrite_graph(graph, _Narrowing(planner, narrow=narrow, in_parts=in_parts).rewrite)


class _Narrowing:
    """The rounded form of each image, or its parts, made once for all of its users, and the twins of values in wide blocks."""

    def __init__(self, planner: Planner, *, narrow: bool, in_parts: bool) -> None:
        self.planner = planner
        self.narrow = narrow
        self.in_parts = in_parts
        self.rounded: dict[Value, Value] = {}
        self.split: dict[Value, Value] = {}
        self.wide = WideBlocks()

    def rewrite(self, new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        """Returns the convolution on rounded factors, or a node that follows one in wide blocks; None for any other node."""
        made = self._convolution(new, node, inputs) or self.wide.follow(new, node, inputs)
        return None if made is None else [made]

    def _convolution(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        if node.op != "conv2d_blocked" or node.attribute("group") != 1 or node.output.dtype is not f32:
            return None
        if node.output.rank != RANK:
            return None
        x, packed, bias = (*inputs, None)[:3]
        weight = operand_of("pack_conv_weight", packed)
        form = self._form(node, x, weight) if x is not None and isinstance(weight, Constant) else None
        if x is None or weight is None or form is None:
            return None
        lanes = _sizes(node.output)[4]
        panels = NARROW_BLOCK // lanes if _sizes(node.output)[1] * lanes % NARROW_BLOCK == 0 else 1
        if form is NarrowFactors:
            op, given = "conv2d_grouped", [self._round(new, x), _rounded_panels(new, weight, lanes)]
        else:
            op, given = "conv2d_in_parts", [self._split(new, x), _split_panels(new, weight, lanes)]
        window = {k: node.attribute(k) for k in ("strides", "pads", "dilations")}
        made = new.add(op, given, source=node.source, panels=panels, **window)
        if bias is not None:
            wide = new.add("reshape", [bias], shape=(made.shape[1], ONE, ONE, made.shape[4]))
            made = new.add("add", [made, wide], source=node.source)
        return made if panels == 1 else self.wide.apart(new, made, lanes, node.output.name)

    def _form(self, node: Node, x: Value, weight: Constant) -> type[FactorsInParts | NarrowFactors] | None:
        """Returns what makes a convolution faster: factors in parts, or rounded ones; None where it stays as it is."""
        problem, subject = _problem(node, x, weight), subject_of(node.output.name)
        if problem is None:
            return None
        is_exact = _before_widening(self.wide.twins.get(x, x)) is not None and _is_in_bf16(weight)
        if self.narrow or is_exact:
            rounded = self.planner.decide(subject, NarrowFactors, partial(narrow_convolution_plans, problem))
            return NarrowFactors if rounded.panel else None
        if not self.in_parts or not self.planner.offers(FactorsInParts, multiplies_parts):
            return None
        parts = self.planner.decide(subject, FactorsInParts, partial(convolution_in_parts_plans, problem))
        return FactorsInParts if parts.blocks else None

    def _split(self, new: Graph, x: Value) -> Value:
        """Returns the parts [N, C/32, H, W, 3, 32] of *x* [N, C/b, H, W, b]."""
        if x not in self.split:
            wide = self.wide.joined(new, x)
            parts = new.add("split_in_parts", [wide], name=f"{x.name}_parts", block=NARROW_BLOCK)
            self.split[x] = new.add("reshape", [parts], shape=(*wide.shape[:4], *parts.shape[5:]))
        return self.split[x]

    def _round(self, new: Graph, x: Value) -> Value:
        """Returns *x* [N, C/b, H, W, b] rounded to bf16 in blocks of `NARROW_BLOCK` channels."""
        if x not in self.rounded:
            wide = self.wide.twins.get(x)
            before = _before_widening(x if wide is None else wide)
            given = before or wide or x
            if wide is None:
                given = self.wide.joined(new, given)
            if before is None:
                given = new.add("cast", [given], dtype=bf16, name=f"{x.name}_bf16")
            self.rounded[x] = given
        return self.rounded[x]


def _rounded_panels(new: Graph, weight: Value, lanes: int) -> Value:
    """Returns a weight rounded to bf16, in panels of *lanes* output channels."""
    narrow = new.add("cast", [weight], dtype=bf16, name=f"{weight.name}_bf16")
    return new.add(
        "pack_conv_weight_groups",
        [narrow],
        name=f"{weight.name}_packed",
        in_block=NARROW_BLOCK,
        out_block=lanes,
        group=group_of(bf16),
    )


def _split_panels(new: Graph, weight: Value, lanes: int) -> Value:
    """Returns the parts of a weight, in panels of *lanes* output channels."""
    name = f"{weight.name}_parts"
    return new.add("pack_conv_weight_parts", [weight], name=name, in_block=NARROW_BLOCK, out_block=lanes)


def _problem(node: Node, x: Value, weight: Constant) -> BlockedConvolution | None:
    """Returns a convolution whose sizes, but for its batch, are known, and whose channels fill blocks; None for any other."""
    known = all(isinstance(e, Const) for v in (x, node.output) for e in v.shape[1:])
    if not known or weight.extents[1] % NARROW_BLOCK:
        return None
    places, window = _sizes(node.output), weight.extents[2:]
    is_plain = prod(window) == 1 and set(node.attribute("strides")) == {1} and not any(node.attribute("pads"))
    return BlockedConvolution(
        lines=places[0] * places[2],
        width=places[3],
        read=weight.extents[1],
        made=weight.extents[0],
        window=prod(window),
        image=prod(_sizes(x)),
        by_winograd=window == (3, 3) and set(node.attribute("strides")) == {1},
        pointwise=is_plain,
    )


def _before_widening(v: Value) -> Value | None:
    """Returns the value in bf16 that *v* is converted from; None where it is not."""
    given = operand_of("cast", v)
    return given if given is not None and given.dtype is bf16 else None


def _is_in_bf16(v: Constant) -> bool:
    """Tells whether all elements of a constant in float32 are exact in bf16, and stay so: their lower bits are zero."""
    return is_known(v) and not isinstance(v, Deferred) and not (v.array.view(np.uint32) & LOWER_BITS).any()


def _sizes(v: Value) -> tuple[int, ...]:
    """Returns the shape of a value; sizes that are not known count as one."""
    return tuple([int(e.value) if isinstance(e, Const) else 1 for e in v.shape])
