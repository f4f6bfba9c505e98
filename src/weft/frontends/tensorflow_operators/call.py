"""One node being imported: its inputs and attributes, and images with their channels last.

TensorFlow Lite's operators are calls of the same kind, with attributes by TensorFlow's names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from weft.frontends.channels_last import ChannelsLastBuilder
from weft.frontends.known_inputs import KnownInputs
from weft.frontends.string_ids import StringIds, Strings
from weft.graph import Array, Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator
from weft.ir import ExprLike
from weft.support.dtypes import DType, i32
from weft.support.errors import UnknownValues

T = TypeVar("T")
SAVE_AGAIN = "save the model again"


@dataclass(frozen=True)
class Variable:
    """A variable, by the value of its handle: its value where it is only read, None where it is zeros at first."""

    name: str
    value: CompileTimeConstant | None


@dataclass(frozen=True)
class ListOfTensors:
    """A list of tensors of one shape (TensorFlow's TensorList), as one tensor whose first dimension counts them.

    Before its first tensor is known there are *elements* of none, and *count*, which may be a value, says how many there will be.
    """

    dtype: DType
    elements: Operand | None
    count: Operand

    @staticmethod
    def of(b: Builder, elements: Operand) -> ListOfTensors:
        """Returns the list of a tensor's elements along its first dimension."""
        return ListOfTensors(elements.dtype, elements, b.cast(b.size(elements.shape[0]), i32))

    def of_zeros(self, b: Builder, shape: Sequence[ExprLike]) -> ListOfTensors:
        """Returns the list of as many tensors of zeros of *shape*."""
        count = b.late_number(self.count, "count", "the number of tensors in a list")
        zeros = b.add("full", shape=(count, *shape), value=0, dtype=self.dtype)
        return ListOfTensors(self.dtype, zeros, self.count)


@dataclass(frozen=True)
class ComplexTensor:
    """A tensor of complex numbers: its real and its imaginary parts, of one shape and type."""

    real: Operand
    imaginary: Operand

    @property
    def parts(self) -> tuple[Operand, Operand]:
        """Both parts."""
        return self.real, self.imaginary


@dataclass(frozen=True)
class Table:
    """A table that finds values by keys, both known while a model is imported: integers, ids of strings, or other numbers."""

    keys: Array
    values: Array
    makes_strings: bool


Held: TypeAlias = "Operand | Variable | ListOfTensors | ComplexTensor | Strings | Table | None"
Results: TypeAlias = "Held | tuple[Held, ...]"


class Library(Protocol):
    """The functions that a model's nodes call: those of its library, or its subgraphs; and its strings."""

    strings: StringIds

    def call(self, name: object, inputs: Sequence[Held], evaluator: PartialEvaluator | None = None) -> list[Held]:
        """Imports a function's body, called with *inputs*, in place or in the region of *evaluator*; returns its results."""

    def unchanged(self, name: object) -> list[int | None]:
        """Returns, for each result of a function, the number of the argument that it always is; None for one computed."""


class Call(ChannelsLastBuilder, KnownInputs):
    """A call of an operator: a translation asks it for inputs and attributes, and adds Weft operators through it."""

    unfit = SAVE_AGAIN

    def __init__(
        self,
        evaluator: PartialEvaluator,
        source: str,
        op: str,
        inputs: Sequence[Held],
        attributes: Mapping[str, Any],
        images: dict[Value, Operand],
        library: Library | None = None,
    ) -> None:
        super().__init__(evaluator, source, images)
        self.op, self.inputs, self.attributes = op, inputs, attributes
        self._library = library

    @property
    def library(self) -> Library:
        """The model's functions."""
        if self._library is None:
            self.fail("it calls a function, and the model has none", SAVE_AGAIN)
        return self._library

    @property
    def strings(self) -> StringIds:
        """The strings that the model knows."""
        return self.library.strings

    # inputs

    def ids(self, i: int = 0) -> Operand:
        """Returns the ids of input *i*; raises `ModelError` where it is no tensor of strings."""
        found = self.inputs[i] if i < len(self.inputs) else None
        if not isinstance(found, Strings):
            self.fail(f"its input {i} is {_kind(found)}, not strings", SAVE_AGAIN)
        return found.ids

    def tensor(self, i: int = 0, rank: int | None = None) -> Operand:
        """Returns input *i*; raises `ModelError` where it is absent, no tensor, or not of *rank* dimensions."""
        found = self.inputs[i] if i < len(self.inputs) else None
        if not isinstance(found, Value | CompileTimeConstant):
            self.fail(f"its input {i} is {_kind(found)}, not a tensor", SAVE_AGAIN)
        if rank is not None and found.rank != rank:
            self.fail(f"its input {i} should have {rank} dimensions: {found!r}", SAVE_AGAIN)
        return found

    def variable(self, i: int) -> Operand:
        """Returns the value of the variable that input *i* is; raises `ModelError` where it is none that was saved."""
        found = self.inputs[i] if i < len(self.inputs) else None
        if not isinstance(found, Variable) or found.value is None:
            self.fail(f"its input {i} is {found!r}, not a variable that was saved", SAVE_AGAIN)
        return found.value

    def complex(self, i: int = 0) -> ComplexTensor:
        """Returns input *i* as complex numbers; the imaginary parts of real ones are zeros."""
        found = self.inputs[i] if i < len(self.inputs) else None
        if isinstance(found, ComplexTensor):
            return found
        real = self.tensor(i)
        return ComplexTensor(real, self.add("full", shape=real.shape, value=0, dtype=real.dtype))

    def has(self, i: int) -> bool:
        """Tells whether there is an input *i*."""
        return i < len(self.inputs)

    def tensors(self, start: int = 0, end: int | None = None) -> list[Operand]:
        """Returns inputs *start* to before *end*, all of which are tensors, and of which there is one."""
        made = [self.tensor(i) for i in range(len(self.inputs))[start:end]]
        if not made:
            self.fail("it has no inputs", SAVE_AGAIN)
        return made

    def is_known(self, i: int) -> bool:
        """Tells whether the elements of input *i* are known when the model is compiled."""
        return isinstance(self.tensor(i), CompileTimeConstant)

    def known(self, i: int, what: str) -> Array:
        """Returns the elements of input *i*; raises `UnknownValues` where they are computed only when the model runs."""
        found = self.tensor(i)
        if not isinstance(found, CompileTimeConstant):
            self.fail(
                f"{what} is not known before the model runs",
                "Weft needs it to compile the model: make it a constant, or fix the shapes that it depends on",
                UnknownValues,
            )
        return found.array

    def axis_at(self, i: int, rank: int) -> int:
        """Returns the dimension that input *i* names, counted from the front of a tensor of *rank*."""
        return self.axis_of(int(self.number_at(i, "the axis")), rank)

    def axes_at(self, i: int, rank: int) -> list[int]:
        """Returns the dimensions that input *i* names, in ascending order."""
        return sorted({self.axis_of(a, rank) for a in self.ints_at(i, "the axes")})

    # attributes

    def value(self, name: str, kind: type[T] | tuple[type[T], ...], default: T | None = None) -> T:
        """Returns an attribute; raises `ModelError` where it is absent and has no *default*, or is of another kind."""
        found = self.attributes.get(name, default)
        if not isinstance(found, kind):
            self.fail(f"its attribute {name!r} is {found!r}", SAVE_AGAIN)
        return found

    def integer(self, name: str, default: int | None = None) -> int:
        """Returns an integer."""
        return self.value(name, int, default)

    def number(self, name: str, default: float | None = None) -> float:
        """Returns a number."""
        return float(self.value(name, (int, float), default))

    def flag(self, name: str, default: bool = False) -> bool:
        """Returns a truth value."""
        return bool(self.value(name, (bool, int), default))

    def text(self, name: str, default: str | None = None) -> str:
        """Returns a text."""
        return self.value(name, str, default)

    def ints(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """Returns a list of integers."""
        found = self.attributes.get(name, default)
        if not isinstance(found, list | tuple) or not all(isinstance(v, int) for v in found):
            self.fail(f"its attribute {name!r} is {found!r}, not integers", SAVE_AGAIN)
        return list(found)

    def dtype(self, name: str, default: DType | None = None) -> DType:
        """Returns an element type, *default* where it is absent; raises `ModelError` for one that Weft lacks."""
        found = self.attributes.get(name, default)
        if not isinstance(found, DType):
            self.fail(f"its elements of type {found} are not supported", "build the model with numbers or bools")
        return found

    def refuse(self, name: str, *allowed: Any) -> None:
        """Raises `ModelError` unless an attribute is absent or one of *allowed*."""
        found = self.attributes.get(name)
        if found is not None and found not in allowed:
            self.fail(f"its attribute {name}={found!r} is not supported", "build the model without it")

    # results

    def constant(self, array: Array) -> CompileTimeConstant:
        """Returns an array as a constant."""
        return CompileTimeConstant(np.asarray(array, order="C"))


def _kind(found: object) -> str:
    return "missing" if found is None else f"a {type(found).__name__}"
