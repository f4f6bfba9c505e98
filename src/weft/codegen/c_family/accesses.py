"""Loads, stores and addresses in C: of one element, of neighbours as a vector, of any lanes one by one."""

from __future__ import annotations

from collections.abc import Callable

from weft.codegen.c_family.c_types import memory_type, scalar_type
from weft.codegen.c_family.expressions import if_any, is_whole, lanes, vector
from weft.codegen.c_family.vector_words import MemoryVectors
from weft.codegen.c_family.writer import Value, Vector, Writer, writes
from weft.ir import Const, Expr, Ramp, known_divisor
from weft.loop import Address, Buffer, Load, Store
from weft.support.dtypes import DType
from weft.targets import Sight, sight_of


def only_index(f: Writer, buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """Returns the one index of a flat buffer's access."""
    if len(indices) != 1:
        raise f.error(f"{buffer.name} is accessed with {len(indices)} indices", hint="flatten buffers before this")
    return indices[0]


def places(f: Writer, buffer: Buffer, index: Expr) -> list[str]:
    """Returns where each lane of an access lies, in scalars of the buffer's type; an element may be a vector itself."""
    inner = buffer.dtype.lanes
    found = [f.temporary(DType("int", 64), i) if inner > 1 else i for i in lanes(f, index)]
    if inner == 1:
        return found
    return [f"{inner} * {i} + {k}" for i in found for k in range(inner)]


def neighbours(f: Writer, buffer: Buffer, index: Expr) -> str | None:
    """Returns where an access of lanes that lie side by side begins; None for others."""
    if index.dtype.lanes == 1:
        return f"{buffer.dtype.lanes} * {f.scalar(index)}"
    if isinstance(index, Ramp) and isinstance(index.stride, Const) and index.stride.value == 1:
        begin = f.scalar(index.base)
        return begin if buffer.dtype.lanes == 1 else f"{buffer.dtype.lanes} * {begin}"
    return None


@writes(Load)
def _load(f: Writer, e: Load) -> Value:
    index, name = only_index(f, e.buffer, e.indices), f.name(e.buffer)
    if e.dtype.lanes > 1 and not f.masks and is_whole(f, e.dtype):
        begin = neighbours(f, e.buffer, index)
        if begin is not None:
            kind, own = f.vector_type(e.dtype), _own(f, e.buffer, index, e.dtype)
            place = f"{name} + {begin}"
            return Vector(f.words.load(e.dtype, place) if own is None else own(kind, place))
    if (
        f.dialect.memory_vectors is not None
        and not f.masks
        and (at := aligned(f, e.buffer, index, e.dtype)) is not None
    ):
        return _loaded_at_once(f, f.dialect.memory_vectors, e, f"{name} + {at}")
    made = [f"{name}[{i}]" for i in places(f, e.buffer, index)]
    if e.dtype.is_bool:
        made = [f"({x} != 0)" for x in made]
    if e.dtype.lanes == 1:
        return if_any(f, made[0])
    return tuple([f.temporary(e.dtype.element, x) for x in _masked(f, made)])


def aligned(f: Writer, buffer: Buffer, index: Expr, dtype: DType) -> str | None:
    """Returns where a vector that is accessed at once begins, at a multiple of its lanes; None for others.

    Buffers that others see begin at a multiple of `ALIGNMENT` bytes; those of a thread are registers, if the compiler likes.
    """
    words = f.dialect.memory_vectors
    if words is None or not words.has(dtype) or buffer.dtype.lanes != 1 or sight_of(buffer.scope) is Sight.THREAD:
        return None
    if not isinstance(index, Ramp) or known_divisor(index.base) % words.lanes(dtype) != 0:
        return None
    return neighbours(f, buffer, index)


def _own(f: Writer, buffer: Buffer, index: Expr, dtype: DType) -> Callable[[str, str], str] | None:
    """Returns how a vector of a thread's own memory is written, which begins at a multiple of its lanes; None for others."""
    is_own = sight_of(buffer.scope) is Sight.THREAD and buffer.dtype.lanes == 1
    at = isinstance(index, Ramp) and known_divisor(index.base) % dtype.lanes == 0
    return f.words.own if is_own and at else None


def _loaded_at_once(f: Writer, words: MemoryVectors, e: Load, place: str) -> Value:
    kind = words.words(e.dtype)
    pointer = f"{f.dialect.address_space(e.buffer.scope)}const {kind} *"
    made: list[str] = []
    for n in range(0, e.dtype.lanes, words.lanes(e.dtype)):
        name, at = f.fresh("v"), f"({pointer})({place}{f' + {n}' if n else ''})"
        f.local(name, f"const {kind} {name} = *{at};")
        made += words.taken_apart(name, e.dtype)
    return tuple(made)


def _stored_at_once(f: Writer, words: MemoryVectors, s: Store, place: str) -> None:
    dtype, values = s.value.dtype, lanes(f, s.value)
    pointer = f"{f.dialect.address_space(s.buffer.scope)}{words.words(dtype)} *"
    each = words.lanes(dtype)
    for n in range(0, dtype.lanes, each):
        vector_ = words.put_together(dtype, values[n : n + each])
        f.line(f"*({pointer})({place}{f' + {n}' if n else ''}) = {vector_};")


def _masked(f: Writer, elements: list[str]) -> list[str]:
    """Returns *elements* with 0 in lanes that the current mask excludes; elements that are vectors are masked as a whole."""
    mask = f.masks[-1] if f.masks else None
    if mask is None or len(elements) % len(mask):
        return elements
    if len(elements) == len(mask):
        return [f"({on} ? {x} : 0)" for on, x in zip(mask, elements, strict=True)]
    return [if_any(f, x) for x in elements]


@writes(Address)
def _address(f: Writer, e: Address) -> Value:
    index, scale = f.scalar(only_index(f, e.buffer, e.indices)), e.buffer.dtype.lanes
    name = f.name(e.buffer)
    if index == "0":
        return name
    return f"({name} + {index})" if scale == 1 else f"({name} + {scale} * {index})"


def store(f: Writer, s: Store) -> None:
    """Writes a store in the lanes where its mask holds, the first lane first."""
    index, name, dtype = only_index(f, s.buffer, s.indices), f.name(s.buffer), s.value.dtype
    if dtype.lanes > 1 and s.mask is None and is_whole(f, dtype):
        begin = neighbours(f, s.buffer, index)
        if begin is not None:
            kind, own = f.vector_type(dtype), _own(f, s.buffer, index, dtype)
            place, value = f"{name} + {begin}", vector(f, s.value)
            f.line(f"{f.words.store(dtype, place, value) if own is None else f'{own(kind, place)} = {value}'};")
            return
    words = f.dialect.memory_vectors
    if words is not None and s.mask is None and (at := aligned(f, s.buffer, index, dtype)) is not None:
        piece = f.dialect.piece
        _stored_at_once(f, words, s, f"{name} + {at}" if piece is None else piece(f, s.buffer, at))
        return
    _store_lanes(f, s, index)


def _store_lanes(f: Writer, s: Store, index: Expr) -> None:
    """Writes a store lane by lane."""
    name, dtype, values = f.name(s.buffer), s.value.dtype, lanes(f, s.value)
    if len(values) > 1:  # all are read before the first is written
        values = tuple([f.temporary(dtype.element, x) for x in values])
    where = places(f, s.buffer, index)
    conds = [None] * len(where) if s.mask is None else list(lanes(f, s.mask))
    for at, x, cond in zip(where, values, conds, strict=True):
        stored = f"({memory_type(dtype)}){x}" if scalar_type(dtype) != memory_type(dtype) else x
        f.line(f"{name}[{at}] = {stored};" if cond is None else f"if ({cond}) {name}[{at}] = {stored};")
