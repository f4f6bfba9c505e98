"""One node of a model being imported: what a translation reads of it, and how it adds to the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn, TypeAlias

import numpy as np
from onnx import GraphProto, NodeProto

from weft.frontends.onnx.known import Known, Unknown, fold, sizes_array
from weft.frontends.onnx.node import attributes_of
from weft.graph.graph import UNFIT, Array, Graph, Value
from weft.ir.expr import Const, Expr, ExprLike
from weft.ops.shapes import normalize_axis, simplify_size
from weft.support.dtypes import DType, i64
from weft.support.errors import ModelError, UnknownValues, WeftError

Operand: TypeAlias = Value | Known
Results: TypeAlias = Operand | tuple[Operand | None, ...]
Subgraph: TypeAlias = Callable[[GraphProto, Mapping[str, Operand]], list[Operand]]


class Emitter:
    """Adds calls to a graph, and computes those whose inputs are all known."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._constants: dict[int, tuple[Known, Value]] = {}

    def value(self, operand: Operand, source: str = "") -> Value:
        """Returns *operand* as a value of the graph: a known one becomes a constant, or a node that makes symbolic sizes."""
        if isinstance(operand, Value):
            return operand
        kept = self._constants.get(id(operand))
        if kept is None:
            kept = self._constants[id(operand)] = (operand, self._made(operand, source))
        return kept[1]

    def _made(self, known: Known, source: str) -> Value:
        if not known.symbolic:
            return self.graph.constant(known.array, known.name)
        sizes, shape = tuple(known.array.flat), known.array.shape
        made = self.graph.add("sizes", [], sizes=sizes, shape=shape, source=source)
        return made if known.dtype is i64 else self.graph.add("cast", [made], dtype=known.dtype, source=source)

    def add(self, op: str, inputs: Sequence[Operand | None], attributes: dict[str, Any], source: str) -> list[Operand]:
        """Computes *op* now if all its inputs are known, else adds it to the graph."""
        known = [k for k in inputs if isinstance(k, Known)]
        if len(known) == len(inputs):
            try:
                return list(fold(op, known, attributes))
            except Unknown:
                pass
        values = [None if v is None else self.value(v, source) for v in inputs]
        return list(self.graph.add_many(op, values, source=source, **attributes))


class Call:
    """One ONNX node with its inputs; a translation asks it for inputs and attributes and adds Weft operators through it."""

    def __init__(
        self, node: NodeProto, inputs: Sequence[Operand | None], opset: int, emitter: Emitter, subgraph: Subgraph,
        makers: Mapping[str, str], source: str,
    ) -> None:  # fmt: skip
        self.node = node
        self.inputs = list(inputs)
        self.opset = opset
        self.emitter = emitter
        self.subgraph = subgraph
        self._makers = makers
        self.source = source

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes by name, as Python values; raises `ModelError` for those that the operator can't have."""
        return attributes_of(self.node, self.opset, self.source)

    def fail(self, message: str, hint: str | None = None, kind: type[ModelError] = ModelError) -> NoReturn:
        """Raises `ModelError`, or one of its kinds, naming the node."""
        raise kind(message, where=self.source, hint=hint)

    def require(self, condition: Expr, message: str, *values: Expr) -> None:
        """Lets calls of the model fail with *message* where *condition* does not hold; *values* are its {0}, {1} ..."""
        self.emitter.graph.require(condition, f"{self.source}: {message}", *values)

    # Inputs

    def has(self, i: int) -> bool:
        """Tells whether input *i* is given."""
        return i < len(self.inputs) and self.inputs[i] is not None

    def input(self, i: int) -> Operand:
        """Returns input *i*; raises `ModelError` where it is absent."""
        found = self.optional(i)
        if found is None:
            self.fail(f"its input {i} is missing")
        return found

    def optional(self, i: int) -> Operand | None:
        """Returns input *i*, or None."""
        return self.inputs[i] if i < len(self.inputs) else None

    def ranked(self, i: int, rank: int, what: str) -> Operand:
        """Returns input *i*, of *rank* dimensions; raises `ModelError` where it has others."""
        found = self.input(i)
        if found.rank != rank:
            self.fail(f"{what} should have {rank} dimensions: {found!r}", UNFIT)
        return found

    def known(self, i: int, what: str) -> Array:
        """Returns the elements of input *i*; raises `UnknownValues` where they are computed only when the model runs."""
        found = self.input(i)
        if isinstance(found, Known):
            return found.array
        name = self.node.input[i]
        maker = self._makers.get(name)
        return self.fail(
            f"{what} ({name}) {f'is computed by {maker}' if maker else 'is an input of the model'}, "
            "so it is not known before the model runs",
            "Weft needs it to compile the model; export the model with it as a constant, or fix the shapes it depends on",
            UnknownValues,
        )

    def numbers(self, i: int, what: str) -> Array:
        """Returns the elements of input *i*, none of them symbolic."""
        array = self.known(i, what)
        if array.dtype == object:
            self.fail(f"{what} depends on the symbolic sizes of the inputs", 'give them numbers: shapes={"batch": 1}')
        return array

    def sizes(self, i: int, what: str) -> list[Any]:
        """Returns the elements of the vector or scalar input *i*: integers and index expressions."""
        return [e if isinstance(e, Expr) else int(e) for e in self.known(i, what).flat]

    def number_at(self, i: int, what: str) -> float | int:
        """Returns the one number that input *i* holds."""
        array = self.numbers(i, what)
        if array.size != 1:
            self.fail(f"{what} should be one number, not {array.size}", UNFIT)
        return array.item()  # type: ignore[no-any-return]

    def ints_at(self, i: int, what: str) -> list[int]:
        """Returns the integers of the vector or scalar input *i*."""
        return [int(e) for e in self.numbers(i, what).flat]

    # Attributes

    def integer(self, name: str, default: int) -> int:
        """Returns an integer attribute."""
        return int(self.attributes.get(name, default))

    def flag(self, name: str, default: bool) -> bool:
        """Returns an integer attribute as a truth value."""
        return bool(self.attributes.get(name, default))

    def number(self, name: str, default: float) -> float:
        """Returns a float attribute."""
        return float(self.attributes.get(name, default))

    def text(self, name: str, default: str) -> str:
        """Returns a string attribute."""
        return str(self.attributes.get(name, default))

    def ints(self, name: str) -> list[int] | None:
        """Returns an attribute that is a list of integers; None where it is absent."""
        found = self.attributes.get(name)
        return None if found is None else [int(v) for v in found]

    def ints_for(self, name: str, count: int, default: int) -> list[int]:
        """Returns an attribute of *count* integers, *default* where it has none; raises `ModelError` for any other number."""
        found = self.ints(name) or [default] * count
        if len(found) != count:
            self.fail(f"its attribute {name!r} is {found}, and {count} are needed", UNFIT)
        return found

    def axis(self, default: int, rank: int, name: str = "axis") -> int:
        """Returns the axis attribute, counted from the front of a tensor of *rank*."""
        return self.axis_of(self.integer(name, default), rank)

    def axis_of(self, axis: int, rank: int) -> int:
        """Returns *axis* counted from the front; raises `ModelError` for one that a tensor of *rank* lacks."""
        try:
            return normalize_axis(axis, rank)
        except WeftError as error:
            self.fail(error.message)

    # Results

    def add(self, op: str, *inputs: Operand | None, **attributes: Any) -> Operand:
        """Adds a Weft operator of one output."""
        return self.emitter.add(op, inputs, attributes, self.source)[0]

    def add_many(self, op: str, *inputs: Operand | None, **attributes: Any) -> tuple[Operand, ...]:
        """Adds a Weft operator of any number of outputs."""
        return tuple(self.emitter.add(op, inputs, attributes, self.source))

    def wants(self, i: int) -> bool:
        """Tells whether the model names output *i*."""
        return i < len(self.node.output) and bool(self.node.output[i])

    def scalar(self, value: float | int | bool, dtype: DType) -> Known:
        """Returns a constant of rank 0."""
        return Known(np.asarray(value).astype(dtype.numpy))

    def vector(self, values: Sequence[ExprLike]) -> Known:
        """Returns an int64 vector, symbolic sizes among its elements."""
        try:
            return Known(sizes_array(values))
        except Unknown:
            self.fail("its result is a formula of too many parts", "give the symbolic sizes numbers", UnknownValues)

    def cast(self, x: Operand, dtype: DType) -> Operand:
        """Returns *x* converted to *dtype*; *x* itself if it is of that type."""
        return x if x.dtype is dtype else self.add("cast", x, dtype=dtype)

    def reshape(self, x: Operand, shape: Sequence[ExprLike]) -> Operand:
        """Returns *x* in another shape, all of whose sizes are given."""
        return self.add("reshape", x, shape=tuple(shape))

    def transpose(self, x: Operand, perm: Sequence[int]) -> Operand:
        """Returns *x* with its dimensions in another order; *x* itself if they stay."""
        return x if list(perm) == list(range(x.rank)) else self.add("transpose", x, perm=tuple(perm))


def static(sizes: Sequence[Expr]) -> list[int] | None:
    """Returns sizes as integers; None where one is symbolic."""
    found = [int(s.value) for s in sizes if isinstance(s, Const)]
    return found if len(found) == len(sizes) else None


def total(sizes: Sequence[ExprLike]) -> Expr | int:
    """Returns the product of sizes."""
    product: Expr | int = math.prod([int(s) for s in sizes if not isinstance(s, Expr)])
    for s in sizes:
        if isinstance(s, Expr):
            product = s * product
    return simplify_size(product) if isinstance(product, Expr) else product
