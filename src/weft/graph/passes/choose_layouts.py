"""Computes convolutions, and the operators between them, in channel-blocked layouts (NCHWc).

    y = relu(conv2d(x, w))     becomes     p = conv2d_blocked(pack_channels(x), pack_conv_weight(w)); y = unpack_channels(relu(p))

The packing of weights is folded afterwards, and between two convolutions nothing is unpacked. The blocked layout is that of
Georganas et al., "Anatomy of high-performance deep learning convolutions on SIMD architectures" (SC 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, Final, TypeAlias

from weft.cost import (
    BlockedConvolution,
    ByteBlock,
    BytePanel,
    GroupedOperands,
    Planner,
    byte_block_plans,
    byte_panel_plans,
    group_blocks,
    grouped_plans,
    input_block,
    output_block,
    subject_of,
)
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.fusion.node_facts import is_plain_map
from weft.graph.layout.assign_layouts import nodes_in_blocks, pads_places, works_along_places
from weft.graph.layout.channel_blocks import fills_up, has_places, name_in_blocks
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE, Const, Expr, as_expr
from weft.ops import Operator
from weft.support.dtypes import DType


def choose_layouts(graph: Graph, planner: Planner, *, by_winograd: bool = True) -> Graph:
    """Returns *graph* with its convolutions over images and volumes, and the maps and pools between them, in channel blocks.

    Convolutions in blocks may be computed *by_winograd* afterwards, which can be a reason for blocks.
    """
    return rewrite_graph(graph, _Layouts(planner, nodes_in_blocks(graph, planner, by_winograd=by_winograd)).rewrite)


class _Layouts:
    """The blocked twin of each value of the new graph that has one; nodes not in *chosen* stay as they are."""

    def __init__(self, planner: Planner, chosen: set[Node]) -> None:
        self.planner = planner
        self.chosen = chosen
        self.twins: dict[tuple[Value, int], Value] = {}
        self.block_of: dict[Value, int] = {}

    def rewrite(self, new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        """Returns the plain output of the blocked form of *node*; None where it has none."""
        x = inputs[0] if inputs else None
        if (
            node not in self.chosen
            or len(node.outputs) != 1
            or not (has_places(node.output) or node.operator.along == "axes")
        ):
            return None
        rule = _rule_of(node.operator)
        if rule is not None:
            made = rule(self, new, node, inputs) if x is not None and has_places(x) else None
        else:
            made = self.mapped(new, node, inputs)
        return None if made is None else [made]

    def lanes(self, dtype: DType) -> int:
        """Returns how many elements fill a vector."""
        return self.planner.lanes(dtype.bits)

    def blocked(self, new: Graph, x: Value, block: int) -> Value:
        """Returns the twin of *x* in blocks of *block* channels, packed if it is not there yet."""
        key = (x, block)
        if key not in self.twins and block == 1:
            self.twins[key] = new.add("reshape", [x], shape=(*x.shape, ONE))
        elif key not in self.twins:
            self.twins[key] = new.add("pack_channels", [x], block=block)
        return self.twins[key]

    def plain(self, new: Graph, twin: Value, channels: int, node: Node) -> Value:
        """Returns the plain value of a new *twin* and remembers the two together."""
        block, places = _int(twin.shape[-1]), twin.shape[2:-1]
        one_place = all(s is ONE for s in places) and channels % block == 0
        if one_place:
            shape = (twin.shape[0], as_expr(channels), *places)
            made = new.add("reshape", [twin], shape=shape, name=node.output.name)
        else:
            made = new.add("unpack_channels", [twin], channels=channels, name=node.output.name)
        self.twins[made, block] = twin
        self.block_of[made] = block
        return made

    def conv(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns the convolution in blocks: full, depthwise or grouped."""
        x, w = inputs[0], inputs[1]
        if x is None or w is None or not isinstance(x.shape[1], Const):
            return None
        group, channels, made = node.attribute("group"), _int(x.shape[1]), _int(w.shape[0])
        lanes = self.lanes(x.dtype)
        attributes = {k: node.attribute(k) for k in ("strides", "pads", "dilations")}
        if group == channels == made and group > 1:
            block = self.block_of.get(x, output_block(channels, lanes))
            weight = new.add("pack_depthwise_weight", [w], name=f"{w.name}_packed", block=block)
            return self._contract(new, node, inputs, "depthwise_conv2d_blocked", weight, (block, block), attributes)
        blocks = self._conv_blocks(x, channels, made, group, rows=set(node.attribute("strides")) == {1})
        if blocks is None:
            return None
        attributes["group"] = group
        if group > 1 and made // group % blocks[1]:
            return self._padded_groups(new, node, inputs, blocks, attributes)
        weight = new.add("pack_conv_weight", [w], name=f"{w.name}_packed", in_block=blocks[0], out_block=blocks[1])
        return self._contract(new, node, inputs, "conv2d_blocked", weight, blocks, attributes)

    def integer_conv(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns the convolution of bytes in blocks, by dot products of neighbouring channels."""
        x, w, zero = (*inputs, None)[:3]
        if x is None or not isinstance(w, Constant) or not isinstance(x.shape[1], Const):
            return None
        channels, made = _int(x.shape[1]), _int(w.shape[0])
        plans = partial(grouped_plans, None, made, is_packed=True)
        subject = subject_of(node.output.name)
        group = self.planner.decide(subject, GroupedOperands, plans).group
        if group == 0:
            return None
        problem, lanes = _byte_convolution(node, w), self.lanes(node.output.dtype)
        wide = self.planner.decide(subject, ByteBlock, partial(byte_block_plans, problem)).channels
        given = wide if channels % wide == 0 else min(lanes, -(-channels // group) * group)
        block = self.block_of.get(x, given)
        if block % group:
            return None
        panel = self.planner.decide(subject, BytePanel, lambda m: byte_panel_plans(problem, block, wide, m)).columns
        packing: dict[str, Any] = {"in_block": block, "out_block": panel, "group": group}
        weight = new.add("pack_conv_weight_groups", [w], name=f"{w.name}_packed", **packing)
        window: dict[str, Any] = {k: node.attribute(k) for k in ("strides", "pads", "dilations")}
        if panel != wide:
            window["panels"] = wide // panel
        twin = _add_twin(new, node, "conv2d_grouped", [self.blocked(new, x, block), weight, zero], **window)
        return self.plain(new, twin, made, node)

    def _padded_groups(
        self, new: Graph, node: Node, inputs: Inputs, blocks: tuple[int, int], attributes: dict[str, Any]
    ) -> Value:
        """Returns a grouped convolution that computes padded blocks for each group, which nothing else keeps."""
        x, w, bias = (*inputs, None)[:3]
        assert x is not None  # conv asks for both
        assert w is not None
        made = _int(w.shape[0])
        kept = made // attributes["group"]
        padded = -(-kept // blocks[1]) * blocks[1]
        filled = _in_groups(new, w, kept, padded)
        filled = new.add("reshape", [filled], shape=(as_expr(made // kept * padded), *w.shape[1:]))
        weight = new.add("pack_conv_weight", [filled], name=f"{w.name}_packed", in_block=blocks[0], out_block=blocks[1])
        packed = None
        if bias is not None:
            shape = (as_expr(made // kept * padded // blocks[1]), as_expr(blocks[1]))
            packed = new.add("reshape", [_in_groups(new, bias, kept, padded)], shape=shape)
        operands = [self.blocked(new, x, blocks[0]), weight, packed]
        twin = _add_twin(new, node, "conv2d_blocked", operands, **attributes)
        apart = new.add("unpack_groups", [twin], group=attributes["group"], kept=kept)
        return new.add("reshape", [apart], shape=node.output.shape, name=node.output.name)

    def _conv_blocks(self, x: Value, channels: int, made: int, group: int, *, rows: bool) -> tuple[int, int] | None:
        """Returns the blocks of the channels read and computed."""
        lanes = self.lanes(x.dtype)
        if group == 1:
            return self.block_of.get(x, input_block(channels, lanes)), output_block(made, lanes)
        read, there = channels // group, self.block_of.get(x)
        blocks = group_blocks(read, made // group, lanes, rows=rows)
        return blocks if blocks is None or there is None or read % there else (there, blocks[1])

    def conv_transpose(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns the transposed convolution in blocks; grouped and dilated ones have none."""
        x, w = inputs[0], inputs[1]
        if x is None or w is None or not isinstance(x.shape[1], Const):
            return None
        if node.attribute("group") != 1 or tuple(node.attribute("dilations")) != (1, 1):
            return None
        lanes = self.lanes(x.dtype)
        blocks = self.block_of.get(x, input_block(_int(x.shape[1]), lanes)), output_block(_int(w.shape[1]), lanes)
        strides = node.attribute("strides")
        packing = {"in_block": blocks[0], "out_block": blocks[1], "strides": strides}
        weight = new.add("pack_conv_transpose_weight", [w], name=f"{w.name}_packed", **packing)
        attributes = {k: node.attribute(k) for k in ("strides", "pads", "output_padding")}
        attributes["kernel"] = w.shape[2:]
        return self._contract(new, node, inputs, "conv_transpose2d_blocked", weight, blocks, attributes)

    def _contract(
        self,
        new: Graph,
        node: Node,
        inputs: Inputs,
        op: str,
        weight: Value,
        blocks: tuple[int, int],
        attributes: dict[str, Any],
    ) -> Value:
        """Adds the blocked operator *op* on packed operands."""
        x = inputs[0]
        assert x is not None  # the rules are asked only where it is there
        bias = inputs[2] if len(inputs) > 2 else None
        packed = None if bias is None else new.add("pack_vector", [bias], name=f"{bias.name}_packed", block=blocks[1])
        operands = [self.blocked(new, x, blocks[0]), weight, packed]
        twin = _add_twin(new, node, op, operands, **attributes)
        return self.plain(new, twin, _int(node.output.shape[1]), node)

    def pooled(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns a pooling of a blocked value, which leaves the channels alone."""
        x = inputs[0]
        if x is None or x not in self.block_of or not self._allowed(node, x):
            return None
        twin = _add_twin(new, node, node.op, [self.twins[x, self.block_of[x]]], **node.keywords)
        return self.plain(new, twin, _int(x.shape[1]), node)

    def reduced(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns a reduction over the places of a blocked value."""
        axes = node.attribute("axes")
        x = inputs[0]
        if x is None or axes is None or min(a % x.rank for a in axes) < 2 or x not in self.block_of:
            return None
        if not self._allowed(node, x):
            return None
        attributes = {**node.keywords, "axes": tuple(sorted(a % x.rank for a in axes)), "keepdims": True}
        twin = _add_twin(new, node, node.op, [self.twins[x, self.block_of[x]]], **attributes)
        kept = self.plain(new, twin, _int(x.shape[1]), node)
        return kept if node.output.rank == x.rank else new.add("reshape", [kept], shape=node.output.shape)

    def along_places(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns the blocked form of an operator along rows or columns of a blocked value; None where there is none."""
        x = inputs[0]
        if x is None or x not in self.block_of or not works_along_places(node) or not self._allowed(node, x):
            return None
        attributes = {**node.keywords, "axis": node.attribute("axis") % x.rank}
        twin = _add_twin(new, node, node.op, [self.twins[x, self.block_of[x]], *inputs[1:]], **attributes)
        return self.plain(new, twin, _int(x.shape[1]), node)

    def padded(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns a blocked value with places around its own."""
        x = inputs[0]
        if x is None or x not in self.block_of or not pads_places(node) or not self._allowed(node, x):
            return None
        before, after = node.attribute("pads")[: x.rank], node.attribute("pads")[x.rank :]
        attributes = {**node.keywords, "pads": (*before, 0, *after, 0)}
        twin = _add_twin(new, node, node.op, [self.twins[x, self.block_of[x]], *inputs[1:]], **attributes)
        return self.plain(new, twin, _int(x.shape[1]), node)

    def concatenated(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns the concatenation of the channels of blocked values, where all of them are whole blocks."""
        present = [v for v in inputs if v is not None]
        blocks = {self.block_of[v] for v in present if v in self.block_of}
        if node.attribute("axis") % node.output.rank != 1 or len(blocks) != 1:
            return None
        [block] = blocks
        whole = all(isinstance(v.shape[1], Const) and _int(v.shape[1]) % block == 0 for v in present)
        if not whole:
            return None
        operands = [self.blocked(new, v, block) for v in present]
        twin = _add_twin(new, node, "concat", operands, axis=1)
        return self.plain(new, twin, _int(node.output.shape[1]), node)

    def mapped(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns a map over blocked values, with its other operands packed; None where that is unsound or costs more."""
        present = [v for v in inputs if v is not None]
        found = [v for v in present if v in self.block_of and v.shape[1] is node.output.shape[1]]
        if not found or not is_plain_map(node) or not all(self._allowed(node, v) for v in found):
            return None
        block = self.block_of[found[0]]
        if any(self.block_of.get(v, block) != block for v in found):
            return None
        channels = _int(node.output.shape[1])
        rank = node.output.rank
        twins = [None if v is None else self._operand(new, v, block, channels, rank) for v in inputs]
        if any(t is None and v is not None for t, v in zip(twins, inputs, strict=True)):
            return None
        twin = _add_twin(new, node, node.op, twins, **node.keywords)
        return self.plain(new, twin, channels, node)

    def _operand(self, new: Graph, v: Value, block: int, channels: int, rank: int) -> Value | None:
        """Returns an operand of a map as it broadcasts in blocks."""
        if (v, block) in self.twins:
            return self.twins[v, block]
        shape = (*[ONE] * (rank - v.rank), *v.shape)
        if all(s is ONE for s in shape):
            return v
        if shape[1] is ONE:
            return new.add("reshape", [v], shape=(*shape, ONE))
        if shape[1] is not as_expr(channels):
            return None
        wide = v if v.rank == rank else new.add("reshape", [v], shape=shape)
        return self.blocked(new, wide, block)

    def _allowed(self, node: Node, x: Value) -> bool:
        """Tells whether *node* may be applied to the channels that fill up the last block of *x*."""
        return _int(x.shape[1]) % self.block_of[x] == 0 or fills_up(node)


def _add_twin(new: Graph, node: Node, op: str, operands: Sequence[Value | None], /, **attributes: Any) -> Value:
    """Adds *op*, which computes the output of *node* in blocks, under the name that such a value has."""
    return new.add(op, operands, source=node.source, name=name_in_blocks(node.output), **attributes)


def _byte_convolution(node: Node, w: Constant) -> BlockedConvolution:
    """Returns the sizes of a convolution of bytes; those that are not known count as one."""
    n, _, height, width = [_int(e) if isinstance(e, Const) else 1 for e in node.output.shape]
    made, read, *window = w.extents
    return BlockedConvolution(lines=n * height, width=width, read=read, made=made, window=prod(window))


def _in_groups(new: Graph, v: Value, kept: int, padded: int) -> Value:
    """Returns *v* with its first dimension in groups of *kept*, each filled up with zeros to *padded*."""
    inner = v.shape[1:]
    apart = new.add("reshape", [v], shape=(as_expr(_int(v.shape[0]) // kept), as_expr(kept), *inner))
    nothing = (0,) * len(inner)
    return new.add("pad", [apart], pads=(0, 0, *nothing, 0, padded - kept, *nothing))


def _int(e: Expr) -> int:
    assert isinstance(e, Const)  # channels and blocks are known
    return int(e.value)


Blocked: TypeAlias = Callable[[_Layouts, Graph, Node, Inputs], Value | None]

_RULES: Final[dict[str, Blocked]] = {
    "conv2d": _Layouts.conv,
    "conv2d_integer": _Layouts.integer_conv,
    "conv_transpose2d": _Layouts.conv_transpose,
    "concat": _Layouts.concatenated,
    "pad": _Layouts.padded,
}
"""How operators are carried out in blocks that have a form of their own there."""


def _rule_of(operator: Operator) -> Blocked | None:
    """Returns how *operator* is carried out in blocks; None for one that does so only if it is a map."""
    if operator.per_channel:
        return _Layouts.pooled
    along = {"axes": _Layouts.reduced, "axis": _Layouts.along_places}
    return along[operator.along] if operator.along is not None else _RULES.get(operator.name)
