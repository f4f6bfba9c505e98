"""From the adjoints of results back to those of the tensors they are computed from: reverse mode over operations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

from weft.ir import (
    EMPTY,
    ONE,
    TRUE,
    ZERO,
    Bounds,
    Expr,
    Var,
    all_of,
    cast,
    conjuncts,
    const,
    free_vars,
    post_order,
    prove,
    select,
    simplify,
    substitute,
)
from weft.support.dtypes import DType
from weft.support.errors import GradientError
from weft.te.adjoints import Adjoint, Contribution, contributions, formulas, wide
from weft.te.inverse import preimage
from weft.te.reducer import ReduceAxis, Reduction, sum_
from weft.te.scattering import Scatter
from weft.te.tensor import Compute, Operation, Tensor, compute, reads_of, topological

Key: TypeAlias = tuple[Operation, int]
Rule: TypeAlias = Callable[[Operation, Sequence[Adjoint | None], Callable[[Tensor], bool]], Iterable[Contribution]]
"""Gives the contributions of an operation, from the adjoints of its outputs, to the adjoints of the tensors that are wanted."""


def key_of(t: Tensor) -> Key:
    """Returns the key that identifies a tensor."""
    return t.op, t.index


def reading(t: Tensor) -> Adjoint:
    """Returns the adjoint that *t* holds."""
    return lambda where: t[tuple(where)]


def formula_rule(
    op: Operation, heads: Sequence[Adjoint | None], wanted: Callable[[Tensor], bool]
) -> Iterable[Contribution]:
    """Gives the contributions of a formula; refuses any other operation."""
    if not isinstance(op, Compute):
        raise GradientError(f"there is no gradient of {op.name}, which is not a formula", hint="compute it by formulas")
    return contributions(op, heads, wanted)


def backward(
    heads: Sequence[tuple[Tensor, Adjoint]],
    targets: Sequence[Tensor],
    rule: Rule,
    *,
    through: bool = True,
    constants: Sequence[Tensor] = (),
) -> list[Tensor | None]:
    """Returns the adjoints of *targets*, given those of some results; None for one that no result depends on.

    Unless *through* is set, no adjoint flows from a target to the tensors that it is computed from. The inputs of *constants*
    get no adjoints through them.
    """
    state = _Backward(heads, targets, {t.op for t in constants})
    for op in reversed(state.order):
        is_end = any(key_of(t) in state.ends for t in op.outputs)
        if op not in state.readers or (is_end and not through):
            continue
        adjoints = [state.adjoint(t) for t in op.outputs]
        for c in rule(op, adjoints, state.is_active) if any(adjoints) else ():
            state.adding.setdefault(key_of(c.tensor), []).append(c)
    return [state.tensor(t) for t in targets]


class _Backward:
    """The adjoints so far."""

    def __init__(
        self, heads: Sequence[tuple[Tensor, Adjoint]], targets: Sequence[Tensor], constants: Collection[Operation]
    ) -> None:
        self.order = topological([t for t, _ in heads])
        self.given = {key_of(t): head for t, head in heads}
        self.ends = {key_of(t) for t in targets}
        self.active = set(self.ends)
        self.readers: set[Operation] = set()  # of active tensors
        self.adding: dict[Key, list[Contribution]] = {}
        self.made: dict[Key, Tensor | None] = {}
        for op in self.order:
            if op not in constants and any(self.is_active(t) for t in op.inputs):
                self.readers.add(op)
                self.active.update(key_of(t) for t in op.outputs)

    def is_active(self, t: Tensor) -> bool:
        """Tells whether *t* is a target, or depends on one."""
        return key_of(t) in self.active

    def adjoint(self, t: Tensor) -> Adjoint | None:
        """Returns the adjoint of *t*, all of whose readers have been visited."""
        head, added = self.given.get(key_of(t)), key_of(t) in self.adding
        if head is not None and not added:
            return head
        made = self.tensor(t)
        return None if made is None else reading(made)

    def tensor(self, t: Tensor) -> Tensor | None:
        """Returns the adjoint of *t* as a tensor, made once; None if it is zero."""
        key = key_of(t)
        if key not in self.made:
            head, added = self.given.get(key), self.adding.get(key, [])
            self.made[key] = _total(t, head, added) if head is not None or added else None
        return self.made[key]


def _total(t: Tensor, head: Adjoint | None, added: Sequence[Contribution]) -> Tensor:
    """Defines the adjoint of *t*: the sum of its given adjoint and the contributions of its readers.

    Those to elements that depend on data are added one after another, to the sum of all others.
    """
    of_data = [c for c in added if any(map(reads_of, c.indices))]
    if not of_data:
        return _gathered_sum(t, head, added, t.dtype)
    kept = wide(t.dtype)
    total = _gathered_sum(t, head, [c for c in added if c not in of_data], kept)
    for c in of_data:
        total = scattered(c, total)
    return total if kept is t.dtype else compute(t.shape, lambda *i: cast(total[i], t.dtype), f"d_{t.name}")


def _gathered_sum(t: Tensor, head: Adjoint | None, added: Sequence[Contribution], dtype: DType) -> Tensor:
    """Defines the sum, of *dtype*, of the adjoint *head* of *t* and of contributions that each element looks for."""
    names = [v.name for v in t.op.axes] if isinstance(t.op, Compute) else [f"i{d}" for d in range(t.rank)]
    element = [Var(n) for n in names]
    name, kept = f"d_{t.name}", wide(t.dtype)
    bounds = _bounds(t, element, added)
    parts = [gathered(c, element, bounds) for c in added]
    if head is None and len(parts) == 1 and kept is dtype:
        return formulas(t.shape, element, parts[0], name)[0]
    sums = [formulas(t.shape, element, p, name)[0][tuple(element)] for p in parts if isinstance(p, Reduction)]
    terms = [*[p for p in parts if isinstance(p, Expr)], *sums]
    if head is not None:
        terms.insert(0, cast(head(element), kept))
    total = terms[0] if terms else const(0, kept)
    for term in terms[1:]:
        total = total + term
    return formulas(t.shape, element, cast(total, dtype), name)[0]


def scattered(c: Contribution, base: Tensor) -> Tensor:
    """Defines *base* with the contributions of all instances added; those to one element by one index are summed before."""
    used = {n for i in c.indices for n in post_order(i) if n in c.variables}
    own = {v: e for v, e in c.variables.items() if v in used}
    among = {v: ReduceAxis(v.name, e) for v, e in c.variables.items() if v not in used}
    value, where = c.value, c.where
    if among:
        summed = sum_(substitute(value, among), tuple(among.values()), substitute(where, among))
        value, where = formulas(tuple(own.values()), tuple(own), summed, f"{base.name}_part")[0][tuple(own)], TRUE

    def update(*i: Expr) -> tuple[Sequence[Expr], Expr, Expr]:
        at = dict(zip(own, i, strict=True))
        return [substitute(e, at) for e in c.indices], substitute(value, at), substitute(where, at)

    return Scatter(base.name, base, tuple(own.values()), update, sum_, [v.name for v in own]).outputs[0]


def _bounds(t: Tensor, element: Sequence[Var], added: Sequence[Contribution]) -> Bounds:
    """Returns the bounds of the indices of an element, and of sizes, which are at least one."""
    bounds = EMPTY
    for e in (*t.shape, *[e for c in added for e in c.variables.values()]):
        for size in free_vars(e):
            bounds = bounds.bind(size, ONE, None)
    for v, e in zip(element, t.shape, strict=True):
        bounds = bounds.bind(v, ZERO, e - ONE)
    return bounds


def gathered(c: Contribution, element: Sequence[Var], bounds: Bounds) -> Expr | Reduction:
    """Returns the sum of the contributions of all instances to *element*: a reduction, unless there is at most one instance."""
    found = preimage(c.indices, element, c.variables, bounds)
    value = simplify(substitute(c.value, found.values), found.bounds)
    conditions = [simplify(substitute(k, found.values), found.bounds) for k in conjuncts(c.where)]
    where = all_of([*found.where, *[k for k in conditions if not prove(k, found.bounds)]])
    if not found.free:
        return select(where, value, const(0, value.dtype))
    axes = {v: ReduceAxis(v.name, extent) for v, extent in found.free.items()}
    return sum_(substitute(value, axes), tuple(axes.values()), substitute(where, axes))
