"""The inputs of a model that are sequences or optional: their tensors are inputs in their place.

    seq: sequence of f32[n, 3]      seq.elements: f32[..], seq.shapes: i64[.., 3]     see `LateSequence`
    opt: optional f32[4]            opt.present: bool, opt: f32[4]                    any elements, where it is absent

By `shapes={"seq": [(2, 3), (4,)]}` they are `seq[0]` and `seq[1]`; by `shapes={"opt": None}` there is no input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from onnx import TensorProto, TypeProto, ValueInfoProto, helper

from weft.cost import MOST_SIZES_OF_ELEMENTS
from weft.frontends.input_shapes import Size
from weft.frontends.onnx.file.tensors import ELEMENT_CODES, element_type
from weft.frontends.onnx.held import (
    ABSENT,
    Held,
    LateOptional,
    TensorSequence,
    held_present,
    kind_of,
    part_name,
    tensors_of,
)
from weft.graph.builder import Builder
from weft.graph.composites.run_time import late_sequences
from weft.graph.composites.run_time.late_sequences import LateSequence
from weft.runtime.held_values import ELEMENTS, PRESENT, SHAPES
from weft.support.dim import Dim
from weft.support.dtypes import DType
from weft.support.errors import ModelError, UnknownValues

Shape: TypeAlias = Sequence[Size]
Given: TypeAlias = int | Dim | Shape | Sequence[Shape] | None
"""A caller's setting for an input or a dimension: a size, a range, a shape, shapes of a sequence's tensors, or its absence."""


@dataclass(frozen=True)
class InputParts:
    """The tensors of one input of a model; they are its inputs in its place. *sequence* is the type of a sequence's elements.

    Of a *late* one only a run tells the structure; it may be absent if it is *optional*. *rank* is that of a sequence's tensors.
    """

    name: str
    tensors: tuple[ValueInfoProto, ...]
    sequence: DType | None
    late: bool = False
    optional: bool = False
    rank: int | None = None

    def held(self, b: Builder, made: Mapping[str, Held | None]) -> Held:
        """Returns the value of the input, where its tensors are those of *made*."""
        found = [made[t.name] for t in self.tensors]
        parts = [t for f in found if f is not None for t in tensors_of(f)]
        if self.late:
            present = parts.pop(0) if self.optional else None
            held: Held = parts[0]
            if self.sequence is not None:
                held = late_sequences.checked(b, LateSequence(parts[0], parts[1], self.rank), f"the input {self.name}")
            return held if present is None else LateOptional(present, held_present(held))
        if self.sequence is not None:
            return TensorSequence(tuple(parts), self.sequence)
        return next((f for f in found if f is not None), ABSENT)

    def shapes(self, given: Given) -> dict[str, int | Dim | Shape]:
        """Returns the shapes of its tensors, of a value that a caller has *given* shapes, or of a late one."""
        if self.late and self.sequence is not None:
            columns = MOST_SIZES_OF_ELEMENTS if self.rank is None else self.rank
            elements, shapes = self.tensors[-2:]
            return {elements.name: (Dim(0),), shapes.name: (Dim(0), 1 + columns)}
        if not isinstance(given, Sequence):
            return {}
        return {t.name: s for t, s in zip(self.tensors, given, strict=True)}


def input_parts(info: ValueInfoProto, given: Mapping[str, Given], fixed: Mapping[str, object]) -> InputParts:
    """Returns the tensors of an input, of the shapes *given*; those that are *fixed* are there, too.

    Raises `ModelError` for an input of another kind, and `UnknownValues` for an optional tensor without a number of dimensions.
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
        return _late_parts(info.name, tensor, sequence, optional=optional)
    found = given.get(info.name, ())
    if info.name in given and found is None:
        return _absent(info.name, optional=optional)
    if sequence is None:
        return InputParts(info.name, (ValueInfoProto(name=info.name, type=tensor),), None)
    count = len(found) if isinstance(found, Sequence) else 0
    parts = [ValueInfoProto(name=part_name(info.name, k), type=_unnamed(tensor)) for k in range(count)]
    return InputParts(info.name, tuple(parts), sequence)


def _late_parts(name: str, tensor: TypeProto, sequence: DType | None, *, optional: bool) -> InputParts:
    """Returns the tensors of an input of which only a run tells the structure."""
    has_rank = tensor.tensor_type.HasField("shape")
    parts = [helper.make_tensor_value_info(name + PRESENT, TensorProto.BOOL, ())] if optional else []
    if sequence is not None:
        elements = helper.make_tensor_value_info(name + ELEMENTS, ELEMENT_CODES[sequence], (None,))
        shapes = helper.make_tensor_value_info(name + SHAPES, TensorProto.INT64, (None, None))
        parts += [elements, shapes]
    elif has_rank:
        parts.append(ValueInfoProto(name=name, type=tensor))
    else:
        raise UnknownValues(
            f"the input {name!r} is optional, and its number of dimensions is not known before the model runs",
            hint=f'give its shape: shapes={{"{name}": (2, 3)}}, or None where it is absent',
        )
    rank = len(tensor.tensor_type.shape.dim) if has_rank and sequence is not None else None
    return InputParts(name, tuple(parts), sequence, late=True, optional=optional, rank=rank)


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
    of_parts = {p.name: p for p in parts if p.late or p.sequence is not None or not p.tensors}
    for name, shape in given.items():
        if name not in of_parts:
            made[name] = shape
    for name, p in of_parts.items():
        made |= p.shapes(given.get(name))
    return made  # type: ignore[return-value] # only shapes and sizes remain
