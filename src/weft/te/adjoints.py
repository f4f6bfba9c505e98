"""The contributions of one formula to the adjoints of the tensors that it reads: one for each instance, before they are summed.

A sum passes its own adjoint on to each term. A maximum passes it on to the term that won, the first among equals. Of any other
reducer, each value is combined with the reduction of all the others, and the derivative of that is taken: correct for every
reducer, at the cost of one reduction for each value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.ir import FALSE, TRUE, ZERO, Expr, Or, Var, all_of, cast, const, eq, ne, substitute
from weft.support.dtypes import DType, f32
from weft.te.derivatives import derivative, plus, times
from weft.te.reducer import ReduceAxis, Reducer, Reduction, argmax, argmin, max_, min_, sum_
from weft.te.tensor import Body, Compute, Read, Tensor

Adjoint: TypeAlias = Callable[[Sequence[Expr]], Expr]
"""Gives the adjoint of a tensor's element at an index."""


@dataclass(frozen=True)
class Contribution:
    """Each instance of *variables* (extents) for which *where* holds adds *value* to the adjoint of *tensor* at *indices*."""

    tensor: Tensor
    indices: tuple[Expr, ...]
    value: Expr
    variables: Mapping[Var, Expr]
    where: Expr


def contributions(
    op: Compute, heads: Sequence[Adjoint | None], wanted: Callable[[Tensor], bool]
) -> Iterator[Contribution]:
    """Yields the contributions of *op*, whose outputs have the adjoints *heads*, to those of the tensors that are *wanted*."""
    reads = [r for r in op.reads if r.dtype.is_float and wanted(r.tensor)]
    if not reads:
        return
    values, where = _terms(op, heads)
    variables: dict[Var, Expr] = dict(zip(op.axes, op.shape, strict=True))
    if op.reduction is not None:
        variables |= {a: a.extent for a in op.reduction.axes}
    for r in reads:
        total: Expr | None = None
        for v, head in zip(values, heads, strict=True):
            if head is not None and v.dtype.is_float:
                total = plus(total, change(v, r, head(op.axes)))
        if total is not None:
            yield Contribution(r.tensor, r.indices, total, variables, where)


def wide(dtype: DType) -> DType:
    """Returns the type that sums of *dtype* are kept in: at least 32 bits."""
    return f32 if dtype.bits < f32.bits else dtype


def change(v: Expr, r: Read, head: Expr) -> Expr | None:
    """Returns *head* times the derivative of *v* by *r*, in the type in which adjoints of *r* are summed."""
    if r.dtype is v.dtype:
        found = derivative(v, r, head)
    else:
        found = times(derivative(v, r, const(1.0, r.dtype)), head)
    return None if found is None else cast(found, wide(r.dtype))


def _terms(op: Compute, heads: Sequence[Adjoint | None]) -> tuple[Sequence[Expr], Expr]:
    """Returns the values to be differentiated, one for each output, and the condition under which they contribute."""
    r = op.reduction
    if r is None:
        return op.values, TRUE
    if r.reducer is sum_:
        return r.values, r.condition
    if r.reducer in _WINNERS:
        return r.values, all_of([r.condition, eq(_place(r.axes), _winner(op, r)[op.axes])])
    others = _others(op, r)
    return r.reducer.combine(tuple([t[(*op.axes, *r.axes)] for t in others]), r.values), r.condition


_WINNERS: Final[dict[Reducer, Reducer]] = {max_: argmax, min_: argmin}


def _place(axes: Sequence[Expr]) -> Expr:
    """Returns the number of an instance among those of a reduction."""
    place: Expr = ZERO
    for a in axes:
        assert isinstance(a, ReduceAxis)
        place = place * a.extent + a
    return place


def _winner(op: Compute, r: Reduction) -> Tensor:
    """Computes the number of the instance whose value is the result."""
    body = Reduction(_WINNERS[r.reducer], (_place(r.axes), r.values[0]), r.axes, r.condition)
    return formulas(op.shape, op.axes, body, f"{op.name}_from")[0]


def _others(op: Compute, r: Reduction) -> tuple[Tensor, ...]:
    """Reduces, for each instance, all the values but its own."""
    again = tuple([ReduceAxis(a.name, a.extent) for a in r.axes])
    values: dict[Var, Expr] = dict(zip(r.axes, again, strict=True))
    another: Expr = FALSE
    for a, b in zip(r.axes, again, strict=True):
        another = ne(b, a) if another is FALSE else Or(another, ne(b, a))
    where = all_of([another, substitute(r.condition, values)])
    body = Reduction(r.reducer, tuple([substitute(v, values) for v in r.values]), again, where)
    shape = (*op.shape, *[a.extent for a in r.axes])
    return formulas(shape, (*op.axes, *r.axes), body, f"{op.name}_others")


def formulas(shape: Sequence[Expr], axes: Sequence[Var], body: Body, name: str) -> tuple[Tensor, ...]:
    """Defines tensors by a body over given index variables."""

    def fn(*i: Expr) -> Body:
        values = dict(zip(axes, i, strict=True))
        return map_body(body, lambda e: substitute(e, values))

    return Compute(name, tuple(shape), fn, [a.name for a in axes]).outputs


def map_body(body: Body, change: Callable[[Expr], Expr]) -> Body:
    """Returns the body of a formula with each of its expressions changed."""
    if isinstance(body, Expr):
        return change(body)
    if isinstance(body, tuple):
        return tuple([change(e) for e in body])
    return Reduction(body.reducer, tuple([change(v) for v in body.values]), body.axes, change(body.condition))
