"""The forms of values, which the branches of an `If` and the iterations of a `Loop` must have in common.

one sequence of 2 tensors, another of 3     both become a `LateSequence`
one absent, another a tensor                both become a `LateOptional`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from weft.frontends.onnx.held import (
    ABSENT,
    Absent,
    AnySequence,
    Held,
    LateOptional,
    NoTensor,
    Present,
    TensorSequence,
    held_present,
    tensors_of,
)
from weft.graph.builder import Builder, Operand
from weft.graph.composites.run_time.late_sequences import LateSequence, sequence_of, widened
from weft.ir import ONE
from weft.support.dtypes import DType, bool_


@dataclass(frozen=True)
class TensorForm:
    """A tensor."""

    dtype: DType
    rank: int


@dataclass(frozen=True)
class FixedForm:
    """A sequence of tensors of known ranks."""

    dtype: DType
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class LateForm:
    """A `LateSequence` with room for *columns* sizes of a tensor."""

    dtype: DType
    rank: int | None
    columns: int


@dataclass(frozen=True)
class OptionalForm:
    """An optional value; None is one that is always absent."""

    held: TensorForm | FixedForm | LateForm | None


@dataclass(frozen=True)
class OtherForm:
    """A value of another class, made of *count* tensors."""

    of: type
    count: int


Form: TypeAlias = TensorForm | FixedForm | LateForm | OptionalForm | OtherForm


def form_of(held: Held) -> Form:
    """Returns the form of a value."""
    if isinstance(held, TensorSequence):
        return FixedForm(held.dtype, tuple([x.rank for x in held.elements]))
    if isinstance(held, LateSequence):
        return LateForm(held.dtype, held.rank, held.columns)
    if isinstance(held, Absent):
        return OptionalForm(None)
    if isinstance(held, LateOptional):
        inner = form_of(held.held)
        assert isinstance(inner, TensorForm | FixedForm | LateForm)
        return OptionalForm(inner)
    if isinstance(held, NoTensor):
        return OtherForm(type(held), len(tensors_of(held)))
    return TensorForm(held.dtype, held.rank)


def joined(a: Form, b: Form) -> Form | None:
    """Returns the form that values of both forms can have; None where there is none."""
    if a == b or (isinstance(a, TensorForm) and isinstance(b, TensorForm)):
        return a  # regions tell of types and ranks of tensors that differ
    if isinstance(a, OptionalForm):
        return _optional(a.held, b.held if isinstance(b, OptionalForm) else b)
    if isinstance(b, OptionalForm):
        return _optional(b.held, a)
    if isinstance(a, FixedForm | LateForm) and isinstance(b, FixedForm | LateForm) and a.dtype is b.dtype:
        ranks = {*_ranks(a), *_ranks(b)}
        return LateForm(a.dtype, ranks.pop() if len(ranks) == 1 else None, max(_columns(a), _columns(b)))
    return None


def _optional(a: Form | None, b: Form | None) -> Form | None:
    """Returns the form of optional values, if there are such, that hold values of both forms."""
    inner = b if a is None else a if b is None else joined(a, b)
    return OptionalForm(inner) if isinstance(inner, TensorForm | FixedForm | LateForm) else None


def _ranks(form: FixedForm | LateForm) -> Sequence[int | None]:
    return [form.rank] if isinstance(form, LateForm) else form.ranks


def _columns(form: FixedForm | LateForm) -> int:
    return form.columns if isinstance(form, LateForm) else max(form.ranks, default=0)


def as_form(b: Builder, held: Held, form: Form) -> Held:
    """Returns a value in a form that is `joined` of its own."""
    if isinstance(form, LateForm):
        assert isinstance(held, AnySequence)
        rank = form.rank if isinstance(held, TensorSequence) and not held.elements else None
        late = sequence_of(b, held.elements, held.dtype, rank) if isinstance(held, TensorSequence) else held
        return widened(b, late, form.columns, form.rank)
    if not isinstance(form, OptionalForm) or form.held is None:
        return held
    if isinstance(held, Absent):
        return LateOptional(b.scalar(False, bool_), _nothing(b, form.held))
    present = held.present if isinstance(held, LateOptional) else b.scalar(True, bool_)
    inner = as_form(b, held.held if isinstance(held, LateOptional) else held, form.held)
    return LateOptional(present, held_present(inner))


def _nothing(b: Builder, form: TensorForm | FixedForm | LateForm) -> Present:
    """Returns the placeholder of an absent value's elements."""
    if isinstance(form, TensorForm):
        return b.add("full", shape=(ONE,) * form.rank, value=0, dtype=form.dtype)
    if isinstance(form, LateForm):
        return widened(b, sequence_of(b, (), form.dtype, form.rank), form.columns, form.rank)
    return TensorSequence(
        tuple([b.add("full", shape=(ONE,) * rank, value=0, dtype=form.dtype) for rank in form.ranks]), form.dtype
    )


def held_of(forms: Sequence[Form], tensors: Sequence[Operand]) -> tuple[Held, ...]:
    """Returns values of *forms* that are made of *tensors*, in order."""
    rest = iter(tensors)
    return tuple([_taken(form, lambda: next(rest)) for form in forms])


def _taken(form: Form, take: Callable[[], Operand]) -> Held:
    if isinstance(form, LateForm):
        return LateSequence(take(), take(), form.rank)
    if isinstance(form, FixedForm):
        return TensorSequence(tuple([take() for _ in form.ranks]), form.dtype)
    if not isinstance(form, OptionalForm):
        return take()
    if form.held is None:
        return ABSENT
    return LateOptional(take(), held_present(_taken(form.held, take)))
