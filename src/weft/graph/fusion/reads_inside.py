"""Proofs that a formula reads tensors inside of their shapes, and divides indices by no zero, whatever its symbolic sizes are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weft.ir import (
    DIVISIONS,
    ONE,
    TRUE,
    ZERO,
    Bounds,
    Expr,
    Select,
    Var,
    all_of,
    as_expr,
    assume,
    index,
    prove,
    simplify,
    substitute,
)
from weft.te import Compute, Operation, Prefix, Read, reads_of


def is_total(op: Operation, sizes: Iterable[Var]) -> bool:
    """Tells whether each element of *op* can certainly be computed for all values of *sizes* within their ranges.

    Indices that are data are not certain; what other kinds of operations than formulas read is not known.
    """
    if not isinstance(op, Compute | Prefix):
        return False
    bounds = Bounds()
    for v in sizes:
        low, high = v.size_range
        bounds = bounds.bind(v, index(low), None if high is None else index(high))
    for axis, extent in zip(op.axes, op.shape, strict=True):
        bounds = _along(axis, extent, bounds)
    if isinstance(op, Prefix):
        return all(_is_total(e, bounds) for e in op.reads)
    values, condition, bounds = _reduced(op, bounds)
    inside = assume(condition, bounds)
    return _is_total(condition, bounds) and all(_is_total(e, inside) for e in values)


def _reduced(op: Compute, bounds: Bounds) -> tuple[list[Expr], Expr, Bounds]:
    """Returns the values that a formula computes or reduces, the condition under which it does, and the bounds of its axes."""
    if op.reduction is None:
        return list(op.values), TRUE, bounds
    axes: dict[Var, Expr] = {}
    for k in op.reduction.axes:
        axes[k] = axis = Var(k.name)  # of a plain kind, which is the one that bounds are known of
        bounds = _along(axis, k.extent, bounds)
    return [substitute(e, axes) for e in op.values], substitute(op.reduction.condition, axes), bounds


def _along(axis: Var, extent: Expr, bounds: Bounds) -> Bounds:
    """Returns the bounds where there is a value of *axis*, which says that its extent is not zero."""
    return assume(extent >= ONE, bounds).bind(axis, ZERO, extent - ONE)


def _is_total(e: Expr, bounds: Bounds) -> bool:
    """Tells whether *e* can certainly be computed within *bounds*, where only the chosen one of two values is."""
    seen: set[tuple[Expr, Bounds]] = set()
    pending = [(e, bounds)]
    while pending:
        part = pending.pop()
        if part in seen:
            continue
        seen.add(part)
        n, within = part
        if not prove(all_of(_required(n)), within):
            return False
        if isinstance(n, Select):
            then, other = assume(n.cond, within), assume(~n.cond, within)
            pending += [(n.cond, within), (simplify(n.then, then), then), (simplify(n.other, other), other)]
        else:
            pending += [(k, within) for k in n.children() if isinstance(k, Expr)]
    return True


def _required(e: Expr) -> Iterator[Expr]:
    """Yields the conditions under which *e* has a value where its operands have; divisors that are data are the model's."""
    if isinstance(e, Read):
        for i, s in zip(e.indices, e.tensor.shape, strict=True):
            yield from (i >= ZERO, i < s)
    elif isinstance(e, DIVISIONS) and not reads_of(e.b):
        yield e.b > as_expr(0, e.b.dtype)
