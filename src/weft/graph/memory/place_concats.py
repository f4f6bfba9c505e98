"""Makes the operands of a concatenation views of its result: their producers write them there, and no copy is left.

    a = conv(x); b = conv(y); c = concat(a, b)     becomes     a is c from 0; b is c from 64; and c is written by both

This needs each operand to be contiguous in the result: all dimensions before the concatenated one have extent one, as for the
channels of a single image. An operand with memory of its own (an input, an output, a weight, part of another value) is copied to
its offset by a group of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.graph.core.graph import Node
from weft.graph.core.graph_values import Value
from weft.graph.fusion.groups import Alias, FusedGraph, Group
from weft.graph.memory.in_place import outside
from weft.ops import OPERATORS
from weft.support.alignment import ALIGNMENT

LEAST_SHARE = 2
"""At least one in so many bytes of the result must be written in place; otherwise one kernel copies all operands."""


@dataclass(frozen=True)
class Piece:
    """An operand of a concatenation: its elements begin at *offset* of the result; *root* has the memory of *value*."""

    value: Value
    root: Value
    offset: int


def place_concats(fused: FusedGraph) -> FusedGraph:
    """Returns *fused* without the concatenations whose pieces can be written in place."""
    movable = {v for g in fused.groups for v in g.outputs} - outside(fused)
    aliases = dict(fused.aliases)
    groups: list[Group] = []
    for g in fused.groups:
        pieces = _pieces(g, FusedGraph(fused.graph, fused.groups, aliases))
        moved = {p.root: p for p in pieces if p.root in movable and _is_whole(p)}
        if _bytes(list(moved)) * LEAST_SHARE < max(1, _bytes([p.value for p in pieces])):
            groups.append(g)
            continue
        whole = g.outputs[0]
        for p in pieces:
            if moved.get(p.root) is p:
                aliases[p.root] = Alias(whole, p.offset)
                movable.discard(p.root)
            else:
                groups.append(_copy(p, on_processor=g.on_processor))
                aliases[groups[-1].outputs[0]] = Alias(whole, p.offset)
    return FusedGraph(fused.graph, tuple(groups), aliases) if len(aliases) > len(fused.aliases) else fused


def _pieces(group: Group, fused: FusedGraph) -> list[Piece]:
    """Returns the operands of a group that is one concatenation of contiguous pieces, each at a cache line; else none."""
    if len(group.nodes) != 1 or group.nodes[0].op != "concat":
        return []
    node = group.nodes[0]
    shape = node.output.static_shape
    if shape is None or set(shape[: node.attribute("axis") % len(shape)]) - {1}:
        return []
    pieces: list[Piece] = []
    end = 0
    for v in node.inputs:
        assert v is not None  # concat has no optional inputs
        pieces.append(Piece(v, fused.root(v), end))
        end += _elements(v)
    return pieces if all(p.offset * p.value.dtype.bytes % ALIGNMENT == 0 for p in pieces) else []


def _is_whole(p: Piece) -> bool:
    """Tells whether a piece is all of its root, so that the root may move."""
    return p.root.static_shape is not None and _bytes([p.root]) == _bytes([p.value])


def _copy(p: Piece, *, on_processor: bool) -> Group:
    """Returns a group that copies a piece."""
    node = Node(OPERATORS["identity"], (p.value,), (), [p.value.type], [f"{p.value.name}_piece"])
    return Group((node,), node.outputs, on_processor=on_processor)


def _elements(v: Value) -> int:
    total = 1
    for n in v.static_shape or ():
        total *= n
    return total


def _bytes(values: list[Value]) -> int:
    return sum(_elements(v) * v.dtype.bytes for v in values)
