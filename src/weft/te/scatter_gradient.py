"""The contributions of a scatter to the adjoints of its operands, where updates are summed and where they replace elements.

y = x; y[t[p]] += u[p]      d_x[i] += d_y[i]                                d_u[p] += d_y[t[p]]
y = x; y[t[p]] = u[p]       d_x[i] += d_y[i], if nothing is put there       d_u[p] += d_y[t[p]], if p is the last put there
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from weft.ir import INDEX, TRUE, Expr, Var, all_of, const, eq
from weft.support.errors import GradientError
from weft.te.adjoints import Adjoint, Contribution, change
from weft.te.reducer import sum_
from weft.te.scattering import Scatter, scatter
from weft.te.tensor import Tensor, compute, reads_of


def scatter_contributions(
    op: Scatter, heads: Sequence[Adjoint | None], wanted: Callable[[Tensor], bool]
) -> Iterator[Contribution]:
    """Yields the contributions of *op*; refuses a reducer that is no sum."""
    (head,) = heads
    if head is None:
        return
    if op.reducer is not None and op.reducer is not sum_:
        raise GradientError(
            f"there is no gradient of {op.name}, which combines elements by {op.reducer.name}",
            hint="add the updates, or put them",
        )
    place, value, condition = op.update
    last = _last_update(op) if op.reducer is None else None
    if wanted(op.base):
        at = tuple([Var(f"i{d}") for d in range(op.base.rank)])
        kept = TRUE if last is None else last[at] < 0
        yield Contribution(op.base, at, head(at), dict(zip(at, op.base.shape, strict=True)), kept)
    where = condition if last is None else all_of([condition, eq(last[place], op.number(op.axes))])
    for r in reads_of(value):
        total = change(value, r, head(place)) if r.dtype.is_float and wanted(r.tensor) else None
        if total is not None:
            yield Contribution(r.tensor, r.indices, total, dict(zip(op.axes, op.extents, strict=True)), where)


def _last_update(op: Scatter) -> Tensor:
    """Returns the number of the last update of each element; -1 where there is none."""

    def none(*i: Expr) -> Expr:
        return const(-1, INDEX)

    def number(*i: Expr) -> tuple[Sequence[Expr], Expr, Expr]:
        place, _, condition = op.update_at(i)
        return place, op.number(i), condition

    return scatter(compute(op.shape, none, f"{op.name}_none"), op.extents, number, None, f"{op.name}_last")
