"""The values of names while functions are inlined: tensors of the graph, and compile-time values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from weft.graph.builder import Operand
from weft.graph.functions.nodes import Function
from weft.support.dtypes import DType


@dataclass(frozen=True, slots=True)
class Closure:
    """A function with the variables around it."""

    function: Function
    around: Mapping[str, Item]


@dataclass(frozen=True, slots=True)
class Builtin:
    """An operator, or a function of the language, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Partial:
    """A function that was given its first arguments."""

    callee: Closure | Builtin
    first: tuple[Item, ...]


Item: TypeAlias = Operand | bool | int | float | str | DType | tuple["Item", ...] | Closure | Builtin | Partial | None
"""A tensor, or a value of the compiler."""

Variables: TypeAlias = dict[str, Item]
"""The values of the names that a function sees."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function, on the line of the text where it is."""

    callee: Closure
    given: tuple[Item, ...]
    line: int


def applied_to(v: Item) -> tuple[Item, tuple[Item, ...]]:
    """Returns a function without the first arguments that it was given, and these."""
    return (v.callee, v.first) if isinstance(v, Partial) else (v, ())


def same(a: Item, b: Item) -> bool:
    """Tells whether two values that are no tensors are the same for certain."""
    if isinstance(a, Partial) and isinstance(b, Partial):
        return same(a.callee, b.callee) and len(a.first) == len(b.first) and all(map(same, a.first, b.first))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a is b or (type(a) is type(b) and isinstance(a, bool | int | float | str) and a == b)
