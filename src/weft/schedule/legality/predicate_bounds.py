"""The limits that a block's guard sets for an index while some loops run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from weft.ir import (
    ONE,
    ZERO,
    Bounds,
    Const,
    Expr,
    Var,
    conjuncts,
    extremes,
    free_vars,
    index,
    linear_terms,
    prove,
    simplify,
    substitute,
)
from weft.loop import Block, For, Function
from weft.schedule.cursors.state import refuse
from weft.schedule.cursors.tree import Path, bounds_on, loops_on, the_block
from weft.schedule.legality.bijection import instance_map, reduces_all
from weft.schedule.legality.iteration_domain import slack_of


@dataclass(frozen=True, slots=True)
class Limit:
    """The *condition* holds only for indices up to *last* (or from *first* on); if *exact*, for all of those."""

    condition: Expr
    first: Expr | None
    last: Expr | None
    exact: bool


def limits(block: Block, e: Expr, moving: Collection[Var], bounds: Bounds) -> Iterator[Limit]:
    """Yields the limits that each condition of the guard of *block* sets for the index *e*, an expression of loops.

    *bounds* has the ranges of the loops, those *moving* among them; limits are in terms of the others.
    """
    for c in conjuncts(block.predicate):
        slack = slack_of(c)
        if slack is None or not any(v in moving for v in free_vars(c)):
            continue
        found = _limit(c, e, slack, moving, bounds)
        if found is not None:
            yield found


def _limit(c: Expr, e: Expr, slack: Expr, moving: Collection[Var], bounds: Bounds) -> Limit | None:
    """Solves `slack >= 1` for *e*, whose coefficients must be a multiple of those of *slack*.

    With `e = rest - k*slack`, the condition says `e <= rest - k`. If *rest* takes at most k values, from r on, the
    condition holds for exactly the `e < r`. Likewise from below.
    """
    ratio = _ratio(e, slack, moving)
    if ratio is None:
        return None
    rest = simplify(e - slack * index(ratio), bounds)
    used = {v for v in free_vars(slack) if v in moving}
    if any(v in used for v in free_vars(rest)):
        return None
    found = extremes(rest, list(moving), bounds)
    if found is None:
        return None
    low, high = found
    k = abs(ratio)
    exact = prove(high - low < k, bounds)
    if ratio > 0:
        return Limit(c, simplify(low + k, bounds), None, exact)
    return Limit(c, None, simplify(low - ONE if exact else high - k, bounds), exact)


def _ratio(e: Expr, slack: Expr, moving: Collection[Var]) -> int | None:
    """Returns the ratio of the coefficients that *e* and *slack* have for the first loop that both depend on."""
    of_slack, of_e = linear_terms(slack, moving), linear_terms(e, moving)
    if of_slack is None or of_e is None:
        return None
    for v, step in of_slack[0].items():
        by = of_e[0].get(v)
        if not isinstance(by, Const) or not isinstance(step, Const) or int(by.value) % int(step.value):
            return None
        return int(by.value) // int(step.value)
    return None


def fails_above(c: Expr, e: Expr, end: Expr, moving: Collection[Var], bounds: Bounds) -> bool:
    """Tells whether *e* is at least *end* wherever the condition *c* does not hold.

    With a slack of 0 or less, `e = rest - k*slack` is at least *rest*.
    """
    slack = slack_of(c)
    if slack is None:
        return False
    return any(prove(simplify(e + slack * index(k), bounds) >= end, bounds) for k in _steps(e, slack, moving))


def fails_below(c: Expr, e: Expr, begin: Expr, moving: Collection[Var], bounds: Bounds) -> bool:
    """Tells whether *e* is less than *begin* wherever the condition *c* does not hold."""
    slack = slack_of(c)
    if slack is None:
        return False
    return any(prove(simplify(e - slack * index(k), bounds) < begin, bounds) for k in _steps(e, slack, moving))


def _steps(e: Expr, slack: Expr, moving: Collection[Var]) -> list[int]:
    """Returns the ratios of coefficients of *e* to those of *slack* with which a bound of one gives a bound of the other."""
    return sorted({1, abs(_ratio(e, slack, moving) or 1)})


def check_recomputable(fn: Function, path: Path) -> None:
    """Refuses a block for which new loops, over boxes of its axes, would run other instances than its own loops do.

    A reduction must run over all of its reduce axes, and the guard may only exclude values outside the axes' extents.
    """
    block = the_block(path)
    if not reduces_all(fn, path):
        refuse(
            f"{block.name} may not run over all of what it reduces",
            block,
            "a reduction moves as a whole: its loops must take all values of its axes",
        )
    whole = instance_map(fn, path)
    if whole is not None and whole.surjective:
        return
    loops, bounds = loops_on(path), bounds_on(path, fn)
    harmless = _holding_at_first(block, loops, bounds) | _beyond_axes(block, loops, bounds)
    if any(c not in harmless for c in conjuncts(block.predicate)):
        refuse(
            f"the guard of {block.name} leaves out instances that new loops would run",
            block,
            "move it before what gives it the guard, such as inlining a reader of a part",
        )


def _holding_at_first(block: Block, loops: Sequence[For], bounds: Bounds) -> set[Expr]:
    """Returns the guard's conditions on loops that no axis depends on, if they hold in the first iteration of these."""
    used = {v for b in block.bindings for v in free_vars(b)}
    first = {f.var: f.begin for f in loops if f.var not in used}
    independent = [c for c in conjuncts(block.predicate) if used.isdisjoint(free_vars(c))]
    return {c for c in independent if prove(substitute(c, first), bounds)}


def _beyond_axes(block: Block, loops: Sequence[For], bounds: Bounds) -> set[Expr]:
    """Returns the guard's conditions that only exclude values below 0 or beyond the extent of some axis."""
    moving = [f.var for f in loops]
    found: set[Expr] = set()
    for axis, binding in zip(block.axes, block.bindings, strict=True):
        for limit in limits(block, binding, moving, bounds):
            above = limit.last is not None and prove(limit.last >= axis.extent - ONE, bounds)
            below = limit.first is not None and prove(limit.first <= ZERO, bounds)
            if limit.exact and (above or below):
                found.add(limit.condition)
        for c in conjuncts(block.predicate):
            if fails_above(c, binding, axis.extent, moving, bounds) or fails_below(c, binding, ZERO, moving, bounds):
                found.add(c)
    return found
