"""Scatters that replace elements, by updates in any order: the last update of each element is found first.

    last[i] = -1; last[t[p]] = max(last[t[p]], p)                    combined in any order
    y[i] = x[i];  y[t[p], j] = u[p, j]  if last[t[p]] == p           one update at most puts an element

An index that is both one of the update and one of the tensor, and nothing else, as j here, has no part in `last`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

from weft.ir import INDEX, ZERO, Const, Expr, ExprLike, Var, all_of, as_expr, cast, const, eq, free_vars
from weft.support.dtypes import i32
from weft.te.reducer import max_
from weft.te.scattering import Scatter, scatter
from weft.te.tensor import Tensor, compute


def put_last(base: Tensor, extents: Iterable[ExprLike], fn: Callable[..., Any], name: str, *, in_place: bool) -> Tensor:
    """Returns `scatter(base, extents, fn)` by updates in any order; in their order where their number is not known, or no i32.

    What the arguments are `scatter` says.
    """
    sizes = tuple([as_expr(e, INDEX) for e in extents])
    op = Scatter(name, base, sizes, fn, None)
    count = prod([int(n.value) if isinstance(n, Const) else i32.int_range[1] for n in sizes])
    if count >= i32.int_range[1] or not op.chained:
        return scatter(base, sizes, fn, None, name, in_place=in_place)
    alone = _alone(op)
    kept = [d for d, i in enumerate(op.place) if i not in alone]
    others = [n for n, a in enumerate(op.axes) if a not in alone]

    def first(i: Sequence[Expr]) -> tuple[Expr, ...]:
        """Returns an index of an update with zeros for those that are alone."""
        return tuple([ZERO if a in alone else e for a, e in zip(op.axes, i, strict=True)])

    def number(i: Sequence[Expr]) -> Expr:
        return cast(op.number(first(i)), i32)

    def numbered(*i: Expr) -> tuple[Sequence[Expr], Expr, Expr]:
        given = dict(zip(others, i, strict=True))
        whole = tuple([given.get(n, ZERO) for n in range(len(op.axes))])
        place, _, condition = op.update_at(whole)
        return [place[d] for d in kept], number(whole), condition

    none = compute([base.shape[d] for d in kept], lambda *_: const(-1, i32), f"{name}_none")
    last = scatter(none, [sizes[n] for n in others], numbered, max_, f"{name}_last", any_order=True)

    def put(*i: Expr) -> tuple[Sequence[Expr], Expr, Expr]:
        place, value, condition = op.update_at(i)
        return place, value, all_of([condition, eq(last[tuple([place[d] for d in kept])], number(i))])

    return scatter(base, sizes, put, None, name, in_place=in_place, any_order=True)


def _alone(op: Scatter) -> set[Var]:
    """Returns the indices of updates that are indices of the tensor, and that no other index or condition depends on."""
    place, _, condition = op.update
    used = [v for e in (*place, condition) for v in set(free_vars(e))]
    return {a for a in op.axes if any(i is a for i in place) and used.count(a) == 1}
