"""The symbolic sizes on which a kernel's tiles and accumulators depend: those of the axes of its reductions.

C[i, j] = sum over k of A[i, k] * B[k, j]         rows i and columns j are reused, k is reduced
y[i] = max over k of x[i, k]                      k is reduced; rows share nothing
C[n, h, w, j] = sum over c of A[n, h, w, c] * B[c, j]     rows are n, h and w: where two are open, neither alone makes it one row
y[h, w] = sum over i, j of x[h + i, w + j] * k[i, j]      positions of windows: pictures of one row or column are rare
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.graph.fusion.groups import Group
from weft.ir import Const, Expr, Var, free_vars, post_order, simplify
from weft.te import Compute, Read, topological


@dataclass(frozen=True)
class OpenAxes:
    """Sizes by themselves: of axes that are *reduced*, and of *rows* for each of which some operand is read again, or columns."""

    rows: frozenset[Var]
    reduced: frozenset[Var]


def open_axes(group: Group) -> OpenAxes:
    """Returns the open sizes of the axes of a group's reductions."""
    rows, reduced = set[Var](), set[Var]()
    for op in topological(group.tensors()[1]):
        if isinstance(op, Compute) and op.reduction is not None:
            rows |= set(_rows(op))
            reduced |= _alone([a.extent for a in op.reduction.axes])
    return OpenAxes(frozenset(rows), frozenset(reduced))


def _rows(op: Compute) -> Iterator[Var]:
    """Yields the open sizes that alone make a reduction of many rows, or columns, one of a single one."""
    assert op.reduction is not None
    terms = set(op.reduction.axes)
    operands = [_variables(r) for r in op.reads if not terms.isdisjoint(_variables(r))]
    windows = {v for r in op.reads for i in r.indices if not terms.isdisjoint(used := _variables_in(i)) for v in used}
    sizes = {a: s for a, s in zip(op.axes, op.shape, strict=True) if a not in windows}
    for used in operands:
        again = [s for a, s in zip(op.axes, op.shape, strict=True) if a not in used and not isinstance(s, Const)]
        if len(again) == 1:
            yield from _alone([s for a, s in sizes.items() if a not in used])
    yield from _alone([s for a, s in sizes.items() if a is op.axes[-1]])


def _variables(read: Read) -> set[Var]:
    return {v for i in read.indices for v in _variables_in(i)}


def _variables_in(e: Expr) -> set[Var]:
    return {v for v in post_order(e) if isinstance(v, Var)}


def _alone(extents: Iterable[Expr]) -> set[Var]:
    """Returns the sizes that some of *extents* are, or differ from by a number."""
    return {v for e in extents for v in free_vars(e)[:1] if isinstance(simplify(e - v), Const)}
