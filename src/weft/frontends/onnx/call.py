"""One node of a model being imported: the inputs and attributes that a translation reads, and how it adds to the graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

from onnx import GraphProto, NodeProto

from weft.frontends.known_inputs import KnownInputs
from weft.frontends.onnx.held import AnySequence, Held, NoTensor
from weft.frontends.onnx.model_node import attributes_of
from weft.frontends.onnx.rank_choices import RankChoices
from weft.frontends.onnx.string_pool import StringPool
from weft.frontends.random_seeds import RandomSeeds
from weft.graph import UNFIT, Array
from weft.graph.builder import CompileTimeConstant, Operand, PartialEvaluator, Results, static_sizes
from weft.support.errors import UnknownValues

__all__ = ["Call", "Held", "HeldResults", "Operand", "Results", "Subgraph"]

HeldResults: TypeAlias = Held | tuple[Held | None, ...]
"""The results of a node, sequences and optional values among them."""


class Subgraph(Protocol):
    """Imports a nested graph, with operands for the names that it is *given*: into the graph around, or that of an evaluator."""

    def __call__(
        self,
        inner: GraphProto,
        given: Mapping[str, Held],
        evaluator: PartialEvaluator | None = None,
        step: Operand | None = None,
    ) -> list[Held]:
        """Returns its outputs, in the iteration of a loop that has the number *step*."""


class Call(KnownInputs):
    """One ONNX node with its inputs; a translation asks it for inputs and attributes and adds Weft operators through it."""

    def __init__(
        self,
        node: NodeProto,
        inputs: Sequence[Held | None],
        opset: int,
        evaluator: PartialEvaluator,
        subgraph: Subgraph,
        makers: Mapping[str, str],
        source: str,
        strings: StringPool,
        random: RandomSeeds,
    ) -> None:
        super().__init__(evaluator, source)
        self.node = node
        self.held = list(inputs)
        self.inputs = [None if isinstance(v, NoTensor) else v for v in inputs]
        self.opset = opset
        self.subgraph = subgraph
        self._makers = makers
        self.strings = strings
        self.random = random
        self.choices = RankChoices()
        self.declared_rank: int | None = None  # that of the first output, for nodes that may not know it otherwise

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes by name, as Python values; raises `ModelError` for those that the operator can't have."""
        return attributes_of(self.node, self.opset, self.source)

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

    def is_known(self, i: int) -> bool:
        """Tells whether the elements of input *i* are known while the model is imported, symbolic sizes among them."""
        return not self.has(i) or isinstance(self.input(i), CompileTimeConstant)

    def count_of(self, i: int, what: str) -> int:
        """Returns the number of elements of the vector input *i*; raises `ModelError` where it is symbolic."""
        sizes = static_sizes(self.input(i).shape)
        if sizes is None:
            self.fail(f"{what} should be a vector, of a size that is known: {self.input(i)!r}")
        return math.prod(sizes)

    def known(self, i: int, what: str) -> Array:
        """Returns the elements of input *i*; raises `UnknownValues` where they are computed only when the model runs."""
        found = self.input(i)
        if isinstance(found, CompileTimeConstant):
            return found.array
        name = self.node.input[i]
        maker = self._makers.get(name)
        return self.fail(
            f"{what} ({name}) {f'is computed by {maker}' if maker else 'is an input of the model'}, "
            "so it is not known before the model runs",
            "Weft needs it to compile the model; export the model with it as a constant, or fix the shapes it depends on",
            UnknownValues,
        )

    def sequence(self, i: int) -> AnySequence:
        """Returns input *i*, a sequence; raises `ModelError` where it is none."""
        found = self.held[i] if i < len(self.held) else None
        if not isinstance(found, AnySequence):
            self.fail(f"its input {i} should be a sequence: {found!r}", UNFIT)
        return found

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

    # Results

    def wants(self, i: int) -> bool:
        """Tells whether the model names output *i*."""
        return i < len(self.node.output) and bool(self.node.output[i])
