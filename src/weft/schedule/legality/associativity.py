"""Reading a reduction's update as a combination of its results with new values, by operators known to be associative.

S[i] = S[i] + X[i, k]                                          a sum of X[i, k]
T[i] = select(V[i] < X[i, k] or ..., k, T[i])                  the place of the largest X[i, k], and
V[i] = select(V[i] < X[i, k] or ..., X[i, k], V[i])            the largest itself
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from weft.ir import (
    Add,
    And,
    Apply,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Expr,
    Max,
    Min,
    Mul,
    Or,
    Select,
    Var,
    const,
    eq,
    select,
    substitute,
)
from weft.loop import Block, Let, Load, Seq, Stmt, Store, loads, seq
from weft.schedule.cursors.state import refuse
from weft.support.dtypes import DType

Values = Sequence[Expr]
Combine = Callable[[Values, Values], list[Expr]]

_IDEMPOTENT: Final = (Max, Min, And, Or, BitAnd, BitOr)
_IDEMPOTENT_FUNCTIONS: Final = frozenset({"max_number"})
_NEUTRAL: Final[dict[type[Expr], int]] = {Add: 0, Mul: 1, BitXor: 0}


@dataclass(frozen=True)
class Combination:
    """The update of a reduction: each result's store, the values it stores, and the operator, results and values to results.

    *neutral* has for each result the initial value of partial results; None means the result's own initial value, for operators
    to which it makes no difference how often that is combined (such as `max`).
    """

    stores: tuple[Store, ...]
    combine: Combine
    neutral: tuple[Expr | None, ...]


def combination_of(block: Block) -> Combination:
    """Returns how the results of *block* are combined; refuses an operator that is not known to be associative."""
    stores = assignments(block, block.body)
    results = [Load(s.buffer, s.indices) for s in stores]
    values = [_unguarded(s.value, r, results) for s, r in zip(stores, results, strict=True)]
    found = _elementwise(values, results) or _best(values, results)
    if found is None:
        known = "C = C op x for +, *, max, min, and, or, xor, nor the place and the value of a largest or smallest"
        refuse(f"{block.name} is not of the form {known}", block, "write the reduction with one of these operators")
    return Combination(tuple(stores), *found)


def assignments(block: Block, root: Stmt) -> list[Store]:
    """Returns the stores that *root*, a part of *block*, consists of, with values of `let` substituted; refuses another form."""
    named: dict[Var, Expr] = {}
    while isinstance(root, Let):
        named[root.var] = substitute(root.value, named)
        root = root.body
    parts = root.body if isinstance(root, Seq) else (root,)
    stores = [s for s in parts if isinstance(s, Store) and s.mask is None]
    written = {s.buffer for s in stores}
    late = len(stores) > 1 and any(x.buffer in written for s in stores for x in loads(s.value))
    if len(stores) != len(parts) or len(written) != len(stores) or late:
        refuse(
            f"{block.name} is not an assignment to each of its results",
            block,
            "give each result one assignment, with values worked out before",
        )
    return [Store(s.buffer, s.indices, substitute(s.value, named), None) for s in stores]


def assign(stores: Sequence[Store]) -> Stmt:
    """Returns the statement that makes all of *stores*; all values are computed before the first is stored."""
    if len(stores) == 1:
        return stores[0]
    names = [Var(f"{s.buffer.name}_new", s.value.dtype) for s in stores]
    body = seq(*[Store(s.buffer, s.indices, v, None) for s, v in zip(stores, names, strict=True)])
    for s, v in zip(reversed(stores), reversed(names), strict=True):
        body = Let(v, s.value, body)
    return body


def _unguarded(value: Expr, result: Expr, results: Values) -> Expr:
    """Returns the value stored under a condition that does not depend on the results; elsewhere the result stays unchanged."""
    is_guard = isinstance(value, Select) and value.other is result and _is_apart(value.cond, results)
    return value.then if is_guard and isinstance(value, Select) else value


def _is_apart(e: Expr, results: Values) -> bool:
    """Tells whether *e* reads none of the buffers of *results*."""
    buffers = {r.buffer for r in results if isinstance(r, Load)}
    return all(x.buffer not in buffers for x in loads(e))


def _elementwise(values: Values, results: Values) -> tuple[Combine, tuple[Expr | None, ...]] | None:
    """Matches results that are each combined by an operator, or a function of two operands, of its own."""
    ops: list[Callable[[Expr, Expr], Expr]] = []
    for value, result in zip(values, results, strict=True):
        found = _applied(value)
        if found is None:
            return None
        op, a, b = found
        x = b if a is result else a if b is result else None
        if x is None or not _is_apart(x, results):
            return None
        ops.append(op)
    neutral = [_neutral(type(v), v.dtype) if type(v) in _NEUTRAL else None for v in values]
    return lambda a, b: [op(x, y) for op, x, y in zip(ops, a, b, strict=True)], tuple(neutral)


def _applied(e: Expr) -> tuple[Callable[[Expr, Expr], Expr], Expr, Expr] | None:
    """Returns the function that *e* applies, if that is known to be associative, and its two operands."""
    if isinstance(e, Apply) and e.fn in _IDEMPOTENT_FUNCTIONS:
        fn = e.fn
        return lambda a, b: Apply(fn, (a, b)), e.args[0], e.args[1]
    return (type(e), e.a, e.b) if isinstance(e, Binary) and type(e) in (*_IDEMPOTENT, *_NEUTRAL) else None


def _neutral(op: type[Expr], dtype: DType) -> Expr:
    """Returns the neutral element: -0.0 for sums of floats, as adding 0.0 would turn -0.0 into 0.0."""
    return const(-0.0 if op is Add and dtype.is_float else _NEUTRAL[op], dtype)


def _best(values: Values, results: Values) -> tuple[Combine, tuple[Expr | None, ...]] | None:
    """Matches an argmax or argmin, which keeps the better of two (value, index) pairs, of equal values that of smaller index."""
    if len(values) != 2 or not all(
        isinstance(v, Select) and v.other is r for v, r in zip(values, results, strict=True)
    ):
        return None
    first, second = values
    if not (isinstance(first, Select) and isinstance(second, Select) and first.cond is second.cond):
        return None
    new = [first.then, second.then]
    if not all(_is_apart(x, results) for x in new):
        return None
    for place, key in permutations((0, 1)):
        for largest in (True, False):
            if _wins(results, new, place, key, largest=largest) is first.cond:
                return _keep_best(place, key, largest=largest), (None, None)
    return None


def _wins(a: Values, b: Values, place: int, key: int, *, largest: bool) -> Expr:
    """Returns the condition under which the pair *b* replaces *a*."""
    better = a[key] < b[key] if largest else b[key] < a[key]
    return better | (eq(b[key], a[key]) & (b[place] < a[place]))


def _keep_best(place: int, key: int, *, largest: bool) -> Combine:
    def combine(a: Values, b: Values) -> list[Expr]:
        wins = _wins(a, b, place, key, largest=largest)
        return [select(wins, y, x) for x, y in zip(a, b, strict=True)]

    return combine
