"""The fusion class of an operation, derived from its formula: the basis of fusion and of schedule rules.

The classes are those of Chen et al., "TVM" (OSDI 2018), section 3: *injective* (every output element reads one element of each
input), *reduction*, *complex-out-fusable* (a contraction, to whose output element-wise work can be fused), *opaque*.
"""

from __future__ import annotations

from enum import IntEnum

from weft.ir import Mul, Var, post_order
from weft.te.tensor import Compute, Operation, Read, Tensor, reads_of


class OpClass(IntEnum):
    """The fusion classes, from the easiest to fuse to the hardest."""

    ELEMENTWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    REDUCTION = 3
    COMPLEX_OUT_FUSABLE = 4
    OPAQUE = 5


def classify(op: Operation) -> OpClass:
    """Returns the class of one operation: the hardest to fuse among those of its accesses."""
    if not isinstance(op, Compute):
        return OpClass.OPAQUE
    if op.reduction is not None:
        return OpClass.COMPLEX_OUT_FUSABLE if is_contraction(op) else OpClass.REDUCTION
    return max((access_class(op, r) for r in op.reads), default=OpClass.ELEMENTWISE)


def access_class(op: Compute, read: Read) -> OpClass:
    """Returns how a formula without a reduction reads one input: element by element, broadcast, or rearranged."""
    if read.indices == op.axes:
        return OpClass.ELEMENTWISE
    used = [i for i in read.indices if isinstance(i, Var)]
    others = [i for i in read.indices if not isinstance(i, Var) and _depends_on_axes(op, i)]
    ordered = [op.axes.index(i) for i in used if i in op.axes]
    if not others and ordered == sorted(set(ordered)):
        return OpClass.BROADCAST
    return OpClass.INJECTIVE


def _depends_on_axes(op: Compute, e: object) -> bool:
    return any(n in op.axes or isinstance(n, Read) for n in post_order(e))  # type: ignore[arg-type]


def is_contraction(op: Operation) -> bool:
    """Tells whether *op* is a sum of products of two tensors' elements, each read along a reduced axis."""
    if not isinstance(op, Compute) or op.reduction is None or op.reduction.reducer.name != "sum":
        return False
    value = op.reduction.values[0]
    if not isinstance(value, Mul) or value.a is value.b:  # a sum of squares reads one tensor, once
        return False
    left, right = reads_of(value.a), reads_of(value.b)
    reduced: set[Var] = set(op.reduction.axes)
    return any(_uses(r, reduced) for r in left) and any(_uses(r, reduced) for r in right)


def _uses(read: Read, axes: set[Var]) -> bool:
    return any(n in axes for i in read.indices for n in post_order(i))


def is_elementwise(op: Operation, of: Tensor) -> bool:
    """Tells whether *op* reads *of* only at its own index, so that it can be computed at the loops of *of*."""
    if not isinstance(op, Compute) or op.reduction is not None:
        return False
    return all(r.indices == op.axes for r in op.reads if r.tensor is of)
