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
from typing import Any, ClassVar, Final, TypeVar

from weft.ir import Binary, Expr
from weft.ops.derived_facts import arithmetic_of
from weft.ops.folding import Fold
from weft.ops.output_channels import Contraction
from weft.ops.precision import in_float32
from weft.support.dtypes import DType, f32
from weft.support.errors import TypeMismatch, WeftError
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

    One that *reads_bits* takes elements as they lie in memory, so it is given no others in their place. *fold* evaluates the
    operator on NumPy arrays while a model is imported; its result is the formula's. Operators without one are left to the
    graph's constant folding.

    These facts no formula shows, so its block declares them; `tests/ops/test_facts.py` checks each on the operator's samples.
    *along* names the attribute with the axis or the axes that the operator works along: it does the same at each index of the
    other dimensions. One *per_channel* computes each channel (dimension 1) alone, and carries along dimensions behind the
    places [H, W], so that on channels in blocks [N, C/b, H, W, b] it computes the same as on [N, C, H, W]. A *contraction*
    tells where the output channels lie. One that *prepares* weights makes another form of constants; a pass that adds it has
    weighed their size. One that *renames* gives its operand's elements another shape in their order, of which a check of late
    sizes tells, and no formula, that it has as many. The operand of one that *keeps_operand* stays in use beside the result,
    which consists of its elements. One that *unpacks* makes more bytes of the same elements: constants are held packed. One
    *on_host* calls a host operator, whose results mean something in the call alone that computes them: it is not evaluated while
    compiling. It names the feature of the runtime that has it, by which one without refuses the model.
    """

    has_regions: ClassVar[bool] = False
    name: str
    build: Callable[..., Any]
    reads_bits: bool = False
    fold: Fold | None = None
    along: str | None = None
    per_channel: bool = False
    contraction: Contraction | None = None
    prepares: bool = False
    renames: bool = False
    keeps_operand: bool = False
    unpacks: bool = False
    on_host: str = ""

    @cached_property
    def parameters(self) -> list[inspect.Parameter]:
        """The parameters of its function: tensors, then attributes."""
        return list(inspect.signature(self.build).parameters.values())

    @cached_property
    def attributes(self) -> dict[str, inspect.Parameter]:
        """The attributes by name."""
        return {p.name: p for p in self.parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}

    @property
    def updates_in_place(self) -> bool:
        """Tells whether its result may be in the memory of its first input, of which it changes some elements."""
        return "in_place" in self.attributes

    @property
    def orders_updates(self) -> bool:
        """Tells whether it is a scatter, whose updates are applied in their order or, if it is told so, in any."""
        return "any_order" in self.attributes

    @cached_property
    def arithmetic(self) -> type[Binary] | None:
        """The class of the node that it applies to its two operands, if it does nothing else with floats."""
        if len(self.parameters) != 2 or any(
            p.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD for p in self.parameters
        ):
            return None
        try:
            return arithmetic_of(*self.formulas([TensorType((), f32)] * 2, {}))
        except (WeftError, ArithmeticError, LookupError, TypeError, ValueError):  # it takes no scalars of floats
            return None

    @property
    def is_commutative(self) -> bool:
        """Tells whether its two operands may change places."""
        return self.arithmetic is not None and self.arithmetic.commutative

    @property
    def is_convolution(self) -> bool:
        """Tells whether it is a contraction over windows: of [N, C, *places] with a weight, to channels in dimension 1."""
        return self.contraction is not None and self.contraction.channel_axis == 1

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
        topological(outputs)  # evaluates the formulas, so that their errors are raised here
        return tuple([TensorType(t.shape, t.dtype) for t in outputs])


OPERATORS: Final = Registry[str, Operator]("operator")


def operator(
    name: str,
    *,
    reads_bits: bool = False,
    fold: Fold | None = None,
    along: str | None = None,
    per_channel: bool = False,
    contraction: Contraction | None = None,
    prepares: bool = False,
    renames: bool = False,
    keeps_operand: bool = False,
    unpacks: bool = False,
    on_host: str = "",
) -> Callable[[F], F]:
    """Registers the decorated function as the operator *name*; see `Operator` for its facts."""

    def register(build: F) -> F:
        if name in OPERATORS:
            raise ValueError(f"the operator {name} is defined twice")
        OPERATORS[name] = Operator(
            name,
            build,
            reads_bits,
            fold,
            along,
            per_channel,
            contraction,
            prepares,
            renames,
            keeps_operand,
            unpacks,
            on_host,
        )
        return build

    return register
