"""The iteration domain of a block: its loops' ranges narrowed to where its guard can hold, and the remaining part of the guard.

for i in range(0, 3):                        i in 0..1, j in 0..1
    for j in range(0, 4):             ->     and i*2 + j < 3
        if i*2 + j < 3 and j < 2 and i < 2: S(i, j)

Splits of splits produce such guards; only the remaining part needs the reasoning of `ir.affine.iter_map` and `flow_dependence`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.cost import CONDITION_ROUNDS
from weft.ir import (
    INDEX,
    ONE,
    TRUE,
    ZERO,
    Bounds,
    Const,
    Expr,
    FloorDiv,
    IterMap,
    Le,
    Lt,
    Monomial,
    Poly,
    Var,
    all_of,
    conjuncts,
    detect_iter_map,
    free_vars,
    index,
    poly_of,
    poly_to_expr,
    prove,
    simplify,
    substitute,
)
from weft.loop import Block, For


@dataclass(frozen=True, slots=True)
class Domain:
    """Some loops around a block, which runs only in their iterations within *bounds* for which *guard* holds."""

    loops: Mapping[Var, tuple[Expr, Expr]]
    """The first value of each, and how many there are."""
    guard: tuple[Expr, ...]
    bounds: Bounds

    def begin(self, var: Var) -> Expr:
        """Returns the first value of a loop."""
        return self.loops[var][0]

    def detect(
        self, bindings: Sequence[Expr], used: Sequence[Var], guard: Sequence[Expr], extents: Sequence[Expr]
    ) -> IterMap | None:
        """Returns how the loops *used* map to axes of *extents* where *guard* holds; None if that can't be told."""
        first = {v: v + self.begin(v) for v in used if self.begin(v) is not ZERO}
        if not all(isinstance(e, Const) for v in first for e in self.loops[v]):
            return None
        bounds = self.bounds
        for v in first:
            bounds = bounds.bind(v, ZERO, self.loops[v][1] - ONE)
        counted, condition = (
            [simplify(substitute(e, first), bounds) for e in es] if first else list(es) for es in (bindings, guard)
        )
        return detect_iter_map(counted, {v: self.loops[v][1] for v in used}, all_of(condition), extents, bounds)


def domain_of(block: Block, loops: Sequence[For], bounds: Bounds) -> Domain:
    """Returns the iterations of *loops*, around *block*, in which it may run; *bounds* has these loops and those around them."""
    known = {f.var: (f.begin, f.extent) for f in loops}
    if block.predicate is TRUE:
        return Domain(known, (), bounds)
    memo = bounds.memo_for("domain")
    key = (block.predicate, *known)
    if key not in memo:
        cut = _cut(known, conjuncts(block.predicate), bounds)
        # without *bounds* itself, which would be kept by its own memo: a cycle
        memo[key] = cut.loops, cut.guard, None if cut.bounds is bounds else cut.bounds
    loops_cut, guard, narrowed = memo[key]
    return Domain(loops_cut, guard, bounds if narrowed is None else narrowed)


def _cut(loops: dict[Var, tuple[Expr, Expr]], conditions: Sequence[Expr], bounds: Bounds) -> Domain:
    whole = Domain(loops, tuple(conditions), bounds)
    slacks = [poly_of(simplify(s, bounds)) for c in conditions if (s := slack_of(c)) is not None]
    ends = {
        v: (int(b.value), int(b.value) + int(n.value) - 1)
        for v, (b, n) in loops.items()
        if isinstance(b, Const) and isinstance(n, Const)
    }
    first = dict(ends)
    for _ in range(CONDITION_ROUNDS):
        before = dict(ends)
        for p in slacks:
            _tighten(p, ends, bounds)
        if ends == before:
            break
        if any(low > high for low, high in ends.values()):  # it never runs
            return whole
        for v, (low, high) in ends.items():
            if before[v] != (low, high):
                bounds = bounds.with_range(v, index(low), index(high))
    cut = {v: (index(low), index(high - low + 1)) for v, (low, high) in ends.items() if first[v] != (low, high)}
    return Domain(loops | cut, tuple(_needed(conditions, bounds)), bounds)


def _tighten(slack: Poly, ends: dict[Var, tuple[int, int]], bounds: Bounds) -> None:
    """Narrows the *ends* of each loop that is a term of *slack*, alone or divided, so that *slack* can be positive."""
    for m, k in slack.items():
        for v, step in _counted(m):
            if v not in ends:
                continue
            most = bounds.of(poly_to_expr({x: c for x, c in slack.items() if x is not m}, INDEX)).hi
            if most is None:
                continue
            low, high = ends[v]
            if k < 0:  # -k * (v // step) <= most - 1
                high = min(high, ((most - 1) // -k) * step + step - 1)
            else:
                low = max(low, -((most - 1) // k) * step)
            ends[v] = low, high


def _counted(m: Monomial) -> Iterator[tuple[Var, int]]:
    """Yields the variable v of a monomial `v` or `v // step`, and the step (1 for the former)."""
    if len(m) != 1:
        return
    match m[0]:
        case Var():
            yield m[0], 1
        case FloorDiv(Var() as v, Const(step)) if int(step) > 0:
            yield v, int(step)


def _needed(conditions: Sequence[Expr], bounds: Bounds) -> list[Expr]:
    """Returns *conditions* without those that always hold within *bounds*, or wherever another one does."""
    kept = [c for c in conditions if not prove(c, bounds)]
    for c in list(kept):
        if any(_implies(other, c, bounds) for other in kept if other is not c):
            kept.remove(c)
    return kept


def _implies(a: Expr, b: Expr, bounds: Bounds) -> bool:
    """Tells whether *b* holds wherever *a* does, since some multiple of its slack is never less than that of *a*."""
    x, y = slack_of(a), slack_of(b)
    if x is None or y is None:
        return False
    of_x, of_y = poly_of(simplify(x, bounds)), poly_of(simplify(y, bounds))
    shared = next((m for m in of_y if m and m in of_x), None)
    if shared is None or of_x[shared] % of_y[shared] or of_x[shared] // of_y[shared] <= 0:
        return False
    return prove(y * index(of_x[shared] // of_y[shared]) >= x, bounds)


def slack_of(c: Expr) -> Expr | None:
    """Returns a number that is at least one exactly where the condition *c* holds; None for one of another form."""
    if isinstance(c, Lt):
        return c.b - c.a
    return c.b - c.a + ONE if isinstance(c, Le) else None


def loops_in(es: Sequence[Expr], among: Sequence[Var]) -> list[Var]:
    """Returns those variables of *among* that *es* mention."""
    used = {v for e in es for v in free_vars(e)}
    return [v for v in among if v in used]
