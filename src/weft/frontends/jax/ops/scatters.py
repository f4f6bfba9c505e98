"""Scatters: windows of updates put, or combined, at tuples of indices. Windows that reach beyond the tensor are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.ops.indexing import gathered
from weft.frontends.jax.ops.reducers import updater_of
from weft.frontends.jax.ops.window_indices import Windows, check, starts, tuples
from weft.frontends.jax.registry import translates
from weft.graph.builder import Operand, total
from weft.ir import Expr
from weft.support.dtypes import bool_, i64, u8

REDUCTIONS: Final = {"none": "none", "add": "add", "multiply": "mul", "maximum": "max", "minimum": "min"}
_OF_TRUTHS: Final = {"none": "none", "or": "max", "add": "max", "maximum": "max", "and": "min", "minimum": "min"}


@translates("scatter")
def scatter(c: Call) -> Operand:
    """A tensor with updates at tuples of indices."""
    if len(c.operands) != 3:
        c.fail("scatters of several tensors at once are not supported", "scatter them one by one")
    x, indices, updates = c.operands
    known = _OF_TRUTHS if x.dtype is bool_ else REDUCTIONS
    how = updater_of(c)
    w = _windows(c, x, updates)
    check(c, w, x, indices, updates.rank)
    if how not in known:
        updates, how = _applied(c, w, x, indices, updates), "none"
    if x.dtype is bool_:
        return c.cast(_scattered(c, w, c.cast(x, u8), indices, c.cast(updates, u8), known[how]), bool_)
    return _scattered(c, w, x, indices, updates, known[how])


def _applied(c: Call, w: Windows, x: Operand, indices: Operand, updates: Operand) -> Operand:
    """Returns the results of the operation's region for elements and updates, where each element has one update at most."""
    if c.value("unique_indices") is not True or not c.operation.regions:
        c.fail("it combines elements by a function that is not supported", f"use one of {', '.join(REDUCTIONS)}")
    (made,) = c.region(0, [gathered(c, w, x, indices), updates])
    return made if made.rank else c.add("expand", made, shape=updates.shape)


def _windows(c: Call, x: Operand, updates: Operand) -> Windows:
    numbers: Any = c.value("scatter_dimension_numbers")
    if not isinstance(numbers, dict):
        c.fail(f"its dimension numbers are {numbers!r}", AGAIN)

    def dims(name: str) -> list[int]:
        return c.integers_of(numbers.get(name, []), name)

    inner, dropped, batch = dims("update_window_dims"), dims("inserted_window_dims"), dims("input_batching_dims")
    kept = [d for d in range(x.rank) if d not in dropped and d not in batch]
    if len(kept) != len(inner) or any(not 0 <= d < updates.rank for d in inner):
        c.fail(f"its windows are not those of {x!r}", AGAIN)
    sizes: list[int | Expr] = [1] * x.rank
    for d, n in zip(kept, inner, strict=True):
        sizes[d] = c.extents(updates)[n]
    return Windows(
        sizes,
        inner,
        dropped,
        dims("scatter_dims_to_operand_dims"),
        batch,
        dims("scatter_indices_batching_dims"),
        int(numbers.get("index_vector_dim", 0)),
    )


def _scattered(c: Call, w: Windows, x: Operand, indices: Operand, updates: Operand, reduction: str) -> Operand:
    """Returns the tensor with updates of rows of whole dimensions; those of windows beyond the tensor are left out."""
    operand = c.extents(x)
    firsts, shape = starts(c, w, indices)
    inside = _inside(c, w, firsts, operand, shape)
    columns, named, partly = tuples(c, w, firsts, shape, operand)
    whole = [d for d in range(x.rank) if d not in named]
    extents, rest = [operand[d] for d in named], [operand[d] for d in whole]
    count = total(extents)
    rows = c.reshape(c.transpose(x, [*named, *whole]), [count, *rest])
    place = _places(c, columns, extents, inside, len(shape), count)
    given = c.reshape(_by_window(c, w, updates, len(shape), [*partly, *whole]), [place.shape[0], *rest])
    made = c.add("scatter_nd", rows, c.reshape(place, [place.shape[0], 1]), given, reduction=reduction, drop=True)
    back = c.reshape(made, [*extents, *rest])
    return c.transpose(back, [[*named, *whole].index(d) for d in range(x.rank)])


def _inside(
    c: Call, w: Windows, firsts: Sequence[Operand], operand: Sequence[int | Expr], shape: Sequence[int | Expr]
) -> Operand:
    """Tells of each window whether it lies in the tensor."""
    made: Operand = c.add("full", shape=tuple(shape), value=True, dtype=bool_)
    for v, d in zip(firsts, w.indexed, strict=False):
        low = c.add("less_equal", c.scalar(0, i64), v)
        high = c.add("less_equal", v, c.size(operand[d] - w.sizes[d]))
        made = c.add("logical_and", made, c.add("logical_and", low, high))
    return made


def _places(
    c: Call, columns: Sequence[Operand], extents: Sequence[int | Expr], inside: Operand, lead: int, count: int | Expr
) -> Operand:
    """Returns the row of each element of the windows; *count* for those of windows beyond the tensor."""
    place: Operand = c.scalar(0, i64)
    for v, extent in zip(columns, extents, strict=True):
        place = c.add("add", c.add("mul", place, c.size(extent)), v)
    if columns:
        inside = c.reshape(inside, [*inside.shape, *[1] * (columns[0].rank - lead)])
    chosen = c.add("where", inside, place, c.size(count))
    return c.reshape(chosen, [total(chosen.shape)])


def _by_window(c: Call, w: Windows, updates: Operand, lead: int, dims: Sequence[int]) -> Operand:
    """Returns updates with the dimensions of the indices first, then those of windows as *dims* has them."""
    placed = dict(zip(w.kept(), w.inner, strict=True))
    outer = [d for d in range(updates.rank) if d not in w.inner]
    if len(outer) != lead:
        c.fail(f"its updates {updates!r} have not {lead} dimensions beside those of their windows", AGAIN)
    return c.transpose(updates, [*outer, *[placed[d] for d in dims]])
