"""Branches and loops. Short counted loops are written out; others are regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from weft.cost import MOST_UNROLLED_STEPS
from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.ops.counted_loops import CountedLoop, counted_loop, row_of
from weft.frontends.jax.ops.movement import turned
from weft.frontends.jax.registry import translates
from weft.graph.builder import Builder, CompileTimeConstant, Operand
from weft.graph.composites import branches_and_loops
from weft.graph.composites.sequences import concat
from weft.support.dtypes import bool_, i64

Iteration: TypeAlias = Callable[[Builder, Operand, Sequence[Operand]], tuple[list[Operand], list[Operand]]]
"""Builds an iteration from its number and the states: the new states, and the rows."""


@translates("if")
def if_(c: Call) -> tuple[Operand, ...]:
    """One of two regions."""
    condition = c.operand(0)
    if isinstance(condition, CompileTimeConstant) and not condition.symbolic:
        return tuple(c.region(0 if condition.array.all() else 1, []))
    made = branches_and_loops.branch(c, condition, lambda r: c.region(0, [], r), lambda r: c.region(1, [], r))
    return tuple(made)


@translates("case")
def case(c: Call) -> tuple[Operand, ...]:
    """The region of a number; the last one for numbers that have none."""
    place, last = c.operand(0), len(c.operation.regions) - 1
    if last < 0:
        c.fail("it has no regions", AGAIN)
    if isinstance(place, CompileTimeConstant) and not place.symbolic:
        k = int(place.array)
        return tuple(c.region(k if 0 <= k <= last else last, []))
    return tuple(_one_of(c, c, place, 0, last))


def _one_of(c: Call, b: Builder, place: Operand, k: int, last: int) -> list[Operand]:
    if k == last:
        return c.region(k, [], b)
    is_this = b.add("equal", place, b.scalar(k, place.dtype))
    return branches_and_loops.branch(
        b, is_this, lambda r: c.region(k, [], r), lambda r: _one_of(c, r, place, k + 1, last)
    )


@translates("while")
def while_(c: Call) -> tuple[Operand, ...]:
    """A loop; states that no iteration changes are values from around."""
    if len(c.operation.regions) != 2:
        c.fail(f"it has {len(c.operation.regions)} regions, not a condition and a body", AGAIN)
    body = c.operation.regions[1]
    returned = body.operations[-1].operands
    if len(returned) != len(c.operands) or len(body.arguments) != len(c.operands):
        c.fail("its body returns another number of values than it takes", AGAIN)
    invariant = [a == r for a, r in zip(body.arguments, returned, strict=True)]
    counted = counted_loop(c, invariant)
    made = _until(c, invariant) if counted is None else _counted(c, invariant, counted)
    return tuple(made)


def _until(c: Call, invariant: Sequence[bool]) -> list[Operand]:
    """Returns the last states of a loop that ends when its condition says so."""
    live = [k for k, fixed in enumerate(invariant) if not fixed]

    def step(r: Builder, number: Operand, now: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
        made = c.region(1, _with(c.operands, live, now), r)
        return c.region(0, made, r)[0], [made[k] for k in live], []

    start = c.region(0, c.operands)[0]
    last, _ = branches_and_loops.loop(c, None, start, [c.operands[k] for k in live], step)
    return _with(c.operands, live, last)


def _counted(c: Call, invariant: Sequence[bool], loop: CountedLoop) -> list[Operand]:
    """Returns the last states of a loop of a known number of iterations."""
    if loop.trips == 0:
        return list(c.operands)
    live = [k for k, fixed in enumerate(invariant) if not (fixed or k in loop.rows or k == loop.counter)]

    def iteration(b: Builder, number: Operand, now: Sequence[Operand]) -> tuple[list[Operand], list[Operand]]:
        given = _with(c.operands, live, now)
        first = c.operands[loop.counter]
        given[loop.counter] = b.add("add", b.cast(number, first.dtype), first)
        made = c.region(1, given, b)
        rows = [row_of(made[k]) for k in loop.rows]
        return [made[k] for k in live], [b.reshape(v, v.shape[2:]) for v in rows]

    if loop.trips <= MOST_UNROLLED_STEPS:
        last, columns = _written_out(c, loop, [c.operands[k] for k in live], iteration)
    else:

        def step(r: Builder, number: Operand, now: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
            return r.scalar(True, bool_), *iteration(r, number, now)

        most = c.scalar(loop.trips, i64)
        last, columns = branches_and_loops.loop(c, most, None, [c.operands[k] for k in live], step)
    made = _with(c.operands, live, last)
    made[loop.counter] = c.scalar(loop.first + loop.trips, c.operands[loop.counter].dtype)
    for (k, backwards), column in zip(loop.rows.items(), columns, strict=True):
        made[k] = c.reshape(turned(c, column, [0]) if backwards else column, c.operands[k].shape)
    return made


def _written_out(
    c: Call, loop: CountedLoop, now: list[Operand], iteration: Iteration
) -> tuple[list[Operand], list[Operand]]:
    """Returns the last states and the stacked rows of a loop, each iteration for itself."""
    columns: list[list[Operand]] = [[] for _ in loop.rows]
    for t in range(loop.trips):
        now, rows = iteration(c, c.scalar(t, i64), now)
        for column, row in zip(columns, rows, strict=True):
            column.append(c.reshape(row, [1, *row.shape]))
    return now, [concat(c, column, 0) for column in columns]


def _with(values: Sequence[Operand], places: Sequence[int], new: Sequence[Operand]) -> list[Operand]:
    """Returns *values* with *new* ones at *places*."""
    made = list(values)
    for k, v in zip(places, new, strict=True):
        made[k] = v
    return made
