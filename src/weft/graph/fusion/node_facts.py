"""The facts of a node for fusion, derived from its operator's formulas: its class, and how it reads each input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from math import prod

from weft.graph.core.graph import Attributes, Node
from weft.graph.core.graph_values import Value
from weft.ir import ONE, ZERO, Add, Apply, Const, Expr, Mul, Select, Sub, Var, post_order
from weft.ir import Node as IrNode
from weft.ops import Operator, TensorType
from weft.ops import is_rename as is_rename_of
from weft.ops import keeps_finite as outputs_keep_finite
from weft.support.alignment import ALIGNMENT
from weft.te import Compute, OpClass, Operation, Placeholder, Read, Scatter, Tensor, access_class, classify, topological


@dataclass(frozen=True)
class NodeFacts:
    """`kind` is the hardest class of the node's operations; `reads[i]` the hardest class on a path from input *i* to an output.

    `is_map` tells that the node computes the same function of the elements at each index, with inputs broadcast by NumPy's rule;
    `is_rename` that its output is its first input's elements in row-major order under another shape (a reshape);
    `is_rearrangement` that it moves elements without computing, by sums and products of indices alone. `streams[i]` tells that a
    contraction reads input *i* at indices without the result's last axis: one element for each vector of the result, wherever
    that element lies. `once[i]` has the dimensions of input *i* along which vectors may run, if a contraction reads each of its
    elements once, as a product of one row does its matrix; else None. `last` is the output's dimension along which the last one
    of the only input lies, where the node moves elements from anywhere without computing; else None. `moved` are the inputs whose
    elements the outputs consist of; None where elements are computed. `watches` tells that the node's kernel reports indices
    outside their limits.
    """

    kind: OpClass
    reads: tuple[OpClass, ...]
    _: KW_ONLY
    is_map: bool = False
    is_rename: bool = False
    is_rearrangement: bool = False
    streams: tuple[bool, ...] = ()
    once: tuple[frozenset[int] | None, ...] = ()
    last: int | None = None
    moved: tuple[int, ...] | None = None
    watches: bool = False

    def same_index(self, i: int) -> bool:
        """Tells whether an output element needs only the element of input *i* at its own index."""
        return self.reads[i] is OpClass.ELEMENTWISE


def facts_of(node: Node) -> NodeFacts:
    """Returns the facts of *node*; equal calls share one computation."""
    if node.operator.has_regions:
        return NodeFacts(OpClass.OPAQUE, (OpClass.OPAQUE,) * len(node.inputs))
    types = tuple([None if v is None else v.type for v in node.inputs])
    return _facts(node.operator, types, node.attributes)


def is_plain_map(node: Node) -> bool:
    """Tells whether *node* is element-wise, and none of its attributes (a shape, axes) refers to dimensions."""
    return facts_of(node).is_map and not any(isinstance(a, tuple) for _, a in node.attributes)


def is_rename(node: Node) -> bool:
    """Tells whether *node* only gives the same row-major elements another shape.

    Not counted are copies in the same shape and weight packing: these fuse into a neighbour's kernel, at no cost either.
    """
    facts = facts_of(node)
    if not facts.is_rename or node.operator.prepares:
        return False
    x = node.inputs[0]
    return not facts.is_map or x is None or x.shape != node.output.shape


def keeps_finite(node: Node) -> bool:
    """Tells whether *node* makes finite numbers of finite ones, of any moderate size; equal calls share one computation."""
    if node.operator.has_regions:
        return False
    types = tuple([None if v is None else v.type for v in node.inputs])
    return _keeps_finite(node.operator, types, node.attributes)


def keeps_order(x: Value, perm: tuple[int, ...]) -> bool:
    """Tells whether transposing *x* by *perm* keeps the order of all dimensions longer than one."""
    moved = [p for p in perm if x.shape[p] is not ONE]
    return moved == sorted(moved)


def view_offset(node: Node) -> int | None:
    """Returns the offset, in elements, of the output of *node* in its first input's memory; None if it is no view of it.

    A reshape is a view at offset 0, and so are the first elements of a tensor, also if only a run tells how many. A slice is a
    view if its elements are contiguous and begin at a multiple of `ALIGNMENT`.
    """
    if is_rename(node):
        return 0
    x = node.inputs[0] if node.op == "slice" else None
    if x is not None and _is_prefix(node):
        return 0
    if x is None or x.static_shape is None or node.output.static_shape is None:
        return None
    offset = _slice_offset(node, x.static_shape, node.output.static_shape)
    return offset if offset is not None and offset * x.dtype.bytes % ALIGNMENT == 0 else None


def _is_prefix(node: Node) -> bool:
    """Tells whether a slice is the first elements of its input along the first dimension, however many these are."""
    starts, axes, steps = (node.attribute(name) for name in ("starts", "axes", "steps"))
    return bool(node.attribute("inside")) and axes == (0,) and starts in ((0,), (ZERO,)) and steps in (None, (1,))


def _slice_offset(node: Node, whole: tuple[int, ...], part: tuple[int, ...]) -> int | None:
    """Returns the position of a slice's first element; None if its elements are not contiguous."""
    steps, axes = node.attribute("steps"), node.attribute("axes")
    partial = [d for d, (n, m) in enumerate(zip(whole, part, strict=True)) if n != m]
    if (steps is not None and set(steps) != {1}) or 0 in part:
        return None
    if partial and any(m != 1 for m in part[: partial[-1]]):
        return None
    starts = dict(zip(range(len(whole)) if axes is None else axes, node.attribute("starts"), strict=False))
    if any(isinstance(s, Expr) for s in starts.values()):  # only a run tells where it begins
        return None
    begin: dict[int, int] = {a % len(whole): max(s + whole[a], 0) if s < 0 else s for a, s in starts.items()}
    return sum(begin.get(d, 0) * prod(whole[d + 1 :]) for d in partial)


@lru_cache(maxsize=4096)
def _facts(operator: Operator, types: tuple[TensorType | None, ...], attributes: Attributes) -> NodeFacts:
    given, outputs = operator.formulas(types, dict(attributes))
    operations = [op for op in topological(outputs) if not isinstance(op, Placeholder)]
    kinds = {op: classify(op) for op in operations}
    reads = tuple([OpClass.OPAQUE if t is None else _reach(t, operations, kinds, outputs) for t in given])
    kind = max(kinds.values(), default=OpClass.INJECTIVE)
    streams = tuple([t is not None and _streams(t, operations, kinds) for t in given])
    once = tuple([None if t is None else _read_once(t, operations, kinds) for t in given])
    is_map, is_rearrangement = all(map(_is_map, operations)), all(map(_is_rearrangement, operations))
    watches = any(map(_watches, operations))
    renames = operator.renames or is_rename_of(given, outputs)
    return NodeFacts(
        kind,
        reads,
        is_map=is_map,
        is_rename=renames,
        is_rearrangement=is_rearrangement,
        streams=streams,
        once=once,
        last=_last_dimension(operations[0]) if len(operations) == 1 else None,
        moved=_moved(given, operations),
        watches=watches,
    )


@lru_cache(maxsize=4096)
def _keeps_finite(operator: Operator, types: tuple[TensorType | None, ...], attributes: Attributes) -> bool:
    return outputs_keep_finite(operator.formulas(types, dict(attributes))[1])


def _watches(op: Operation) -> bool:
    values = op.values if isinstance(op, Compute) else op.expressions if isinstance(op, Scatter) else ()
    return any(isinstance(n, Apply) and n.fn == "watched" for v in values for n in post_order(v))


def _moved(given: Sequence[Tensor | None], operations: Sequence[Operation]) -> tuple[int, ...] | None:
    """Returns the inputs whose elements *operations* only move and select; None if they compute new elements."""
    read = [r for op in operations for r in _chosen(op)]
    if not all(isinstance(r, Read) for r in read):
        return None
    sources = {r.tensor.op for r in read if isinstance(r, Read)}
    return tuple([i for i, t in enumerate(given) if t is not None and t.op in sources])


def _chosen(op: Operation) -> list[IrNode | None]:
    """Returns the reads that each element of *op* is selected among by conditions; None stands for a computed element."""
    if not isinstance(op, Compute) or op.reduction is not None:
        return [None]
    found: list[IrNode | None] = []
    stack: list[IrNode] = list(op.values)
    while stack:
        n = stack.pop()
        if isinstance(n, Select):
            stack += [n.then, n.other]
        else:
            found.append(n)
    return found


def _reach(
    source: Tensor, operations: Sequence[Operation], kinds: dict[Operation, OpClass], outputs: Sequence[Tensor]
) -> OpClass:
    """Returns the hardest class on any path from *source* to an output; ELEMENTWISE where there is none."""
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


def _is_map(op: Operation) -> bool:
    """Tells whether *op* uses its axes only as indices of its reads, each in its own dimension counted from the last."""
    if not isinstance(op, Compute) or op.reduction is not None:
        return False
    seen: set[IrNode] = set()
    stack: list[IrNode] = list(op.values)
    while stack:
        n = stack.pop()
        if n in op.axes or (isinstance(n, Read) and not _is_broadcast(op, n)):
            return False
        if n not in seen and not isinstance(n, Read):
            stack += n.children()
        seen.add(n)
    return True


def _is_broadcast(op: Compute, read: Read) -> bool:
    """Tells whether *read* is at the index of the result, or at 0 in dimensions of extent one."""
    if len(read.indices) > len(op.axes):
        return False
    own = op.axes[len(op.axes) - len(read.indices) :]
    sizes = zip(read.indices, own, read.tensor.shape, strict=True)
    return all(i is axis or (i is ZERO and size is ONE) for i, axis, size in sizes)


def _is_rearrangement(op: Operation) -> bool:
    """Tells whether each element of *op* is an element of another tensor, at an index without division or look-up."""
    if not isinstance(op, Compute) or op.reduction is not None:
        return False
    indices = [n for v in op.values if isinstance(v, Read) for i in v.indices for n in post_order(i)]
    return all(isinstance(v, Read) for v in op.values) and all(
        isinstance(n, Var | Const | Add | Sub | Mul) for n in indices
    )


def _streams(source: Tensor, operations: Sequence[Operation], kinds: dict[Operation, OpClass]) -> bool:
    """Tells whether every read of *source* is by a contraction, at indices without the last axis of the result."""
    reached = {source.op}
    found = False
    for op in operations:
        reads = [r for r in op.reads if r.tensor.op in reached] if isinstance(op, Compute) else []
        if not reads or not isinstance(op, Compute):
            continue
        if kinds[op] is OpClass.COMPLEX_OUT_FUSABLE:
            last = op.axes[-1] if op.axes else None
            if any(n is last for r in reads for i in r.indices for n in post_order(i)):
                return False
            found = True
        elif found or kinds[op] > OpClass.INJECTIVE:
            return False
        else:
            reached.add(op)
    return found


def _read_once(
    source: Tensor, operations: Sequence[Operation], kinds: dict[Operation, OpClass]
) -> frozenset[int] | None:
    """Returns the dimensions of *source* that a contraction's sums or its vectors run along, if it reads each element once."""
    readers = [op for op in operations if source in op.inputs]
    if len(readers) != 1 or kinds[readers[0]] is not OpClass.COMPLEX_OUT_FUSABLE:
        return None
    (op,) = readers
    assert isinstance(op, Compute)
    assert op.reduction is not None  # as contractions have one
    read = [r for r in op.reads if r.tensor is source]
    extents = [*zip(op.axes, op.shape, strict=True), *[(a, a.extent) for a in op.reduction.axes]]
    axes = [axis for axis, size in extents if size is not ONE]
    places = [i for i, size in zip(read[0].indices, source.shape, strict=True) if size is not ONE]
    if len(read) != 1 or len(places) != len(axes) or set(places) != set(axes):
        return None
    runs = {*op.reduction.axes, *[axis for axis in axes if axis in op.axes][-1:]}
    return frozenset([d for d, i in enumerate(read[0].indices) if i in runs])


def _last_dimension(op: Operation) -> int | None:
    """Returns the dimension of *op* along which the last one of its only source lies, if it moves elements; else None."""
    if not isinstance(op, Compute) or op.reduction is not None or len(op.values) != 1:
        return None
    (read,) = op.values
    last = read.indices[-1] if isinstance(read, Read) and read.indices else None
    return op.axes.index(last) if last in op.axes else None
