"""The symbolic sizes on which a kernel's tiles and accumulators depend: those of the axes of its reductions.

C[i, j] = sum over k of A[i, k] * B[k, j]       rows i and columns j are reused, k is reduced
y[i] = max over k of x[i, k]                    k is reduced; rows share nothing
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weft.graph.fusion.groups import Group
from weft.ir import Expr, Var, free_vars, post_order
from weft.te import Compute, Read, topological


@dataclass(frozen=True)
class OpenAxes:
    """Sizes by themselves: of axes that are *reduced*, and of *rows* for each of which some operand is read again, or columns."""

    rows: frozenset[Var]
    reduced: frozenset[Var]


def open_axes(group: Group) -> OpenAxes:
    """Returns the open sizes of the axes of a group's reductions."""
    rows, reduced = list[Expr](), list[Expr]()
    for op in topological(group.tensors()[1]):
        if not isinstance(op, Compute) or op.reduction is None:
            continue
        terms = set(op.reduction.axes)
        operands = [_variables(r) for r in op.reads if not terms.isdisjoint(_variables(r))]
        reduced += [a.extent for a in op.reduction.axes]
        rows += [s for a, s in zip(op.axes, op.shape, strict=True) if any(a not in used for used in operands)]
        rows += op.shape[-1:]
    return OpenAxes(_alone(rows), _alone(reduced))


def _variables(read: Read) -> set[Var]:
    return {v for i in read.indices for v in post_order(i) if isinstance(v, Var)}


def _alone(extents: Iterable[Expr]) -> frozenset[Var]:
    """Returns the sizes by which alone some of *extents* is known."""
    found = [tuple(set(free_vars(e))) for e in extents]
    return frozenset(v[0] for v in found if len(v) == 1)
