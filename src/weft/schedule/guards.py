"""What a block's guard says of an index: the limits that it sets while some loops run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from weft.ir.bounds import Bounds
from weft.ir.expr import ONE, ZERO, Const, Expr, Le, Lt, Var, index
from weft.ir.prove import extremes, linear_terms, prove
from weft.ir.rewrite import free_vars, substitute
from weft.ir.simplify import simplify
from weft.loop.nodes import Block, Function
from weft.schedule.bijection import instance_map, reduces_all
from weft.schedule.rebind import conjuncts
from weft.schedule.state import refuse
from weft.schedule.tree import Path, bounds_on, loops_on, the_block


@dataclass(frozen=True, slots=True)
class Limit:
    """The *condition* holds only for indices up to *last* (or from *first* on); if *exact*, for all of those."""

    condition: Expr
    first: Expr | None
    last: Expr | None
    exact: bool


def limits(block: Block, e: Expr, moving: Collection[Var], bounds: Bounds) -> Iterator[Limit]:
    """Yields what each condition of the guard of *block* says of the index *e*, an expression of loops.

    *bounds* has the ranges of the loops, those *moving* among them; limits are in terms of the others.
    """
    for c in conjuncts(block.predicate):
        slack = _slack(c)
        if slack is None or not any(v in moving for v in free_vars(c)):
            continue
        found = _limit(c, e, slack, moving, bounds)
        if found is not None:
            yield found


def _slack(c: Expr) -> Expr | None:
    """Returns a number that is at least one exactly where *c* holds."""
    if isinstance(c, Lt):
        return c.b - c.a
    return c.b - c.a + ONE if isinstance(c, Le) else None


def _limit(c: Expr, e: Expr, slack: Expr, moving: Collection[Var], bounds: Bounds) -> Limit | None:
    """Solves `slack >= 1` for *e*, which must move by a multiple of what *slack* moves by.

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
    """Returns how many times as fast as *slack* the index *e* moves with the first loop that both depend on."""
    of_slack, of_e = linear_terms(slack, moving), linear_terms(e, moving)
    if of_slack is None or of_e is None:
        return None
    for v, step in of_slack[0].items():
        by = of_e[0].get(v)
        if not isinstance(by, Const) or not isinstance(step, Const) or int(by.value) % int(step.value):
            return None
        return int(by.value) // int(step.value)
    return None


def _only_beyond(c: Expr, binding: Expr, extent: Expr, moving: Collection[Var], bounds: Bounds) -> bool:
    """Tells whether *binding* is no value of its axis, of *extent*, wherever the condition *c* does not hold.

    With a slack of 0 or less, `binding = rest + ratio*slack` is on the far side of *rest*.
    """
    slack = _slack(c)
    if slack is None:
        return False
    ratios = {-1, 1, _ratio(binding, slack, moving) or 1}
    rests = [(r, simplify(binding - slack * index(r), bounds)) for r in sorted(ratios)]
    return any(prove(rest >= extent, bounds) if r < 0 else prove(rest < ZERO, bounds) for r, rest in rests)


def check_renewable(fn: Function, path: Path) -> None:
    """Refuses a block around which new loops, over boxes of its axes, would run other instances than its own do.

    A reduction has to run over all that it reduces, and a guard to leave out only what is beyond the block's axes.
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
    bounds = bounds_on(path, fn)
    loops = [f.var for f in loops_on(path)]
    used = {v for b in block.bindings for v in free_vars(b)}
    first = {f.var: f.begin for f in loops_on(path) if f.var not in used}
    kept = {
        c for c in conjuncts(block.predicate) if used.isdisjoint(free_vars(c)) and prove(substitute(c, first), bounds)
    }
    for axis, binding in zip(block.axes, block.bindings, strict=True):
        for found in limits(block, binding, loops, bounds):
            beyond = found.last is not None and prove(found.last >= axis.extent - ONE, bounds)
            before = found.first is not None and prove(found.first <= ZERO, bounds)
            if found.exact and (beyond or before):
                kept.add(found.condition)
        kept.update(c for c in conjuncts(block.predicate) if _only_beyond(c, binding, axis.extent, loops, bounds))
    if any(c not in kept for c in conjuncts(block.predicate)):
        refuse(
            f"the guard of {block.name} leaves out instances that new loops would run",
            block,
            "move it before what gives it the guard, such as inlining a reader of a part",
        )
