"""`Builder` adds the operators that one node of a model becomes; composites and translations are functions of a `Builder`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from weft.graph.builder.constants import CompileTimeConstant, sizes_array
from weft.graph.builder.element_source import element_source
from weft.graph.builder.partial_evaluator import Operand, PartialEvaluator
from weft.graph.core.graph_values import Value
from weft.ir import Expr, ExprLike
from weft.ops import MOST_DIMENSIONS, NotFoldable, normalize_axis
from weft.support.dtypes import DType, f32, i64
from weft.support.errors import ModelError, UnknownValues, WeftError


class Builder:
    """Adds operators for one node of a model; *source* names that node in messages and in the graph.

        b = Builder(PartialEvaluator(graph), "Silu /act")
        y = b.add("mul", x, b.add("sigmoid", x))

    Operands are values of the graph or compile-time constants; a call on constants alone is evaluated at once.
    """

    def __init__(self, evaluator: PartialEvaluator, source: str) -> None:
        self.evaluator = evaluator
        self.source = source

    def fail(self, message: str, hint: str | None = None, kind: type[ModelError] = ModelError) -> NoReturn:
        """Raises `ModelError`, or one of its kinds, naming the model's node."""
        raise kind(message, where=self.source, hint=hint)

    def require(self, condition: Expr, message: str, *values: Expr) -> None:
        """Makes calls of the model fail with *message* unless *condition* holds; *values* fill the message's {0}, {1} ..."""
        self.evaluator.graph.require(condition, message, *values, source=self.source)

    def axis_of(self, axis: int, rank: int) -> int:
        """Returns *axis* counted from the front; raises `ModelError` for one that a tensor of *rank* lacks."""
        try:
            return normalize_axis(axis, rank)
        except WeftError as error:
            self.fail(error.message)

    def add(self, op: str, *inputs: Operand | None, **attributes: Any) -> Operand:
        """Adds an operator of one output; None stands for an optional input that is absent."""
        return self.evaluator.add(op, inputs, attributes, self.source)[0]

    def add_many(self, op: str, *inputs: Operand | None, **attributes: Any) -> tuple[Operand, ...]:
        """Adds an operator of any number of outputs."""
        return tuple(self.evaluator.add(op, inputs, attributes, self.source))

    def kept(self, x: Operand) -> Operand:
        """Returns *x* as a value of the graph: calls on it are not evaluated while importing, so that passes see them."""
        return self.evaluator.value(x, self.source)

    def scalar(self, value: float | int | bool, dtype: DType) -> CompileTimeConstant:
        """Returns a constant of rank 0."""
        return CompileTimeConstant(np.asarray(value).astype(dtype.numpy))

    def vector(self, values: Sequence[ExprLike]) -> CompileTimeConstant:
        """Returns an int64 vector, symbolic sizes among its elements."""
        try:
            return CompileTimeConstant(sizes_array(values))
        except NotFoldable:
            self.fail("its result is a formula of too many parts", "give the symbolic sizes numbers", UnknownValues)

    def size(self, size: ExprLike) -> CompileTimeConstant:
        """Returns an int64 of rank 0, which may be a symbolic size."""
        return CompileTimeConstant(self.vector([size]).array.reshape(()))

    def late_sizes(self, x: Operand, name: str, what: str, *, least: int = 0) -> list[int | Expr]:
        """Returns the elements of *x*, a vector or a number, as sizes: those that only a run computes are late sizes.

        New ones are called *name*; they are *what* in messages, and calls in which they are less than *least* are refused.
        Raises `ModelError` for a vector of a symbolic size, or of more sizes than a tensor has.
        """
        if isinstance(x, CompileTimeConstant):
            return [e if isinstance(e, Expr) else int(e) for e in x.array.flat]
        if not x.dtype.is_int:
            return self.late_sizes(
                self.cast(x, i64), name, what, least=least
            )  # a kernel converts it: a host program has integers alone
        if x.rank > 1 or x.static_shape is None:
            self.fail(f"{what} should be a vector, of a size that is known: {x!r}")
        count = math.prod(x.static_shape)
        if count > MOST_DIMENSIONS:
            self.fail(
                f"{what} is one of {count}; a tensor has at most {MOST_DIMENSIONS} dimensions", "export the model again"
            )
        graph, made = self.evaluator.graph, list[int | Expr]()
        for k in range(count):
            found = element_source(x, k)
            if isinstance(found, tuple):
                found = graph.late_size(*found, name=name, what=what, source=self.source, least=least)
            made.append(found)
        return made

    def late_number(self, x: Operand, name: str, what: str, *, least: int = 0) -> int | Expr:
        """Returns the one element of *x* as a size, as `late_sizes` does; raises `ModelError` where it has not one element."""
        found = self.late_sizes(x, name, what, least=least)
        if len(found) != 1:
            self.fail(f"{what} should be one number: {x!r}")
        return found[0]

    def known_size(self, x: Operand) -> Expr | None:
        """Returns the size that the number *x* is known to be: a late size, or one of the model's; None if it is no such."""
        found = element_source(x, 0) if isinstance(x, Value) else x.array.reshape(-1)[0]
        known = [late.size for late in self.evaluator.graph.late_sizes if (late.value, late.element) == found]
        return known[0] if known else found if isinstance(found, Expr) else None

    def cast(self, x: Operand, dtype: DType, *, saturate: bool = True, rounding: str = "up") -> Operand:
        """Returns *x* converted to *dtype*; *x* itself if it is of that type.

        *saturate* and *rounding* are those of `weft.ops.storage_types.encode`.
        """
        if x.dtype is dtype:
            return x
        if x.dtype.is_storage:
            x = self.add("decode", x, dtype=f32 if dtype.is_storage else dtype)
        if dtype.is_storage:
            return self.add("encode", x, dtype=dtype, saturate=saturate, rounding=rounding)
        return x if x.dtype is dtype else self.add("cast", x, dtype=dtype)

    def reshape(self, x: Operand, shape: Sequence[ExprLike]) -> Operand:
        """Returns *x* in another shape, all of whose sizes are given."""
        return self.add("reshape", x, shape=tuple(shape))

    def transpose(self, x: Operand, perm: Sequence[int]) -> Operand:
        """Returns *x* with its dimensions in another order; *x* itself if they stay."""
        return x if list(perm) == list(range(x.rank)) else self.add("transpose", x, perm=tuple(perm))
