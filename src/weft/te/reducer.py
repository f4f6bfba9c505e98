"""Reductions: commutative reducers and their use at the top of a formula.

A reducer combines two tuples of values into one, and has an identity. `sum_`, `max_`, `min_`, `prod`, `argmax`, `argmin`, `any_`
and `all_` are given; `reducer(...)` makes others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.ir import FALSE, INDEX, TRUE, Expr, ExprLike, Var, apply, as_expr, const, eq, maximum, minimum, select
from weft.support.dtypes import DType
from weft.support.errors import TypeMismatch

Values = tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Reducer:
    """A commutative, associative way to combine values: `combine(a, b)` of two tuples, and `identity(types)`."""

    name: str
    combine: Callable[[Values, Values], Values]
    identity: Callable[[tuple[DType, ...]], Values]

    def __call__(self, values: Expr | Sequence[Expr], axes: Sequence[ReduceAxis], where: Expr = TRUE) -> Reduction:
        """Reduces *values* over *axes*, where the condition holds."""
        given = (values,) if isinstance(values, Expr) else tuple(values)
        return Reduction(self, given, tuple(axes), where)


class ReduceAxis(Var):
    """An index variable that runs over `0 .. extent - 1` inside a reduction."""

    __slots__ = ("extent",)
    extent: Expr

    def __init__(self, name: str, extent: Expr) -> None:
        super().__init__(name, INDEX)
        object.__setattr__(self, "extent", extent)


@dataclass(frozen=True, eq=False)
class Reduction:
    """*values* combined by *reducer* over all values of *axes* for which *condition* holds."""

    reducer: Reducer
    values: Values
    axes: tuple[ReduceAxis, ...]
    condition: Expr

    def __post_init__(self) -> None:
        if not self.axes or not all(isinstance(a, ReduceAxis) for a in self.axes):
            raise TypeMismatch(f"{self.reducer.name} needs at least one reduce_axis()")

    def identity(self) -> Values:
        """Returns the values that a reduction starts from."""
        return self.reducer.identity(tuple([v.dtype for v in self.values]))


def reduce_axis(extent: ExprLike, name: str = "k") -> ReduceAxis:
    """Declares an axis to reduce over, of *extent* values."""
    return ReduceAxis(name, as_expr(extent, INDEX))


def reducer(
    combine: Callable[[Values, Values], Values], identity: Callable[[tuple[DType, ...]], Values], name: str = "reduce"
) -> Reducer:
    """Makes a reducer; *combine* must be commutative and associative, and *identity* neutral for it."""
    return Reducer(name, combine, identity)


def lowest(dtype: DType) -> Expr:
    """Returns the smallest value of *dtype*: minus infinity for floats."""
    return (
        const(float("-inf"), dtype) if dtype.is_float else FALSE if dtype.is_bool else const(dtype.int_range[0], dtype)
    )


def highest(dtype: DType) -> Expr:
    """Returns the largest value of *dtype*: infinity for floats."""
    return const(float("inf"), dtype) if dtype.is_float else TRUE if dtype.is_bool else const(dtype.int_range[1], dtype)


def _best(better: Callable[[Expr, Expr], Expr]) -> Callable[[Values, Values], Values]:
    """Combines (index, value) pairs: the better value wins, the smaller index among equals."""

    def combine(a: Values, b: Values) -> Values:
        takes_b = better(b[1], a[1]) | (eq(b[1], a[1]) & (b[0] < a[0]))
        return select(takes_b, b[0], a[0]), select(takes_b, b[1], a[1])

    return combine


sum_ = Reducer("sum", lambda a, b: (a[0] + b[0],), lambda t: (const(0, t[0]),))
prod = Reducer("prod", lambda a, b: (a[0] * b[0],), lambda t: (const(1, t[0]),))
max_ = Reducer("max", lambda a, b: (maximum(a[0], b[0]),), lambda t: (lowest(t[0]),))
max_number = Reducer("max_number", lambda a, b: (apply("max_number", a[0], b[0]),), lambda t: (lowest(t[0]),))
min_ = Reducer("min", lambda a, b: (minimum(a[0], b[0]),), lambda t: (highest(t[0]),))
any_ = Reducer("any", lambda a, b: (a[0] | b[0],), lambda t: (FALSE,))
all_ = Reducer("all", lambda a, b: (a[0] & b[0],), lambda t: (TRUE,))
argmax = Reducer("argmax", _best(lambda x, y: y < x), lambda t: (const(t[0].int_range[1], t[0]), lowest(t[1])))
argmin = Reducer("argmin", _best(lambda x, y: x < y), lambda t: (const(t[0].int_range[1], t[0]), highest(t[1])))
