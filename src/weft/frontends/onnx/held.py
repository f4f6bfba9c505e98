"""Sequences of tensors and optional values: a graph has tensors alone.

    seq = SequenceConstruct(a, b); y = SequenceAt(seq, 1)     becomes     y = b

A sequence whose structure is known at import is a tuple of tensors; another is a `LateSequence` of two, and an optional value is
what it holds, beside a flag. An input that is a sequence becomes the inputs `seq.elements` and `seq.shapes`, an optional one has
`seq.present` before its own; so do outputs. Where the caller says how many tensors there are, `shapes={"seq": [(2, 3), (4,)]}`,
or None for an optional input that is absent, there is an input for each, `seq[0]`, `seq[1]` and so on; and so there is an output
for each where their number is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from onnx import TypeProto

from weft.frontends.string_ids import Strings
from weft.graph.builder import Operand
from weft.graph.composites.run_time.late_sequences import LateSequence
from weft.runtime.held_values import ELEMENTS, PRESENT, SHAPES
from weft.runtime.metadata import Labels
from weft.support.dtypes import DType


@dataclass(frozen=True)
class TensorSequence:
    """A sequence of tensors of one type of elements."""

    elements: tuple[Operand, ...]
    dtype: DType

    def __repr__(self) -> str:
        return f"a sequence of {len(self.elements)} tensors of {self.dtype}"


AnySequence: TypeAlias = TensorSequence | LateSequence

Present: TypeAlias = Operand | AnySequence
"""The contents of an optional value that is present."""


@dataclass(frozen=True)
class LateOptional:
    """A value that a run may find absent: *present* is true or false, and *held* has any elements where it is not."""

    present: Operand
    held: Present

    def __repr__(self) -> str:
        return "an optional value, of which only a run tells whether it is there"


class Absent:
    """An optional value that holds nothing."""

    def __repr__(self) -> str:
        return "an optional value that is absent"


ABSENT: Final = Absent()


@dataclass(frozen=True)
class Maps:
    """A sequence of maps from labels to scores [N, labels]."""

    scores: Operand
    labels: Labels

    def __repr__(self) -> str:
        return f"a sequence of maps from {len(self.labels)} labels"


NoTensor: TypeAlias = AnySequence | LateOptional | Absent | Strings | Maps
"""The values that operators on tensors of numbers do not take."""

Held: TypeAlias = Operand | NoTensor
"""The value of a name in a model."""


def tensors_of(held: Held) -> tuple[Operand, ...]:
    """Returns the tensors that a value is made of."""
    if isinstance(held, TensorSequence):
        return held.elements
    if isinstance(held, LateSequence):
        return held.elements, held.shapes
    if isinstance(held, LateOptional):
        return held.present, *tensors_of(held.held)
    if isinstance(held, Strings):
        return (held.ids,)
    if isinstance(held, Maps):
        return (held.scores,)
    return () if isinstance(held, Absent) else (held,)


def held_present(held: Held) -> Present:
    """Returns the contents of an optional value; raises `TypeError` for a value that can't be optional."""
    if isinstance(held, NoTensor) and not isinstance(held, AnySequence):
        raise TypeError(f"{held!r} can't be optional")
    return held


def named_tensors(name: str, held: Held) -> list[tuple[str, Operand]]:
    """Returns the tensors of the output *name* of a model, by the names that the graph has for them."""
    if isinstance(held, LateOptional):
        return [(name + PRESENT, held.present), *named_tensors(name, held.held)]
    if isinstance(held, LateSequence):
        return [(name + ELEMENTS, held.elements), (name + SHAPES, held.shapes)]
    if isinstance(held, TensorSequence):
        return [(part_name(name, k), x) for k, x in enumerate(held.elements)]
    return [(name, x) for x in tensors_of(held)]


def part_name(name: str, k: int) -> str:
    """Returns the name of an input or output that is tensor *k* of the sequence *name*."""
    return f"{name}[{k}]"


def kind_of(type_: TypeProto) -> tuple[str, TypeProto, bool]:
    """Returns the kind of a type (`tensor_type`, `sequence_type` ...), the type of its tensors, and whether it is optional."""
    kind, optional = type_.WhichOneof("value"), False
    if kind == "optional_type":
        type_, optional = type_.optional_type.elem_type, True
        kind = type_.WhichOneof("value")
    if kind == "sequence_type":
        return kind, type_.sequence_type.elem_type, optional
    return kind or "", type_, optional
