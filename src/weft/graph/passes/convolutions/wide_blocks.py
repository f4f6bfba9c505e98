"""Values in blocks of as many channels as a row of a matrix register has of bf16, from one convolution to the next.

    y = conv2d_grouped(x)                            y, in blocks of 32 = conv2d_grouped(x, panels=2)
    z = conv2d_grouped(in blocks of 32(relu(y)))  -> z = conv2d_grouped(relu(y, in blocks of 32))

The value in blocks of a vector, [N, C/b, H, W, b], is a copy of its wide twin, for consumers that read such blocks; without one,
the copy is dead code.
"""

from __future__ import annotations

from typing import Final

from weft.cost import NARROW_BLOCK
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.fusion.node_facts import is_plain_map
from weft.graph.passes.quantized.quantized_patterns import operand_of
from weft.graph.rewriting.rewriter import Inputs
from weft.ir import ONE, Const, as_expr

RANK: Final = len("NCHWc")


class WideBlocks:
    """The twins of values in blocks of `NARROW_BLOCK` channels."""

    def __init__(self) -> None:
        self.twins: dict[Value, Value] = {}

    def joined(self, new: Graph, x: Value) -> Value:
        """Returns the twin of *x* [N, C/b, H, W, b], laid out anew where there is none."""
        given = x
        if given not in self.twins:
            n, blocks, height, width, block = x.shape
            parts = NARROW_BLOCK // _int(block)
            count = as_expr(_int(blocks) // parts)
            whole = (n, count, height, width, as_expr(NARROW_BLOCK))
            if not height is width is ONE:  # channels of one place are in order in any blocks
                apart = new.add("reshape", [x], shape=(n, count, as_expr(parts), height, width, block))
                x = new.add("transpose", [apart], perm=(0, 1, 3, 4, 2, 5))
            self.twins[given] = new.add("reshape", [x], shape=whole)
        return self.twins[given]

    def apart(self, new: Graph, wide: Value, block: int, name: str) -> Value:
        """Returns *wide* in blocks of *block* channels, and remembers it as the twin of that."""
        n, blocks, height, width, channels = wide.shape
        parts = _int(channels) // block
        count = as_expr(_int(blocks) * parts)
        shape = (n, blocks, height, width, as_expr(parts), as_expr(block))
        turned = wide
        if not height is width is ONE:
            turned = new.add("transpose", [new.add("reshape", [wide], shape=shape)], perm=(0, 1, 4, 2, 3, 5))
        made = new.add("reshape", [turned], shape=(n, count, height, width, as_expr(block)), name=name)
        self.twins[made] = wide
        return made

    def follow(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns what *node* computes, in its own blocks, if it does so from twins; None where it has no twin itself."""
        made = self._twin(new, node, inputs)
        if made is None:
            return None
        wide = new.add(node.op, made, source=node.source, name=f"{node.output.name}_wide", **node.keywords)
        return self.apart(new, wide, _int(node.output.shape[-1]), node.output.name)

    def _twin(self, new: Graph, node: Node, inputs: Inputs) -> list[Value | None] | None:
        """Returns the operands of the twin of *node*; None where it has none."""
        if len(node.outputs) != 1 or node.output.rank != RANK or not any(v in self.twins for v in inputs):
            return None
        if node.op == "depthwise_conv2d_blocked":
            return self._depthwise(new, inputs)
        if node.operator.per_channel:
            return [self.twins[v] for v in inputs[:1] if v in self.twins] or None
        if not is_plain_map(node):
            return None
        made = [None if v is None else self._operand(new, v, node.output) for v in inputs]
        return made if [v is None for v in made] == [v is None for v in inputs] else None

    def _depthwise(self, new: Graph, inputs: Inputs) -> list[Value | None] | None:
        x, packed, bias = (*inputs, None)[:3]
        weight = operand_of("pack_depthwise_weight", packed)
        if x not in self.twins or not isinstance(weight, Constant):
            return None
        wide = new.add("pack_depthwise_weight", [weight], name=f"{weight.name}_packed", block=NARROW_BLOCK)
        shape = (wide.shape[0], as_expr(NARROW_BLOCK))
        return [self.twins[x], wide, None if bias is None else new.add("reshape", [bias], shape=shape)]

    def _operand(self, new: Graph, v: Value, result: Value) -> Value | None:
        """Returns an operand of a map as it broadcasts in blocks of `NARROW_BLOCK` channels; None where it can't be."""
        if v in self.twins:
            return self.twins[v]
        shape = (*[ONE] * (RANK - v.rank), *v.shape)
        if shape[1] is ONE and shape[-1] is ONE:
            return v  # one number for all channels
        if shape[1] is not result.shape[1] or shape[-1] is not result.shape[-1]:
            return None
        given = v if v.rank == RANK else new.add("reshape", [v], shape=shape)
        return self.joined(new, given)


def _int(e: object) -> int:
    assert isinstance(e, Const)  # channels and blocks are known
    return int(e.value)
