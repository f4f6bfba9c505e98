"""Partial evaluation of a model while it is imported: calls on compile-time constants are computed, all others become nodes.

Exporters compute shapes with the model's own operators: Shape, Gather, Mul, Concat, then Reshape. Evaluated here, this arithmetic
leaves no trace in the graph. The meaning of each operator is its `fold` (`weft.ops.folding`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from weft.graph.builder.constants import CompileTimeConstant, is_packable, packed_bytes, sizes_array
from weft.graph.builder.equal_sizes import add_tied
from weft.graph.core.graph import Graph
from weft.graph.core.graph_values import Array, Value
from weft.ir import Const, Var
from weft.ops import LARGEST_FOLD, OPERATORS, Fold, NotFoldable, bounds_of_existing, least_sizes
from weft.support.dtypes import DType, i64
from weft.support.errors import ModelError
from weft.te import is_narrow

Operand: TypeAlias = Value | CompileTimeConstant


class PartialEvaluator:
    """Adds calls to a graph, and evaluates those whose inputs are all compile-time constants.

    That of a region shares the constants of the graph *around*.
    """

    def __init__(self, graph: Graph, around: PartialEvaluator | None = None) -> None:
        self.graph = graph
        self.around = around
        self.least: dict[Var, int] = {} if around is None else dict(around.least)
        self._values: dict[int, tuple[CompileTimeConstant, Value]] = {}

    def value(self, operand: Operand, source: str = "") -> Value:
        """Returns *operand* as a value of the graph: a constant, or a node that makes symbolic sizes; one for each constant."""
        if isinstance(operand, Value):
            return operand
        if self.around is not None and not operand.symbolic:
            return self.around.value(operand, source)  # a weight is held once, whatever regions use it
        kept = self._values.get(id(operand))
        if kept is None:
            kept = self._values[id(operand)] = (operand, self._made(operand, source))
        return kept[1]

    def _made(self, constant: CompileTimeConstant, source: str) -> Value:
        if is_packable(constant):
            packed = self.graph.constant(packed_bytes(constant), constant.name)
            return self.graph.add("unpack", [packed], dtype=constant.dtype, source=source)
        if not constant.symbolic:
            return self.graph.constant(constant.array, constant.name)
        sizes, shape = tuple(constant.array.flat), constant.array.shape
        made = self.graph.add("sizes", [], sizes=sizes, shape=shape, source=source)
        return made if constant.dtype is i64 else self.graph.add("cast", [made], dtype=constant.dtype, source=source)

    def add(self, op: str, inputs: Sequence[Operand | None], attributes: dict[str, Any], source: str) -> list[Operand]:
        """Evaluates *op* if all its inputs are compile-time constants, else adds it to the graph; returns its outputs.

        Where symbolic sizes have to be equal and are not known to be, calls check it.
        """
        constants = [v for v in inputs if v is None or isinstance(v, CompileTimeConstant)]
        if len(constants) == len(inputs):
            try:
                with least_sizes(self.least):
                    return list(fold(op, constants, attributes))
            except NotFoldable:
                pass
        values = [None if v is None else self.value(v, source) for v in inputs]
        made = self._added(op, values, attributes, source)
        self._learn(made)
        return list(made)

    def _added(
        self, op: str, values: Sequence[Value | None], attributes: dict[str, Any], source: str
    ) -> tuple[Value, ...]:
        try:
            return self.graph.add_many(op, values, source=source, **attributes)
        except ModelError:
            made = add_tied(self.graph, op, values, attributes, source)
            if made is None:
                raise
            return made

    def _learn(self, values: Sequence[Value]) -> None:
        """Notes the lower bounds of sizes by which tensors of the shapes of *values* exist: other calls are refused."""
        late = {known.size for known in self.graph.late_sizes}
        for s in [s for v in values for s in v.shape if not isinstance(s, Const | Var)]:
            bounds = bounds_of_existing(s, least=0)
            for var in set(bounds.ranges) - late:
                least = bounds.of(var).lo
                if least is not None and least > max(1, self.least.get(var, 1)):
                    self.least[var] = least


def fold(
    op: str, inputs: Sequence[CompileTimeConstant | None], attributes: dict[str, Any]
) -> list[CompileTimeConstant]:
    """Evaluates the operator *op*, None for absent operands; raises `NotFoldable` where that is impossible or too expensive at
    compile time.
    """
    how = OPERATORS[op].fold if op in OPERATORS else None
    if how is None or sum(0 if k is None else k.array.size for k in inputs) > LARGEST_FOLD:
        raise NotFoldable
    if None in inputs and not how.takes_absent:
        raise NotFoldable
    compute, arrays = _computation(how, inputs)
    with np.errstate(all="ignore"):
        try:
            made = compute(*arrays, **attributes)
        except (IndexError, TypeError, ValueError):  # they do not fit together, as the operator will say
            raise NotFoldable from None
    typed_by = inputs[how.typed_by] if inputs and how.typed_by is not None else None
    dtype = attributes.get("dtype") if typed_by is None else typed_by.dtype
    return [_result(np.asarray(r), dtype) for r in (made if isinstance(made, list) else [made])]


def _computation(
    how: Fold, inputs: Sequence[CompileTimeConstant | None]
) -> tuple[Callable[..., Any], list[Array | None]]:
    """Returns the function that evaluates the operator, and the elements of *inputs* in the types that it takes."""
    given = [k for k in inputs if k is not None]
    if not (how.on_sizes and any(k.symbolic for k in given)):
        return how.compute, [None if k is None else _computable(k) for k in inputs]
    on_floats = how.compute_float_sizes if given[0].dtype.is_float else None
    return on_floats or how.compute, [None if k is None else _whole(k.array) for k in inputs]


def _computable(constant: CompileTimeConstant) -> Array:
    """Returns the elements, 16-bit floats converted to float32: operators compute in float32 and round once."""
    is_rounded = is_narrow(constant.dtype) and not constant.symbolic
    return constant.array.astype(np.float32) if is_rounded else constant.array


def _whole(a: Array) -> Array:
    """Returns an array of integers and index expressions; raises `NotFoldable` for one with a fraction."""
    if a.dtype.kind == "f" and not np.array_equal(a, np.trunc(a)):
        raise NotFoldable
    return a.astype(np.int64).astype(object) if a.dtype.kind == "f" else a.astype(object)


def _result(array: Array, dtype: DType | None) -> CompileTimeConstant:
    """Gives a computed array its element type: *dtype*, or its own for None."""
    if array.dtype == object:
        array = sizes_array(list(array.flat), array.shape)
        if array.dtype == object or dtype is None:
            return CompileTimeConstant(array, dtype=dtype)
    if dtype is not None:
        array = array.astype(dtype.numpy, copy=False)
    return CompileTimeConstant(array if array.flags.c_contiguous else array.copy())
