"""The tensors of a graph and the nodes that compute them; a tensor without a node is an input, or a constant.

A value knows its producer and a node its operands, so the two are defined together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias, Union

import numpy as np

from weft.graph.core.infer_types import UNFIT, infer_types
from weft.graph.core.type_text import value_text
from weft.ir import Const, Expr, as_expr
from weft.ops import Operator, TensorType
from weft.support.dtypes import DType, from_numpy
from weft.support.errors import ModelError, WeftError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_SERIAL = itertools.count()


class Value:
    """A tensor in a graph, known by identity: an input of the graph, or one output of a node."""

    __slots__ = ("index", "name", "producer", "serial", "type")

    def __init__(self, name: str, type_: TensorType, producer: Node | None = None, index: int = 0) -> None:
        self.name = name
        self.type = type_
        self.producer = producer
        self.index = index
        self.serial = next(_SERIAL)

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The extents; symbolic ones hold variables."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.type.dtype

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.type.shape)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The extents as integers; None where one is symbolic."""
        sizes = [int(s.value) for s in self.type.shape if isinstance(s, Const)]
        return tuple(sizes) if len(sizes) == len(self.type.shape) else None

    @property
    def sample_shape(self) -> tuple[int, ...] | None:
        """The extents of one sample, if no extent other than the first (the batch) is symbolic; else None."""
        sizes = [int(s.value) for s in self.type.shape[1:] if isinstance(s, Const)]
        if self.static_shape is not None or len(sizes) + 1 != len(self.type.shape):
            return self.static_shape
        return (1, *sizes)

    def __repr__(self) -> str:
        return value_text(self.name, self.type)


class NestedGraph:
    """A graph that is an attribute of a node, such as the body of a loop; `Graph` is its one subclass."""

    __slots__ = ()


Attribute: TypeAlias = Union[bool, int, float, str, Expr, DType, "NestedGraph", tuple["Attribute", ...], None]
Attributes: TypeAlias = tuple[tuple[str, Attribute], ...]


class Node:
    """One call of an operator; `source` names the node of the user's model that it was made for."""

    __slots__ = ("attributes", "inputs", "operator", "outputs", "source")

    def __init__(
        self,
        operator: Operator,
        inputs: tuple[Value | None, ...],
        attributes: Attributes,
        types: Sequence[TensorType],
        names: Sequence[str],
        source: str = "",
    ) -> None:
        self.operator = operator
        self.inputs = inputs
        self.attributes = attributes
        self.source = source
        self.outputs = tuple([Value(n, t, self, k) for k, (n, t) in enumerate(zip(names, types, strict=True))])

    @property
    def op(self) -> str:
        """The operator's name."""
        return self.operator.name

    @property
    def output(self) -> Value:
        """The first output."""
        return self.outputs[0]

    @property
    def keywords(self) -> dict[str, Any]:
        """The attributes as given, by name."""
        return dict(self.attributes)

    def attribute(self, name: str) -> Any:
        """Returns an attribute: as given, else the operator's default; raises `KeyError` where it has neither."""
        for key, value in self.attributes:
            if key == name:
                return value
        return self.operator.attributes[name].default

    def with_inputs(self, inputs: tuple[Value | None, ...]) -> Node:
        """Returns the same call on other inputs, with types inferred anew where the inputs' types differ."""
        same = all(a is b or (a and b and a.type == b.type) for a, b in zip(inputs, self.inputs, strict=True))
        types = [v.type for v in self.outputs] if same else infer(self.operator, inputs, self.attributes, self.source)
        return Node(self.operator, inputs, self.attributes, types, [v.name for v in self.outputs], self.source)

    def __repr__(self) -> str:
        return f"Node({self.op} -> {', '.join(v.name for v in self.outputs)})"


def infer(
    operator: Operator, inputs: tuple[Value | None, ...], attributes: Attributes, source: str = ""
) -> tuple[TensorType, ...]:
    """Returns the types of the outputs; raises `ModelError` naming the model's node and the shapes of its inputs."""
    try:
        return infer_types(operator, tuple([None if v is None else v.type for v in inputs]), attributes)
    except WeftError as error:
        given = ", ".join("-" if v is None else repr(v) for v in inputs)
        hint = error.hint or UNFIT
        raise ModelError(f"{error.message}; given {given}", where=source or operator.name, hint=hint) from error


class Constant(Value):
    """A tensor whose elements are known: a weight, a shape, a scalar. The array is never copied or written to."""

    __slots__ = ("_array",)

    def __init__(self, name: str, array: Array) -> None:
        super().__init__(name, TensorType(tuple([as_expr(n) for n in array.shape]), from_numpy(array.dtype)))
        self._array = array

    @property
    def array(self) -> Array:
        """The elements."""
        return self._array

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape as integers, which it always is."""
        return self.static_shape or ()

    @property
    def size(self) -> int:
        """How many elements there are."""
        return prod(self.extents)

    @property
    def nbytes(self) -> int:
        """The bytes that the elements take."""
        return self.size * self.dtype.bytes

    @property
    def is_fixed(self) -> bool:
        """Whether the elements stay as they are: those of parameters may change between two calls, with all made of them."""
        return True

    def write(self, out: Array) -> None:
        """Writes the elements into an array of the same shape and type."""
        np.copyto(out, self._array)

    def reshaped(self, shape: Sequence[int], name: str) -> Constant:
        """Returns the same elements, of the same kind and in the same memory, in another shape."""
        return type(self)(name, self._array.reshape(shape))


class Parameter(Constant):
    """A constant that may change between two calls, as by training: no pass computes with its elements.

    Constants that passes compute of it are `Deferred`, and can be computed again.
    """

    __slots__ = ()

    @property
    def is_fixed(self) -> bool:
        """False."""
        return False

    def bind(self, array: Array) -> None:
        """Takes *array*, of the same shape and type, for the elements from now on."""
        if array.shape != self._array.shape or array.dtype != self._array.dtype:
            given, own = (f"{a.dtype}{list(a.shape)}" for a in (array, self._array))
            raise ModelError(
                f"the parameter {self.name!r} is {own}, and was given {given}",
                hint="give an array of its shape and type",
            )
        self._array = array

    def reshaped(self, shape: Sequence[int], name: str) -> Constant:
        """Returns the same elements in another shape, deferred, since they may change."""
        type_ = TensorType(tuple([as_expr(n) for n in shape]), self.dtype)
        return Deferred(name, type_, lambda out: np.copyto(out, self.array.reshape(out.shape)), is_fixed=False)


class Deferred(Constant):
    """A constant whose elements are computed each time that they are asked for, by *fill*, which writes them into an array.

    A packed weight is as large as the weight it is made of. As a deferred constant it is never held in memory beside that
    weight: it is written once, straight to the memory that kernels read. *fill* may be called from any thread. Constants
    computed of parameters are not fixed.
    """

    __slots__ = ("_is_fixed", "fill")

    def __init__(self, name: str, like: TensorType, fill: Callable[[Array], None], *, is_fixed: bool = True) -> None:
        Value.__init__(self, name, like)
        self.fill = fill
        self._is_fixed = is_fixed

    @property
    def is_fixed(self) -> bool:
        """Whether it is computed of constants only, and not of parameters."""
        return self._is_fixed

    @property
    def array(self) -> Array:
        """The elements, computed anew."""
        made: Array = np.empty(self.extents, self.dtype.numpy)
        self.fill(made)
        return made

    def write(self, out: Array) -> None:
        """Computes the elements into an array of the same shape and type."""
        self.fill(out)

    def reshaped(self, shape: Sequence[int], name: str) -> Constant:
        """Returns the same elements, computed when asked for too, in another shape."""
        type_ = TensorType(tuple([as_expr(n) for n in shape]), self.dtype)
        return Deferred(name, type_, lambda out: self.fill(out.reshape(self.extents)), is_fixed=self.is_fixed)
