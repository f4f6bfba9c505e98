"""Whether the loops around a block run each of its instances exactly once."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import (
    ONE,
    TRUE,
    ZERO,
    Add,
    Bounds,
    Const,
    Expr,
    IterMap,
    Var,
    detect_iter_map,
    extremes,
    free_vars,
    post_order,
    simplify,
    substitute,
)
from weft.loop import AxisKind, For, Function
from weft.schedule.cursors.tree import Path, bounds_on, loops_on, the_block
from weft.schedule.legality.iteration_domain import domain_of, loops_in


def instance_map(fn: Function, path: Path) -> IterMap | None:
    """Returns how the loops on *path* map to the axes of the block at its end, or None if that can't be told."""
    block = the_block(path)
    domain = domain_of(block, loops_on(path), bounds_on(path, fn))
    return domain.detect(block.bindings, list(domain.loops), domain.guard, [a.extent for a in block.axes])


def is_bijective(fn: Function, path: Path) -> bool:
    """Tells whether each instance of the block at the end of *path* runs exactly once."""
    found = instance_map(fn, path)
    return found is not None and found.bijective


def is_injective(fn: Function, path: Path, within: For) -> bool:
    """Tells whether no instance of the block at the end of *path* runs twice in one run of the loop *within*, on the path."""
    loops = loops_on(path)
    start = loops.index(within)
    whole = instance_map(fn, path)
    if whole is not None and whole.injective:
        return True
    return any(_reaches_once(fn, path, loops[n:]) for n in range(start, -1, -1))


def is_injective_in_loop(fn: Function, path: Path, within: For, axis: Var) -> bool:
    """Tells whether *axis* of the block at the end of *path* takes other values in each iteration of the loop *within*."""
    block, loops = the_block(path), loops_on(path)
    binding = next(b for a, b in zip(block.axes, block.bindings, strict=True) if a.var is axis)
    extent = next(a.extent for a in block.axes if a.var is axis)
    moving = [f for f in loops[loops.index(within) :] if f.var in free_vars(binding)]
    if within not in moving or any(f.begin is not ZERO for f in moving):
        return False
    bounds = bounds_on(path, fn)
    found = extremes(binding, [f.var for f in moving], bounds)
    if found is None:
        return False
    rest = simplify(binding - found[0], bounds)
    variables = {f.var: f.extent for f in moving}
    if any(v not in variables for v in free_vars(rest)):
        return False
    made = detect_iter_map([rest], variables, TRUE, [extent], bounds)
    return made is not None and made.injective


def _reaches_once(fn: Function, path: Path, moving: list[For]) -> bool:
    """Tells whether *moving*, the loops from one on the path inwards, run no instance twice while the outer loops are fixed.

    A guard only removes instances: they are distinct if they are so without it, or under one of its conditions alone.
    """
    block = the_block(path)
    domain = domain_of(block, moving, bounds_on(path, fn))
    variables = list(domain.loops)
    fixed = {f.var for f in loops_on(path) if f.var not in domain.loops}
    rests = _from_least(block.bindings, variables, domain.bounds)
    if rests is None or any(v in fixed for r in rests for v in free_vars(r)):
        return False
    extents = [a.extent for a in block.axes]
    inside = [c for c in domain.guard if not any(v in fixed for v in free_vars(c))]
    tried = [domain.detect(rests, variables, g, extents) for g in ([], *[[c] for c in inside], inside)]
    if all(domain.begin(v) is ZERO for v in variables):
        counts = {v: domain.loops[v][1] for v in variables}
        tried.append(_counted_from_zero(rests, counts, extents, domain.bounds))
    return any(made is not None and made.injective for made in tried)


def _from_least(bindings: Sequence[Expr], variables: list[Var], bounds: Bounds) -> list[Expr] | None:
    """Returns each of *bindings* minus its least value over *variables*; None if one of these is not known."""
    rests = []
    for b in bindings:
        found = extremes(b, variables, bounds)
        if found is None:
            return None
        rests.append(simplify(b - found[0], bounds))
    return rests


def _counted_from_zero(
    rests: list[Expr], variables: dict[Var, Expr], extents: list[Expr], bounds: Bounds
) -> IterMap | None:
    """Returns the map for loops that start at 0 instead of at a constant, with the same ends; None if there are none.

    An index `(i + 3) // 6` of a loop over 27 values, such as the later part of a split loop, becomes `i // 6` of one over 30.
    If the instances of more iterations are distinct, those of these iterations are, too.
    """
    counted = dict(variables)
    for n in dict.fromkeys(n for r in rests for n in post_order(r)):
        if not (isinstance(n, Add) and isinstance(n.a, Var) and isinstance(n.b, Const) and int(n.b.value) > 0):
            continue
        var, begin = n.a, n.b
        if var not in variables or counted[var] is not variables[var]:
            continue
        counted[var] = simplify(counted[var] + begin, bounds)
        within = bounds.bind(var, begin, counted[var] - ONE)
        rests = [simplify(substitute(r, {var: var - begin}), within) for r in rests]
        bounds = bounds.bind(var, ZERO, counted[var] - ONE)
    return None if counted == variables else detect_iter_map(rests, counted, TRUE, extents, bounds)


def reduces_all(fn: Function, path: Path) -> bool:
    """Tells whether the loops on *path* run the block at its end for all values of its reduce axes."""
    block = the_block(path)
    reduced = [(a, b) for a, b in zip(block.axes, block.bindings, strict=True) if a.kind is AxisKind.REDUCE]
    if not reduced:
        return True
    domain = domain_of(block, loops_on(path), bounds_on(path, fn))
    used = loops_in([b for _, b in reduced], list(domain.loops))
    guard = [c for c in domain.guard if any(v in used for v in free_vars(c))]
    made = domain.detect([b for _, b in reduced], used, guard, [a.extent for a, _ in reduced])
    return made is not None and made.surjective


def mixed_loops(path: Path) -> list[For]:
    """Returns the loops on which both a spatial and a non-spatial axis of the block at the end of *path* depend."""
    block = the_block(path)
    bound = list(zip(block.axes, block.bindings, strict=True))
    spatial = {v for a, b in bound if a.kind is AxisKind.SPATIAL for v in free_vars(b)}
    others = {v for a, b in bound if a.kind is not AxisKind.SPATIAL for v in free_vars(b)}
    return [f for f in loops_on(path) if f.var in spatial and f.var in others]


def starts_first(path: Path) -> bool:
    """Tells whether a reduction's first instance is the first iteration of its loops, in whatever order they are nested."""
    block = the_block(path)
    reduced = [b for a, b in zip(block.axes, block.bindings, strict=True) if a.kind is AxisKind.REDUCE]
    at_zero = [simplify(substitute(b, dict.fromkeys(free_vars(b), ZERO))) for b in reduced]
    return not mixed_loops(path) and all(z is ZERO for z in at_zero)
