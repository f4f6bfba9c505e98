"""One operation of a program being imported: its inputs by name, those that are numbers and texts as such."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from weft.frontends.coreml.values import ValueType
from weft.graph import Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator
from weft.support.dtypes import DType
from weft.support.errors import UnknownValues

AGAIN: Final = "convert the model again with coremltools"

Block: TypeAlias = Callable[[Builder, Sequence[Operand]], list[Operand]]
"""Adds a block's operators, with values for its arguments, and returns its results."""


@dataclass(eq=False)
class State:
    """A state of a program: its value at this place of the program, and the evaluator of the function that it belongs to."""

    value: Operand
    evaluator: PartialEvaluator


class Label:
    """The name of the likeliest class, a text, which is no output of the graph."""


class Call(Builder):
    """A call of an operation: a translation asks it for inputs by name, and adds Weft operators through it.

    `given` are the inputs: tensors, texts, states, and lists of these; `types` those of the results; `blocks` those of branches
    and loops.
    """

    def __init__(
        self,
        evaluator: PartialEvaluator,
        source: str,
        given: Mapping[str, Any],
        types: Sequence[ValueType | None],
        blocks: Sequence[Block] = (),
    ) -> None:
        super().__init__(evaluator, source)
        self.given, self.types, self.blocks = given, types, blocks

    def has(self, name: str) -> bool:
        """Tells whether an input is given."""
        return name in self.given

    def optional(self, name: str) -> Operand | None:
        """Returns a tensor; None where it is not given."""
        return self.operand(name) if name in self.given else None

    def operand(self, name: str = "x") -> Operand:
        """Returns a tensor; raises `ModelError` where it is none."""
        found = self.given.get(name)
        if not isinstance(found, Value | CompileTimeConstant):
            self.fail(f"its input {name!r} is {'absent' if found is None else f'{found!r}'}, not a tensor", AGAIN)
        return found

    def operands(self, name: str) -> list[Operand]:
        """Returns a list of tensors."""
        found = self.given.get(name)
        given = list(found) if isinstance(found, tuple | list) else [found]
        made = [v for v in given if isinstance(v, Value | CompileTimeConstant)]
        if not made or len(made) != len(given):
            self.fail(f"its input {name!r} is not a list of tensors", AGAIN)
        return made

    def constant(self, name: str) -> Any:
        """Returns the elements of a tensor that is known; raises `UnknownValues` for one that a run computes."""
        found = self.operand(name)
        if not isinstance(found, CompileTimeConstant) or found.symbolic:
            self.fail(
                f"its input {name!r} is computed when the model runs", "convert it with fixed shapes", UnknownValues
            )
        return found.array

    def kept_constant(self, array: Any) -> CompileTimeConstant:
        """Returns an array as a constant, called after the operation."""
        return CompileTimeConstant(array, self.source.partition(" ")[2])

    def number(self, name: str, default: float | None = None) -> float:
        """Returns a number; *default* where it is not given."""
        if default is not None and name not in self.given:
            return default
        found = self.constant(name)
        if found.size != 1:
            self.fail(f"its input {name!r} should be one number", AGAIN)
        return float(found.reshape(-1)[0])

    def integer(self, name: str, default: int | None = None) -> int:
        """Returns an integer; *default* where it is not given."""
        found = self.number(name, default)
        if found != int(found):
            self.fail(f"its input {name!r} is {found}, not an integer", AGAIN)
        return int(found)

    def flag(self, name: str, default: bool = False) -> bool:
        """Returns a truth value."""
        return bool(self.number(name, default))

    def text(self, name: str, default: str | None = None) -> str:
        """Returns a text; *default* where it is not given."""
        found = self.given.get(name, default)
        if not isinstance(found, str):
            self.fail(f"its input {name!r} is {found!r}, not a text", AGAIN)
        return found

    def ints(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """Returns a list of integers; *default* where it is not given."""
        if default is not None and name not in self.given:
            return list(default)
        return [int(v) for v in self.constant(name).reshape(-1)]

    def listed(self, name: str) -> list[int]:
        """Returns a list of integers, each of which is an input of its own."""
        held = [v for v in self.operands(name) if isinstance(v, CompileTimeConstant) and not v.symbolic]
        if any(v.array.size != 1 for v in held) or len(held) != len(self.operands(name)):
            self.fail(f"its input {name!r} should be a list of numbers", AGAIN)
        return [int(v.array.reshape(())) for v in held]

    def sizes(self, name: str) -> list[Any]:
        """Returns a list of sizes, symbolic ones among them."""
        return self.late_sizes(self.operand(name), "size", f"its input {name!r}")

    def axes(self, rank: int, name: str = "axes") -> tuple[int, ...]:
        """Returns axes counted from the front; all of them where they are not given."""
        return tuple(sorted({self.axis_of(a, rank) for a in self.ints(name, range(rank))}))

    def dtype(self, k: int = 0) -> DType:
        """Returns the type of a result's elements."""
        found = self.types[k] if k < len(self.types) else None
        if found is None or found.dtype is None:
            self.fail("the type of its result is not supported", AGAIN)
        return found.dtype
