"""How operators are evaluated at compile time: NumPy functions that stand beside the operators' formulas.

    @operator("less", fold=comparison(np.less, Lt))

Models compute shapes with their own operators (Shape, Gather, Mul, Concat, then Reshape). A fold computes such a call on arrays
of numbers and, where a symbolic size takes part, on arrays of objects: integers and index expressions. Its result is that of the
formula; it raises `NotFoldable` where the result depends on the symbolic sizes in a way that no index expression states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from weft.ir import Const, Expr, ExprLike, as_expr, prove
from weft.ops.shapes import is_tractable, same_size, simplify_size, size_bounds

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

LARGEST_FOLD: Final = 4096
"""Elements up to which a call is evaluated while a model is imported; larger ones are left to the graph's constant folding."""


class NotFoldable(Exception):
    """The call can't be evaluated at compile time, or had better not be: it must become a node of the graph."""


@dataclass(frozen=True)
class Fold:
    """The evaluation of an operator at compile time: *compute* maps arrays and attributes to an array or a list of arrays.

    The result has the element type of operand *typed_by*; for None it has that of the attribute `dtype`, or that of the array
    computed. Where an operand holds symbolic sizes, those of an operator *on_sizes* are given as arrays of objects, all of them
    whole numbers; *compute_float_sizes* then takes the place of *compute* for sizes that the model has converted to floats.
    Optional operands that are absent are None; there are none but for an operator that *takes_absent* ones.
    """

    compute: Callable[..., Any]
    typed_by: int | None = 0
    on_sizes: bool = False
    compute_float_sizes: Callable[..., Any] | None = None
    takes_absent: bool = False


def elementwise(
    numbers: Callable[..., Any],
    sizes: Callable[..., Any] | None = None,
    float_sizes: Callable[..., Any] | None = None,
    typed_by: int | None = 0,
) -> Fold:
    """Evaluates an element-wise operator: *numbers* on arrays, *sizes* on one element of each operand where one is symbolic.

    An operator without *sizes* is not evaluated on symbolic ones. *float_sizes* is its meaning on sizes converted to floats.
    """
    by_float = None if float_sizes is None else _on_arrays(numbers, float_sizes)
    return Fold(_on_arrays(numbers, sizes), typed_by, sizes is not None, by_float)


def comparison(numbers: Callable[..., Any], compare: Callable[[Expr, Expr], Expr]) -> Fold:
    """Evaluates a comparison, which must be decided for all values of the symbolic sizes."""
    compute = _on_arrays(numbers, _decided(compare))
    return Fold(lambda *arrays: compute(*arrays).astype(np.bool_), typed_by=None, on_sizes=True)


def reduction(numbers: Callable[..., Any], combine: Callable[[Any, Any], Any]) -> Fold:
    """Evaluates a reduction over axes; symbolic sizes are combined one by one, where they are a vector."""

    def compute(a: Array, *, axes: Any = None, keepdims: bool = True) -> Array:
        if a.size == 0:
            raise NotFoldable
        if a.dtype != object:
            return np.asarray(numbers(a, axis=axes if axes is None else tuple(axes), keepdims=keepdims))
        if a.ndim != 1 or axes == ():
            raise NotFoldable
        total = a.flat[0]
        for e in list(a.flat)[1:]:
            total = combine(total, e)
        out = np.empty((1,) if keepdims else (), object)
        out[...] = total
        return out

    return Fold(compute)


def _on_arrays(numbers: Callable[..., Any], sizes: Callable[..., Any] | None) -> Callable[..., Array]:
    """Applies *numbers* to arrays broadcast together, or *sizes* element by element where one holds objects."""

    def compute(*arrays: Array, **attributes: Any) -> Array:
        check_spread(*arrays)
        if not any(a.dtype == object for a in arrays):
            return np.asarray(numbers(*arrays, **attributes))
        if sizes is None:
            raise NotFoldable
        spread = np.broadcast_arrays(*arrays)
        out = np.empty(spread[0].shape, object)
        for at in np.ndindex(out.shape):
            out[at] = sizes(*[a[at] for a in spread])
        return out

    return compute


def _decided(compare: Callable[[Expr, Expr], Expr]) -> Callable[[Any, Any], bool]:
    def decide(a: Any, b: Any) -> bool:
        condition = compare(as_expr(a), as_expr(b))
        if is_certain(condition):
            return True
        if is_certain(~condition):
            return False
        raise NotFoldable

    return decide


def is_certain(condition: Expr) -> bool:
    """Tells whether *condition* certainly holds, given that symbolic sizes are at least one."""
    return prove(condition, size_bounds(condition))


def check_spread(*arrays: Array) -> None:
    """Raises `NotFoldable` for arrays that are large when broadcast together; `ValueError` where they don't broadcast."""
    check_count(math.prod(np.broadcast_shapes(*[a.shape for a in arrays])))


def check_count(elements: int) -> None:
    """Raises `NotFoldable` for more elements than are computed while a model is imported."""
    if elements > LARGEST_FOLD:
        raise NotFoldable


def integers(values: Sequence[Any]) -> list[int]:
    """Returns *values*, all of which are to be integers; raises `NotFoldable` where one is symbolic."""
    if not all(isinstance(v, int) for v in values):
        raise NotFoldable
    return list(values)


def static_sizes(shape: Sequence[Any]) -> list[int]:
    """Returns sizes as integers; raises `NotFoldable` where one is symbolic."""
    return integers([settled(s) for s in shape])


def settled(e: Any) -> Any:
    """Returns an element simplified, as a Python integer where it is constant; raises `NotFoldable` for one too large."""
    if isinstance(e, int | np.integer | np.bool_) and not is_tractable(int(e)):
        raise NotFoldable
    if not isinstance(e, Expr):
        return int(e) if isinstance(e, int | np.integer | np.bool_) else e
    simple = simplify_size(e)
    if not is_tractable(simple):
        raise NotFoldable
    return simple.value if isinstance(simple, Const) else simple


# Arithmetic on elements that are integers or index expressions


def divide(a: Array, b: Array) -> Array:
    """Divides numbers, integers rounded towards zero."""
    if np.issubdtype(a.dtype, np.integer) and not np.all(b):
        raise NotFoldable
    return (np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(a.dtype) if a.dtype.kind in "iu" else a / b


def divide_sizes(a: ExprLike, b: ExprLike) -> ExprLike:
    """Divides sizes: rounding towards zero is rounding down where neither is negative."""
    if isinstance(a, int) and isinstance(b, int) and b != 0:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if not is_certain((as_expr(b) > 0) & (as_expr(a) >= 0)):
        raise NotFoldable
    return as_expr(a) // as_expr(b)


def divide_exactly(a: ExprLike, b: ExprLike) -> ExprLike:
    """Divides sizes that are floats, where nothing remains."""
    if not is_certain(as_expr(b) > 0) or not same_size(as_expr(a) // b * b, as_expr(a)):
        raise NotFoldable
    return as_expr(a) // as_expr(b)


def remainder_of_sizes(a: ExprLike, b: ExprLike) -> ExprLike:
    """Returns the remainder of sizes, the same by each rule where neither is negative."""
    if not is_certain((as_expr(b) > 0) & (as_expr(a) >= 0)):
        raise NotFoldable
    return as_expr(a) % as_expr(b)


def absolute_size(a: ExprLike) -> ExprLike:
    """Returns a size that is certainly not negative."""
    if not is_certain(as_expr(a) >= 0):
        raise NotFoldable
    return a
