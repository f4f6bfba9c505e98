"""Operators of functions: on tensors they are added to the graph, on numbers that are known they are computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn

from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator
from weft.graph.core.graph_values import Value as GraphValue
from weft.graph.functions.items import Builtin, Closure, Item, Partial, applied_to
from weft.graph.functions.lambda_lifting import PARTIAL
from weft.graph.functions.nodes import ENTRY
from weft.ops import OPERATORS
from weft.support.dtypes import DType, bool_, f32, f64, i64
from weft.support.errors import ModelError

SIZE: Final = "size"
"""`size(x, axis)` is a size of a tensor: a number where it is known."""


class Operators:
    """Adds operators for the place in the text that is evaluated: functions are *nested*, and the last one is at *line*."""

    def __init__(self, evaluator: PartialEvaluator) -> None:
        self.evaluator = evaluator
        self.nested: list[str] = []
        self.line = 0

    @property
    def place(self) -> str:
        """Where the text is evaluated."""
        return f"function {self.nested[-1] if self.nested else ENTRY}, line {self.line}"

    @property
    def builder(self) -> Builder:
        """Adds operators for the current line to the graph, or to the region that is built."""
        return Builder(self.evaluator, self.place)

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        """Raises `ModelError` for the place that is evaluated."""
        raise ModelError(message, where=self.place, hint=hint)

    @contextmanager
    def region(self, b: Builder) -> Iterator[None]:
        """Adds operators to the region of *b*."""
        around, self.evaluator = self.evaluator, b.evaluator
        try:
            yield
        finally:
            self.evaluator = around

    def built_in(self, name: str, given: Sequence[Item], keywords: Mapping[str, Item]) -> Item:
        """Returns the value of an operator, or of a function of the language, by name."""
        if name == PARTIAL:
            return self.partial(given)
        if name == SIZE:
            return self.size(given)
        if name not in OPERATORS:
            self.fail(f"there is no operator {name}")
        tensors = [v for v in given if isinstance(v, GraphValue | CompileTimeConstant)]
        dtype = tensors[0].dtype if tensors else _type_of_numbers(given)
        operands = [None if v is None else self.tensor(v, f"an operand of {name}", dtype) for v in given]
        made = self.builder.add_many(name, *operands, **keywords)
        results = made if tensors or keywords else [_as_number(v) for v in made]
        return results[0] if len(results) == 1 else tuple(results)

    def partial(self, given: Sequence[Item]) -> Partial:
        """Returns a function with its first arguments."""
        callee, first = applied_to(given[0] if given else None)
        if not isinstance(callee, Closure | Builtin):
            self.fail(f"{PARTIAL} takes a function and its first arguments")
        return Partial(callee, (*first, *given[1:]))

    def size(self, given: Sequence[Item]) -> Item:
        """Returns a size of a tensor: a number, or a tensor where it is symbolic."""
        if len(given) != 2 or not isinstance(given[0], GraphValue | CompileTimeConstant) or type(given[1]) is not int:
            self.fail(f"{SIZE} takes a tensor and the number of a dimension", f"write {SIZE}(x, 0)")
        size = self.builder.size(given[0].shape[self.builder.axis_of(given[1], given[0].rank)])
        return size if size.symbolic else int(size.array.item())

    def tensor(self, v: Item, what: str, dtype: DType | None = None) -> Operand:
        """Returns a tensor: a number becomes one of *dtype*, else of f32 or i64."""
        if isinstance(v, GraphValue | CompileTimeConstant):
            return v
        if isinstance(v, bool | int | float):
            own = bool_ if isinstance(v, bool) else i64 if isinstance(v, int) else f32
            return self.builder.scalar(v, own if dtype is None or own is bool_ else dtype)
        return self.fail(f"{what} should be a tensor, and is {v!r}")

    def tensors(self, v: Item, what: str) -> list[Operand]:
        """Returns the tensors of a tuple, or the one that there is."""
        return [self.tensor(x, what) for x in (v if isinstance(v, tuple) else (v,))]


def _type_of_numbers(given: Sequence[Item]) -> DType | None:
    """Returns the type in which numbers are computed that are known: f64 if there is a fraction among them."""
    return f64 if any(isinstance(v, float) for v in given) else None


def _as_number(v: Operand) -> Item:
    """Returns a tensor of one element as a number, where it is known."""
    if not isinstance(v, CompileTimeConstant) or v.symbolic or v.rank > 0:
        return v
    number: bool | int | float = v.array.item()
    return number
