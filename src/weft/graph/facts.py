"""What fusion must know of a node, derived from its operator's formulas: its class, and how it reads each input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from weft.graph.graph import Attributes, Node
from weft.ir.expr import ONE, ZERO
from weft.ops.registry import Operator, TensorType
from weft.te import Compute, Operation, Placeholder, Read, Tensor, placeholder, topological
from weft.te.classify import OpClass, access_class, classify

RENAMES = frozenset({"reshape", "flatten", "squeeze", "unsqueeze"})
"""Operators whose output is their first input's memory, row by row, under another shape."""


@dataclass(frozen=True)
class NodeFacts:
    """`kind` is the hardest class among the node's operations; `reads[i]` the hardest way from input *i* to an output.

    `multi_step` tells that the node reduces more than once, or rearranges what it has reduced (softmax, layer norm).
    `same_index[i]` tells that every output element needs element-wise only what is at its own index in input *i*.
    """

    kind: OpClass
    reads: tuple[OpClass, ...]
    multi_step: bool

    def same_index(self, i: int) -> bool:
        """Tells whether an output element needs only the element of input *i* at its own index."""
        return self.reads[i] is OpClass.ELEMENTWISE


def facts_of(node: Node) -> NodeFacts:
    """Returns the facts of *node*; equal calls share one computation."""
    types = tuple([None if v is None else v.type for v in node.inputs])
    return _facts(node.operator, types, node.attributes)


def is_rename(node: Node) -> bool:
    """Tells whether *node* only gives the same row-major elements another shape."""
    return node.op in RENAMES or _moves_only_unit_dims(node)


def _moves_only_unit_dims(node: Node) -> bool:
    """Tells whether *node* is a transposition that keeps the order of all dimensions longer than one."""
    if node.op != "transpose" or node.inputs[0] is None:
        return False
    shape = node.inputs[0].shape
    moved = [p for p in node.attribute("perm") if shape[p] is not ONE]
    return moved == sorted(moved)


@lru_cache(maxsize=4096)
def _facts(operator: Operator, types: tuple[TensorType | None, ...], attributes: Attributes) -> NodeFacts:
    given = [None if t is None else placeholder(t.shape, t.dtype) for t in types]
    outputs = operator(given, dict(attributes))
    operations = [op for op in topological(outputs) if not isinstance(op, Placeholder)]
    kinds = {op: classify(op) for op in operations}
    reads = tuple([OpClass.OPAQUE if t is None else _reach(t, operations, kinds, outputs) for t in given])
    kind = max(kinds.values(), default=OpClass.INJECTIVE)
    return NodeFacts(kind, reads, _is_multi_step(operations, kinds, outputs))


def _reach(
    source: Tensor, operations: Sequence[Operation], kinds: dict[Operation, OpClass], outputs: Sequence[Tensor]
) -> OpClass:
    """Returns the hardest class on any way from *source* to an output; ELEMENTWISE where there is none."""
    reached: dict[Operation, OpClass] = {source.op: OpClass.ELEMENTWISE}
    for op in operations:
        ways = [max(reached[t.op], _how(op, t, kinds[op])) for t in op.inputs if t.op in reached]
        if ways:
            reached[op] = max(ways)
    return max((reached[t.op] for t in outputs if t.op in reached), default=OpClass.ELEMENTWISE)


def _how(op: Operation, t: Tensor, kind: OpClass) -> OpClass:
    """Returns how *op*, of class *kind*, reads *t*."""
    if kind >= OpClass.REDUCTION or not isinstance(op, Compute):
        return kind
    return max(_access(op, r) for r in op.reads if r.tensor is t)


def _access(op: Compute, read: Read) -> OpClass:
    """Returns the class of an access; in a dimension of extent one, index 0 and the axis are the same."""
    if read.tensor.shape == op.shape and all(
        i is axis or (i is ZERO and size is ONE) for i, axis, size in zip(read.indices, op.axes, op.shape, strict=True)
    ):
        return OpClass.ELEMENTWISE
    return max(OpClass.BROADCAST, access_class(op, read))


def _is_multi_step(operations: Sequence[Operation], kinds: dict[Operation, OpClass], outputs: Sequence[Tensor]) -> bool:
    """Tells whether there are two reductions, or one whose result is read other than at its own index."""
    reductions = [op for op in operations if kinds[op] >= OpClass.REDUCTION]
    if len(reductions) != 1:
        return len(reductions) > 1
    after = operations[operations.index(reductions[0]) + 1 :]
    return _reach(Tensor(reductions[0], 0, outputs[0].dtype), after, kinds, outputs) is not OpClass.ELEMENTWISE
