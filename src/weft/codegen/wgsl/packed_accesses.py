"""Loads and stores in WGSL: elements of a binding, from where the buffer begins in it, or of an array of a block or thread.

A buffer of which all accesses are of four elements of 32 bits at a multiple of four is an array of vectors, `array<vec4<f32>>`.

Memory that other threads see is in words: `X[i]` of an element of 8 bits is

    (X[k >> 2u] >> ((k & 3u) * 8u)) & 255u,  k = X_at + i

and its store changes the element's own bits alone, by an exclusive or that is one atomic operation: threads beside each other
share the word, and none changes the bits that another does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.codegen.c_family.accesses import only_index
from weft.codegen.c_family.c_types import is_half
from weft.codegen.c_family.expressions import lanes
from weft.codegen.c_family.writer import Value
from weft.codegen.wgsl.expressions import low_word, writes
from weft.codegen.wgsl.kernel_writer import KernelWriter
from weft.codegen.wgsl.wgsl_types import WIDE, is_packed, is_wide, packed_bits, value_type
from weft.ir import ONE, Const, Ramp, known_divisor
from weft.loop import Address, Buffer, Load, Store
from weft.targets import Sight, sight_of

QUAD: Final = "xyzw"
"""The lanes of a vector of four."""

QUAD_TYPE: Final = {"float": "vec4<f32>", "int": "vec4<i32>", "uint": "vec4<u32>"}
"""The vectors of four elements of 32 bits, by the kind of these."""


def is_bound(buffer: Buffer) -> bool:
    """Tells whether *buffer* is memory of the device, which is bound to the kernel, and not of a block or a thread."""
    return sight_of(buffer.scope) is Sight.GRID


def element_type(f: KernelWriter, buffer: Buffer) -> str:
    """Returns the type of the elements of a binding: words, which are atomic where several elements of one are written."""
    dtype = buffer.dtype
    if buffer in f.updated:
        return "atomic<u32>"
    if is_packed(dtype):
        return "atomic<u32>" if buffer in f.written else "u32"
    return WIDE if is_wide(dtype) else value_type(dtype)


def _element(f: KernelWriter, buffer: Buffer, at: str) -> str:
    """Returns the element of an array number *at*."""
    parts = f.parts.get(buffer)
    return f"{f.name(buffer)}[{at}]" if parts is None else parts.load(at)


def _set(f: KernelWriter, buffer: Buffer, at: str, value: str) -> None:
    """Writes the store of the element of an array number *at*."""
    parts = f.parts.get(buffer)
    f.line(f"{f.name(buffer)}[{at}] = {value};" if parts is None else f"{parts.store(at, value)};")


@dataclass(frozen=True)
class PackedPlace:
    """Where a packed element is: the number of its word, and how many bits into it."""

    word: str
    shift: str
    mask: int


def _packed_place(f: KernelWriter, buffer: Buffer, at: str) -> PackedPlace:
    bits = packed_bits(buffer.dtype)
    each = 32 // bits
    k = f.fresh("k")
    f.local(k, f"let {k} = u32({at});")
    word = f"{k} >> {each.bit_length() - 1}u"
    if buffer in f.parts:
        word = f"i32({word})"
    return PackedPlace(word, f"(({k} & {each - 1}u) * {bits}u)", (1 << bits) - 1)


def _word(f: KernelWriter, buffer: Buffer, place: PackedPlace) -> str:
    """Returns the word that a packed element is in."""
    element = _element(f, buffer, place.word)
    return f"atomicLoad(&{element})" if buffer in f.written and buffer not in f.parts else element


def place_of(f: KernelWriter, s: Load | Store | Address) -> str:
    """Returns the number of the element that is accessed."""
    at = low_word(f, only_index(f, s.buffer, s.indices))
    begin = f.begins.get(s.buffer)
    return at if begin is None else begin if at == "0i" else f"({begin} + {at})"


def _places(f: KernelWriter, s: Load | Store) -> list[str]:
    """Returns the numbers of the elements that a vector has."""
    index = only_index(f, s.buffer, s.indices)
    if index.dtype.lanes == 1:
        return [place_of(f, s)]
    if not isinstance(index, Ramp) or not isinstance(index.stride, Const):
        raise f.error(f"the elements of {s.buffer.name} that a vector has do not lie in a row")
    first, step = f.temporary_of(low_word(f, index.base)), int(index.stride.value)
    begin = f.begins.get(s.buffer)
    first = first if begin is None else f"{begin} + {first}"
    return [f"({first} + {k * step}i)" if k * step else first for k in range(index.lanes)]


def is_in_quads(buffer: Buffer, accesses: Sequence[Load | Store]) -> bool:
    """Tells whether all *accesses* of a buffer of 32-bit elements are of four side by side, at a multiple of four."""
    if sight_of(buffer.scope) is Sight.THREAD or buffer.dtype.bits != 32 or buffer.dtype.lanes > 1:
        return False
    return all(_is_quad(x) for x in accesses)


def _is_quad(s: Load | Store) -> bool:
    index = s.indices[0]
    if not isinstance(index, Ramp) or index.stride is not ONE or index.lanes != len(QUAD):
        return False
    return known_divisor(index.base) % len(QUAD) == 0 and (isinstance(s, Load) or s.mask is None)


def _quad(f: KernelWriter, s: Load | Store) -> str:
    """Returns the number of the vector in a buffer that is an array of vectors."""
    index = only_index(f, s.buffer, s.indices)
    assert isinstance(index, Ramp)
    at, begin = f"({low_word(f, index.base)} >> 2u)", f.begins.get(s.buffer)
    return at if begin is None else f"{begin} + {at}"


@writes(Load)
def _load(f: KernelWriter, e: Load) -> Value:
    if e.buffer in f.quads:
        name = f.fresh("v")
        f.local(name, f"let {name} = {_element(f, e.buffer, _quad(f, e))};")
        return tuple([f"{name}.{lane}" for lane in QUAD])
    if e.dtype.lanes > 1:
        return tuple([f.temporary_of(_loaded(f, e, at)) for at in _places(f, e)])
    return _loaded(f, e, place_of(f, e))


def _loaded(f: KernelWriter, e: Load, at: str) -> str:
    """Returns the element number *at* of a buffer."""
    dtype = e.dtype.element
    if e.buffer in f.updated:
        return f"bitcast<{value_type(dtype)}>(atomicLoad(&{_element(f, e.buffer, at)}))"
    if not (is_bound(e.buffer) and is_packed(dtype)):
        return _element(f, e.buffer, at)
    place = _packed_place(f, e.buffer, at)
    value = f"(({_word(f, e.buffer, place)} >> {place.shift}) & {place.mask}u)"
    if dtype.is_bool:
        return f"({value} != 0u)"
    if dtype.kind == "int" and not is_half(dtype):
        return f"extractBits(i32({value}), 0u, {dtype.bits}u)"
    return value


def store(f: KernelWriter, s: Store) -> None:
    """Writes a store."""
    if s.mask is not None:
        raise f.error(
            f"{f.dialect.name} stores no vectors under a condition", hint="vectorize loops without conditions"
        )
    if s.buffer in f.quads:
        _set(f, s.buffer, _quad(f, s), f"{QUAD_TYPE[s.buffer.dtype.kind]}({', '.join(lanes(f, s.value))})")
        return
    places, values = _places(f, s), lanes(f, s.value)
    if len(values) > 1:  # all are read before the first is written
        values = tuple([f.temporary_of(x) for x in values])
    for at, value in zip(places, values, strict=True):
        _store_element(f, s, at, value)


def _store_element(f: KernelWriter, s: Store, at: str, value: str) -> None:
    if s.buffer in f.updated:
        f.line(f"atomicStore(&{_element(f, s.buffer, at)}, bitcast<u32>({value}));")
        return
    if not (is_bound(s.buffer) and is_packed(s.buffer.dtype)):
        _set(f, s.buffer, at, value)
        return
    place = _packed_place(f, s.buffer, at)
    bits = f"select(0u, 1u, {value})" if s.buffer.dtype.is_bool else f"u32({value})"
    changed = f"((({_word(f, s.buffer, place)} >> {place.shift}) ^ {bits}) & {place.mask}u) << {place.shift}"
    parts = f.parts.get(s.buffer)
    if parts is not None:
        f.line(f"{parts.store(place.word, changed)};")
        return
    f.line(f"atomicXor(&{_element(f, s.buffer, place.word)}, {changed});")
