"""Reductions over dimensions by a known function, or by any region that is associative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.ops.elementwise import combine
from weft.frontends.jax.ops.reducers import place_of_extreme, reducer_of
from weft.frontends.jax.registry import translates
from weft.graph import Array, Constant, Value
from weft.graph.builder import CompileTimeConstant, Operand
from weft.ir import ONE
from weft.support.dtypes import DType, bool_, u8

Combine: TypeAlias = Callable[[Sequence[Operand], Sequence[Operand]], list[Operand]]

OPERATORS: Final = {"add": "reduce_sum", "multiply": "reduce_prod", "maximum": "reduce_max", "minimum": "reduce_min"}
_OF_TRUTHS: Final = {"add": "reduce_max", "or": "reduce_max", "and": "reduce_min", "multiply": "reduce_min"}
_OF_TRUTHS_TOO: Final = {"maximum": "reduce_max", "minimum": "reduce_min"}


@translates("reduce")
def reduce(c: Call) -> tuple[Operand, ...]:
    """Combines the elements along dimensions with one another, and with the first values."""
    count = len(c.operands) // 2
    given, initial = c.operands[:count], c.operands[count:]
    if count == 0 or len(initial) != count:
        c.fail("it should have a first value for each operand", AGAIN)
    axes = tuple(sorted(c.dims("dimensions")))
    if max(axes, default=-1) >= given[0].rank:
        c.fail(f"its dimensions {list(axes)} are not those of {given[0]!r}", AGAIN)
    name = reducer_of(c) if count == 1 else None
    operator = _operator(name, given[0].dtype)
    if operator is not None and name is not None:
        return (_with_first(c, name, _reduced(c, operator, given[0], axes), initial[0]),)
    direction = place_of_extreme(c.operation.regions[0]) if count == 2 and c.operation.regions else None
    if direction is not None and len(axes) == 1 and _counts(given[1], axes[0]):
        return _extreme(c, given[0], axes[0], direction)
    return tuple(_by_region(c, given, initial, axes))


def _operator(name: str | None, dtype: DType) -> str | None:
    if name is None:
        return None
    return {**_OF_TRUTHS, **_OF_TRUTHS_TOO}.get(name) if dtype is bool_ else OPERATORS.get(name)


def _reduced(c: Call, operator: str, x: Operand, axes: tuple[int, ...]) -> Operand:
    """Returns *x* reduced over *axes*; truth values as 0 and 1."""
    if not axes:
        return x
    made = c.add(operator, c.cast(x, u8) if x.dtype is bool_ else x, axes=axes, keepdims=False)
    return c.cast(made, x.dtype)


def _with_first(c: Call, name: str, made: Operand, first: Operand) -> Operand:
    """Returns a result combined with the first value, unless that changes nothing."""
    return made if is_neutral(first, name) else combine(c, name, made, first)


def is_neutral(first: Operand, name: str) -> bool:
    """Tells whether combining with a value by an operation certainly changes nothing."""
    if not isinstance(first, CompileTimeConstant) or first.symbolic or first.array.size != 1:
        return False
    value = neutral(name, first.dtype)
    return value is not None and bool(first.array.reshape(-1)[0] == value)


def neutral(name: str, dtype: DType) -> Array | None:
    """Returns the number that changes nothing in an operation; None where there is none."""
    if name in ("add", "or", "xor"):
        return np.zeros((), dtype.numpy)
    if name == "multiply" or (name == "and" and dtype is bool_):
        return np.ones((), dtype.numpy)
    if dtype is bool_:
        return {"maximum": np.zeros((), np.bool_), "minimum": np.ones((), np.bool_)}.get(name)
    if dtype.is_int:
        limits: Any = np.iinfo(dtype.numpy)
        return {"maximum": np.asarray(limits.min), "minimum": np.asarray(limits.max)}.get(name)
    return {"maximum": np.asarray(-np.inf), "minimum": np.asarray(np.inf)}.get(name)


def _counts(x: Operand, axis: int) -> bool:
    """Tells whether *x* is known to have the numbers 0, 1 ... along *axis*."""
    if isinstance(x, CompileTimeConstant):
        return not x.symbolic and _are_counted(x.array, axis)
    while x.producer is not None and x.producer.operator.name in ("expand", "reshape", "cast"):
        (found,) = x.producer.inputs
        row = {"expand": found, "reshape": x}.get(x.producer.operator.name)
        if found is None or (row is not None and not _lies_along(row, axis)):
            return False
        x = found
    if isinstance(x, Constant):
        return bool((x.array.reshape(-1) == np.arange(x.array.size)).all())
    return x.producer is not None and x.producer.operator.name == "range" and x.producer.attribute("start") == 0


def _are_counted(a: Array, axis: int) -> bool:
    shape = [-1 if d == axis else 1 for d in range(a.ndim)]
    return bool((a == np.arange(a.shape[axis]).reshape(shape)).all())


def _lies_along(x: Value, axis: int) -> bool:
    """Tells whether *x* is of size one along all dimensions but *axis*."""
    return all(s is ONE or d == axis for d, s in enumerate(x.shape))


def _extreme(c: Call, x: Operand, axis: int, direction: str) -> tuple[Operand, Operand]:
    """Returns the largest or smallest elements along an axis, and where the first of them are."""
    largest, kept = direction == "GT", x.dtype
    x = c.cast(x, u8) if kept is bool_ else x
    values = c.add("reduce_max" if largest else "reduce_min", x, axes=(axis,), keepdims=False)
    place = c.add("argmax" if largest else "argmin", x, axis=axis, keepdims=False, last=False)
    return c.cast(values, kept), c.cast(place, c.result_dtype(1))


def _by_region(c: Call, given: Sequence[Operand], initial: Sequence[Operand], axes: Sequence[int]) -> list[Operand]:
    """Returns a reduction by the operation's region: halves are combined with one another, until one element is left."""
    values = list(given)
    for d in reversed(axes):
        values = _halved(c, values, d)
    return _combined(c, values, initial)


def _combined(c: Call, left: Sequence[Operand], right: Sequence[Operand]) -> list[Operand]:
    applies = c.operation.attributes.get("applies")
    if isinstance(applies, str):
        name = applies.rpartition(".")[2]
        if name not in ("and", "or", "xor", *OPERATORS):
            c.fail(f"reductions by {applies} are not supported", "reduce by add, multiply, maximum or minimum")
        return [combine(c, name, left[0], right[0])]
    return c.region(0, [*left, *right])


def _halved(c: Call, values: list[Operand], d: int) -> list[Operand]:
    """Returns tensors reduced along dimension *d*, in as many steps as the size has binary digits."""
    size = c.static(values[0])[d]
    if size == 0:
        c.fail("it reduces nothing by a function of its own", "reduce one element or more")
    while size > 1:
        half = size // 2
        left, right = (_pieces(c, values, d, k * half, (k + 1) * half) for k in (0, 1))
        rest = _pieces(c, values, d, 2 * half, size)
        made = _combined(c, left, right)
        values = [c.add("concat", m, r, axis=d) for m, r in zip(made, rest, strict=True)] if size % 2 else made
        size -= half
    return [c.reshape(v, [*v.shape[:d], *v.shape[d + 1 :]]) for v in values]


def _pieces(c: Call, values: Sequence[Operand], d: int, start: int, end: int) -> list[Operand]:
    return [c.add("slice", v, starts=(start,), ends=(end,), axes=(d,), steps=(1,)) for v in values]
