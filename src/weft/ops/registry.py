"""The operator library's one table: an operator is a function from tensors and attributes to tensors.

    @operator("relu")
    def relu(x: Tensor) -> Tensor:
        return compute(x.shape, lambda *i: maximum(x[i], 0), "relu", dtype=x.dtype)

Everything else follows from that one block: the shape and type rule (`Operator.infer`, by giving the function placeholders), the
fusion class (from its formulas), its cost, and its reference result (its loops, interpreted). A formula is written for one type
of floats, and says nothing of precision: on 16-bit floats it is computed in float32 and rounded once (`precision`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar

from weft.ir.expr import Expr
from weft.ops.precision import in_float32
from weft.support.dtypes import DType
from weft.support.errors import TypeMismatch
from weft.support.registry import Registry
from weft.te import Tensor, placeholder, topological

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class TensorType:
    """The shape (index expressions, constants where known) and the element type of a tensor."""

    shape: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True, eq=False)
class Operator:
    """A named operator; positional parameters of its function are tensors, keyword-only ones attributes.

    One that *reads_bits* takes elements as they lie in memory, so it is given no others in their place.
    """

    name: str
    build: Callable[..., Any]
    reads_bits: bool = False

    @cached_property
    def _parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.build).parameters.values())

    @cached_property
    def attributes(self) -> dict[str, inspect.Parameter]:
        """The attributes by name."""
        return {p.name: p for p in self._parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}

    def __call__(self, inputs: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> tuple[Tensor, ...]:
        """Returns the outputs for *inputs* (None for an optional one that is absent)."""
        unknown = set(attributes) - set(self.attributes)
        if unknown:
            raise TypeMismatch(f"{self.name} has no attribute {', '.join(sorted(unknown))}")

        def build(given: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
            made = self.build(*given, **attributes)
            return made if isinstance(made, tuple) else (made,)

        return build(inputs) if self.reads_bits else in_float32(build, inputs)

    def formulas(
        self, inputs: Sequence[TensorType | None], attributes: Mapping[str, Any]
    ) -> tuple[list[Tensor | None], tuple[Tensor, ...]]:
        """Returns placeholders of the types *inputs*, and the outputs as formulas of them."""
        given = [None if t is None else placeholder(t.shape, t.dtype) for t in inputs]
        return given, self(given, attributes)

    def infer(self, inputs: Sequence[TensorType | None], attributes: Mapping[str, Any]) -> tuple[TensorType, ...]:
        """Returns the types of the outputs; raises `TypeMismatch` where the operator does not take *inputs*."""
        _, outputs = self.formulas(inputs, attributes)
        topological(outputs)  # evaluates the formulas, so that what they refuse is known here
        return tuple([TensorType(t.shape, t.dtype) for t in outputs])


OPERATORS: Final = Registry[str, Operator]("operator")


def operator(name: str, *, reads_bits: bool = False) -> Callable[[F], F]:
    """Registers the decorated function as the operator *name*; see `Operator` for *reads_bits*."""

    def register(build: F) -> F:
        if name in OPERATORS:
            raise ValueError(f"the operator {name} is defined twice")
        OPERATORS[name] = Operator(name, build, reads_bits)
        return build

    return register
