"""One node of a symbol being imported: its inputs, and its attributes, which are texts such as `(3, 3)` and `True`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn, Protocol

from weft.frontends.mxnet.symbol import Node, Symbol
from weft.graph.builder import Builder, Operand, PartialEvaluator
from weft.support.dtypes import SCALARS, DType

LONGEST: Final = 1000
LARGEST: Final = 1 << 31


class Program(Protocol):
    """The importer of the symbols inside of nodes."""

    def run(self, symbol: Symbol, given: Sequence[Operand], b: Builder) -> list[Operand]:
        """Returns the results of a symbol, of which *given* are the variables."""


class Call(Builder):
    """A call of an operator: a translation asks it for inputs and attributes, and adds Weft operators through it."""

    def __init__(
        self, evaluator: PartialEvaluator, node: Node, inputs: Sequence[Operand | None], program: Program
    ) -> None:
        super().__init__(evaluator, node.source)
        self.node, self.inputs, self.program = node, inputs, program

    def on(self, node: Node, inputs: Sequence[Operand | None]) -> Call:
        """Returns a call of another *node*, one inside of this or this with another operator, on *inputs*."""
        return Call(self.evaluator, replace(node, name=self.node.name), inputs, self.program)

    def input(self, i: int = 0, rank: int | None = None) -> Operand:
        """Returns an input; raises `ModelError` where there is none, or it has not *rank* dimensions."""
        found = self.inputs[i] if i < len(self.inputs) else None
        if found is None:
            self.fail(f"it has no input {i}", "save the network again")
        if rank is not None and found.rank != rank:
            self.fail(f"its input {i} should have {rank} dimensions: {found!r}", "give the input another shape")
        return found

    def all_inputs(self) -> list[Operand]:
        """Returns all inputs."""
        return [self.input(i) for i in range(len(self.inputs))]

    def value(self, name: str, default: Any = None) -> Any:
        """Returns an attribute: a number, a truth value, None, a text, or a tuple of these."""
        text = self.node.attributes.get(name)
        if text is None:
            return default
        try:
            return ast.literal_eval(text) if len(text) <= LONGEST else text
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return text

    def text(self, name: str, default: str = "") -> str:
        """Returns an attribute as it is written."""
        return self.node.attributes.get(name, default)

    def number(self, name: str, default: float | None = None) -> float:
        """Returns a number."""
        found = self.value(name, default)
        if isinstance(found, bool) or not isinstance(found, int | float):
            self.wrong(name, "a number")
        return float(found)

    def integer(self, name: str, default: int | None = None) -> int:
        """Returns an integer."""
        found = self.value(name, default)
        if not isinstance(found, int) or abs(found) > LARGEST:
            self.wrong(name, "an integer")
        return int(found)

    def flag(self, name: str, default: bool = False) -> bool:
        """Returns a truth value, which older symbols have as 0 and 1."""
        found = self.value(name, default)
        found = {"true": True, "false": False}.get(found, found) if isinstance(found, str) else found
        if not isinstance(found, int):
            self.wrong(name, "True or False")
        return bool(found)

    def ints(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """Returns a list of integers, which may be given as one."""
        found = self.value(name, default)
        made = [found] if isinstance(found, int) else found
        if not isinstance(made, tuple | list) or not all(isinstance(v, int) and abs(v) <= LARGEST for v in made):
            self.wrong(name, "a list of integers")
        return [int(v) for v in made]

    def numbers(self, name: str, default: Sequence[float]) -> list[float]:
        """Returns a list of numbers, which may be given as one."""
        found = self.value(name, default)
        made = [found] if isinstance(found, int | float) else found
        if not isinstance(made, tuple | list) or not made or not all(isinstance(v, int | float) for v in made):
            self.wrong(name, "a list of numbers")
        return [float(v) for v in made]

    def dtype(self, default: str | None = None) -> DType:
        """Returns the type of elements that the attribute `dtype` names; raises `ModelError` for one that Weft lacks."""
        name = self.text("dtype", default or "")
        name = default if name == "None" and default else name
        short = name.replace("uint", "u").replace("int", "i").replace("bfloat", "bf").replace("float", "f")
        if short not in SCALARS:
            self.fail(f"elements of type {name!r} are not supported", "use float32")
        return SCALARS[short]

    def axes(self, rank: int) -> tuple[int, ...]:
        """Returns the axes of a reduction, counted from the front; all of them where none are given."""
        found = self.value("axis")
        given = range(rank) if found in (None, ()) else self.ints("axis")
        made = {self.axis_of(a, rank) for a in given}
        return tuple(sorted(set(range(rank)) - made if self.flag("exclude") else made))

    def subgraph(self, k: int, given: Sequence[Operand], b: Builder) -> list[Operand]:
        """Returns the results of symbol *k* inside of the node, whose operators *b* adds."""
        if k >= len(self.node.subgraphs):
            self.fail(f"it has {len(self.node.subgraphs)} subgraphs", "save the network again")
        return self.program.run(self.node.subgraphs[k], given, b)

    def wrong(self, name: str, wanted: str) -> NoReturn:
        """Raises `ModelError` about the attribute *name*."""
        self.fail(f"its attribute {name} is {self.node.attributes.get(name)!r}, not {wanted}", "save the network again")
