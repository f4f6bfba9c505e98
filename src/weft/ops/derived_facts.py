"""Facts of an operator that are read off its formula, so that nobody states them a second time.

reshape(x, shape=(3, 8))     is a rename: element i of the result, counted row by row, is element i of x
add(a, b)                    is arithmetic: one `Add` of an element of each, which commutes
gelu(x)                      keeps numbers finite; exp(x) and log(x) do not
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

import numpy as np

from weft.ir import ZERO, Binary, Const, Expr, Var, const, free_vars, map_nodes, simplify, substitute
from weft.ops.shapes import flatten_index, same_size, size_bounds
from weft.ops.shapes import product as size_of
from weft.support.dtypes import DType, f16
from weft.support.errors import WeftError
from weft.te import Compute, Operation, Placeholder, Read, Tensor, reads_of, topological

_SIZE: Final = 8
"""The value that stands for an unknown size where a formula is evaluated at an index."""

_TERMS: Final = 64
"""Elements that are combined where a reduction is tried."""

_MOST_TRIALS: Final = 256
"""Combinations of operands that a formula is tried on."""

_UNITS: Final = (0.0, -0.0, 1.0, -1.0, 0.3, -0.7, 1e-4, -1e-4)


def is_rename(given: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> bool:
    """Tells whether the one output is the first input's elements, row by row in their order, under another shape."""
    x = given[0] if given else None
    op = outputs[0].op
    if x is None or len(outputs) != 1 or not isinstance(op, Compute) or op.reduction is not None:
        return False
    value = op.values[0]
    if not isinstance(value, Read) or value.tensor is not x or not same_size(size_of(x.shape), size_of(op.shape)):
        return False
    at_zero = {axis: ZERO for axis, size in zip(op.axes, op.shape, strict=True) if _known(size) == 1}
    bounds = size_bounds(*x.shape, *op.shape)
    for axis, size in zip(op.axes, op.shape, strict=True):
        bounds = bounds.bind(axis, 0, size - 1)
    read, own = (substitute(flatten_index(i, t), at_zero) for i, t in ((value.indices, x.shape), (op.axes, op.shape)))
    return simplify(read, bounds) is simplify(own, bounds)


def arithmetic_of(given: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> type[Binary] | None:
    """Returns the class of the node that the formula applies to its two operands, in their order; None for any other formula."""
    op = outputs[0].op
    if len(given) != 2 or len(outputs) != 1 or not isinstance(op, Compute) or op.reduction is not None:
        return None
    value = op.values[0]
    if not isinstance(value, Binary):
        return None
    operands = [e.tensor if isinstance(e, Read) else None for e in (value.a, value.b)]
    return type(value) if operands == list(given) else None


def keeps_finite(outputs: Sequence[Tensor]) -> bool:
    """Tells whether finite operands of either sign and any moderate size give finite results.

    Each stage of the formula is evaluated on such numbers, at one index in the middle; of a reduction, so is the expression that
    combines elements, over and over.
    """
    stages = [op for op in topological(outputs) if not isinstance(op, Placeholder)]
    types = [t.dtype for op in stages for t in (*op.inputs, *outputs)]
    if not any(t.is_float for t in types):
        return True
    largest = 2.0**6 if f16 in types else 2.0**40
    numbers = (*_UNITS, largest, -largest)
    try:
        return all(_stays_finite(op, numbers) for op in stages)
    except (ArithmeticError, ValueError, WeftError):
        return False


def _stays_finite(op: Operation, numbers: Sequence[float]) -> bool:
    if not isinstance(op, Compute):
        return False
    at: dict[Var, Expr] = {
        axis: const((_known(n) or _SIZE) // 2, axis.dtype) for axis, n in zip(op.axes, op.shape, strict=True)
    }
    if op.reduction is not None:
        at |= {axis: const((_known(axis.extent) or _SIZE) // 2, axis.dtype) for axis in op.reduction.axes}
        if not _combines_finite(op, numbers):
            return False
    return all(_is_finite_on(value, at, numbers) for value in op.values)


def _is_finite_on(value: Expr, at: Mapping[Var, Expr], numbers: Sequence[float]) -> bool:
    """Tells whether a formula's *value* is finite for all combinations of *numbers* in place of the elements it reads."""
    if not value.dtype.is_float:
        return True
    read = reads_of(value)
    few = numbers if len(numbers) ** len(read) <= _MOST_TRIALS else (numbers[0], numbers[3], numbers[-2], numbers[-1])
    if len(few) ** len(read) > _MOST_TRIALS:
        return False
    places = {r: Var(f"e{k}", r.dtype) for k, r in enumerate(read)}
    formula = map_nodes(value, lambda n: places.get(n) if isinstance(n, Read) else None)
    sizes = {v: const(_SIZE, v.dtype) for v in free_vars(formula) if v not in at and v not in places.values()}
    formula = simplify(substitute(formula, {**at, **sizes}))
    return all(
        _is_finite(
            substitute(formula, {v: _constant(x, v.dtype) for v, x in zip(places.values(), chosen, strict=True)})
        )
        for chosen in product(few, repeat=len(read))
    )


def _combines_finite(op: Compute, numbers: Sequence[float]) -> bool:
    """Tells whether many elements of one of *numbers* are combined to a finite result."""
    assert op.reduction is not None  # asked for by the caller
    reduction = op.reduction
    for x in numbers:
        element = tuple([_constant(x, v.dtype) for v in op.values])
        total = element
        for _ in range(_TERMS):
            total = tuple([simplify(e) for e in reduction.reducer.combine(total, element)])
        if not all(not e.dtype.is_float or _is_finite(e) for e in total):
            return False
    return True


def _is_finite(e: Expr) -> bool:
    value = simplify(e)
    return isinstance(value, Const) and bool(np.isfinite(value.value))


def _constant(x: float, dtype: DType) -> Expr:
    """Returns *x* as a number of *dtype*, wrapped or made true as NumPy would."""
    return const(x if dtype.is_float else bool(x) if dtype.is_bool else int(x), dtype)


def _known(size: Expr) -> int | None:
    return int(size.value) if isinstance(size, Const) else None
