"""The functional form of a model: named functions of tensors, compile-time numbers and functions, as immutable trees.

    repeat(f, k, x) = x if k == 0 else repeat(f, k - 1, f(x))

Two trees are equal if they mean the same text; lines of the source do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from weft.support.dtypes import DType

Literal: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Name:
    """A parameter, a variable, a function, a weight, an operator or a data type, whichever the name stands for."""

    name: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Value:
    """A number, a text or None, known when the model is compiled; values of different types differ (1 and 1.0)."""

    value: Literal
    kind: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Group:
    """A tuple."""

    items: tuple[Expression, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Apply:
    """The call of a function or an operator; *keywords* are an operator's attributes."""

    callee: Expression
    arguments: tuple[Expression, ...]
    keywords: tuple[tuple[str, Expression], ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Choose:
    """`then if condition else other`; only one of them is evaluated."""

    condition: Expression
    then: Expression
    other: Expression
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Lambda:
    """A function without a name."""

    function: Function
    line: int = field(default=0, compare=False)


Expression: TypeAlias = Name | Value | Group | Apply | Choose | Lambda


@dataclass(frozen=True, slots=True)
class TensorNote:
    """The type that a parameter is declared to have: sizes are numbers, or the names of symbolic ones."""

    dtype: DType
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function; *type* is None where any value may be given."""

    name: str
    type: TensorNote | None = None


@dataclass(frozen=True, slots=True)
class Bind:
    """Names the value of an expression, or, with several names, the items of a tuple."""

    names: tuple[str, ...]
    value: Expression
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Local:
    """Names a function, which may use the variables around it, and itself."""

    function: Function
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Block:
    """The body of a function: *bindings*, each seen by those behind it, and the value of the whole."""

    bindings: tuple[Bind | Local, ...]
    result: Expression


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a fixed number of parameters."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Block
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Functions:
    """A model: functions of different names, of which `main` is the entry."""

    functions: tuple[Function, ...]

    def __getitem__(self, name: str) -> Function:
        return next(f for f in self.functions if f.name == name)

    def __iter__(self) -> Iterator[Function]:
        return iter(self.functions)


ENTRY: Final = "main"
"""The function that a model's inputs are given to."""
