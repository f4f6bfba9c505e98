"""Sequences of tensors and optional values: their structure is known at import, so that a graph has tensors alone.

    seq = SequenceConstruct(a, b); y = SequenceAt(seq, 1)     becomes     y = b

An input that is a sequence becomes an input for each of its tensors, `seq[0]`, `seq[1]` and so on, and so does an output. The
caller says how many they are: `shapes={"seq": [(2, 3), (4,)]}`, or None for an optional input that is absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from onnx import TypeProto, ValueInfoProto

from weft.frontends.input_shapes import Size
from weft.frontends.onnx.file.tensors import element_type
from weft.graph.builder import Operand
from weft.runtime.metadata import Labels
from weft.support.dim import Dim
from weft.support.dtypes import DType
from weft.support.errors import ModelError, UnknownValues

Shape: TypeAlias = Sequence[Size]
Given: TypeAlias = int | Dim | Shape | Sequence[Shape] | None
"""A caller's setting for an input or a dimension: a size, a range, a shape, shapes of a sequence's tensors, or its absence."""


@dataclass(frozen=True)
class TensorSequence:
    """A sequence of tensors of one type of elements."""

    elements: tuple[Operand, ...]
    dtype: DType

    def __repr__(self) -> str:
        return f"a sequence of {len(self.elements)} tensors of {self.dtype}"


class Absent:
    """An optional value that holds nothing."""

    def __repr__(self) -> str:
        return "an optional value that is absent"


ABSENT: Final = Absent()


@dataclass(frozen=True)
class Strings:
    """A tensor of strings, as the ids of these (`string_pool`)."""

    ids: Operand

    def __repr__(self) -> str:
        return f"a tensor of strings of shape [{', '.join(map(str, self.ids.shape))}]"


@dataclass(frozen=True)
class Maps:
    """A sequence of maps from labels to scores [N, labels]."""

    scores: Operand
    labels: Labels

    def __repr__(self) -> str:
        return f"a sequence of maps from {len(self.labels)} labels"


NoTensor: TypeAlias = TensorSequence | Absent | Strings | Maps
"""The values that operators on tensors of numbers do not take."""

Held: TypeAlias = Operand | NoTensor
"""The value of a name in a model."""


def tensors_of(held: Held) -> tuple[Operand, ...]:
    """Returns the tensors that a value is made of."""
    if isinstance(held, TensorSequence):
        return held.elements
    if isinstance(held, Strings):
        return (held.ids,)
    if isinstance(held, Maps):
        return (held.scores,)
    return () if isinstance(held, Absent) else (held,)


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


@dataclass(frozen=True)
class InputParts:
    """The tensors of one input of a model; they are its inputs in its place. *sequence* is the type of a sequence's elements."""

    name: str
    tensors: tuple[ValueInfoProto, ...]
    sequence: DType | None

    def held(self, made: Mapping[str, Held | None]) -> Held:
        """Returns the value of the input, where its tensors are those of *made*."""
        found = [made[t.name] for t in self.tensors]
        if self.sequence is not None:
            return TensorSequence(tuple([t for f in found if f is not None for t in tensors_of(f)]), self.sequence)
        return next((f for f in found if f is not None), ABSENT)


def input_parts(info: ValueInfoProto, given: Mapping[str, Given], fixed: Mapping[str, object]) -> InputParts:
    """Returns the tensors of an input, of the shapes *given*; those that are *fixed* are there, too.

    Raises `ModelError` for an input of another kind, and `UnknownValues` for one whose structure is not given.
    """
    kind, tensor, optional = kind_of(info.type)
    if kind not in ("tensor_type", "sequence_type") or tensor.WhichOneof("value") != "tensor_type":
        what = "a value without a type" if not kind else f"a {kind.removesuffix('_type')}"
        raise ModelError(
            f"the input {info.name!r} is {what}; only tensors, sequences of them and optional ones are supported",
            hint="export the model with tensors for inputs",
        )
    if kind == "tensor_type" and not optional:
        return InputParts(info.name, (info,), None)
    sequence = element_type(tensor.tensor_type.elem_type, f"input {info.name}") if kind == "sequence_type" else None
    if info.name not in given and info.name not in fixed:
        raise _unknown(info.name, is_sequence=sequence is not None, optional=optional)
    found = given.get(info.name, ())
    if info.name in given and found is None:
        return _absent(info.name, optional=optional)
    if sequence is None:
        return InputParts(info.name, (ValueInfoProto(name=info.name, type=tensor),), None)
    count = len(found) if isinstance(found, Sequence) else 0
    parts = [ValueInfoProto(name=part_name(info.name, k), type=_unnamed(tensor)) for k in range(count)]
    return InputParts(info.name, tuple(parts), sequence)


def _unknown(name: str, *, is_sequence: bool, optional: bool) -> UnknownValues:
    what, example = ("a sequence", "[(2, 3), (4,)]") if is_sequence else ("optional", "(2, 3)")
    return UnknownValues(
        f"the input {name!r} is {what}, and what it holds is not known before the model runs",
        hint=f'give the shapes of its tensors: shapes={{"{name}": {example}}}'
        + (", or None where it is absent" if optional else ""),
    )


def _absent(name: str, *, optional: bool) -> InputParts:
    if not optional:
        raise ModelError(
            f"shapes gives None for the input {name!r}, which is not optional",
            hint=f'give the shapes of its tensors: shapes={{"{name}": [(2, 3), (4,)]}}',
        )
    return InputParts(name, (), None)


def _unnamed(tensor: TypeProto) -> TypeProto:
    """Returns the type without names of sizes: tensors of a sequence may differ in them."""
    made = TypeProto()
    made.CopyFrom(tensor)
    for d in made.tensor_type.shape.dim:
        d.ClearField("dim_param")
    return made


def shapes_of_parts(parts: Sequence[InputParts], given: Mapping[str, Given]) -> dict[str, int | Dim | Shape]:
    """Returns the shapes and sizes *given*, those of sequences by the names of their tensors."""
    made = {}
    sequences = {p.name: p for p in parts if p.sequence is not None or not p.tensors}
    for name, shape in given.items():
        if name not in sequences:
            made[name] = shape
        elif isinstance(shape, Sequence):
            made |= {t.name: s for t, s in zip(sequences[name].tensors, shape, strict=True)}
    return made  # type: ignore[return-value] # only shapes and sizes remain
