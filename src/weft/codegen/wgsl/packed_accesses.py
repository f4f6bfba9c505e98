"""Loads and stores in WGSL: elements of a binding, from where the buffer begins in it, or of an array of a block or thread.

What others see is in words: `X[i]` of an element of 8 bits is

    (X[k >> 2u] >> ((k & 3u) * 8u)) & 255u,  k = X_at + i

and its store changes the element's own bits alone, by an exclusive or that is one atomic operation: threads beside each other
share the word, and none changes the bits that another does.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.c_family.accesses import only_index
from weft.codegen.c_family.c_types import is_half
from weft.codegen.wgsl.expressions import low_word, writes
from weft.codegen.wgsl.kernel_writer import KernelWriter
from weft.codegen.wgsl.wgsl_types import WIDE, is_packed, is_wide, packed_bits, value_type
from weft.loop import Buffer, Load, Store
from weft.support.dtypes import DType
from weft.targets import Sight, sight_of


def is_bound(buffer: Buffer) -> bool:
    """Tells whether *buffer* is memory of the device, which is bound to the kernel, and not of a block or a thread."""
    return sight_of(buffer.scope) is Sight.GRID


def element_type(dtype: DType, *, is_written: bool) -> str:
    """Returns the type of the elements of a binding: words, which are atomic where several elements of one are written."""
    if is_packed(dtype):
        return "atomic<u32>" if is_written else "u32"
    return WIDE if is_wide(dtype) else value_type(dtype)


@dataclass(frozen=True)
class PackedPlace:
    """Where a packed element is: its word, and how many bits into it."""

    word: str
    shift: str
    mask: int


def _packed_place(f: KernelWriter, buffer: Buffer, at: str) -> PackedPlace:
    bits = packed_bits(buffer.dtype)
    each = 32 // bits
    k = f.fresh("k")
    f.local(k, f"let {k} = u32({at});")
    return PackedPlace(
        f"{f.name(buffer)}[{k} >> {each.bit_length() - 1}u]", f"(({k} & {each - 1}u) * {bits}u)", (1 << bits) - 1
    )


def _place(f: KernelWriter, s: Load | Store) -> str:
    """Returns the number of the element that is accessed."""
    at = low_word(f, only_index(f, s.buffer, s.indices))
    begin = f.begins.get(s.buffer)
    return at if begin is None else begin if at == "0i" else f"({begin} + {at})"


@writes(Load)
def _load(f: KernelWriter, e: Load) -> str:
    if e.dtype.lanes > 1:
        raise f.error(f"{f.dialect.name} loads no vectors of {e.dtype.lanes} elements", hint="do not vectorize loops")
    at = _place(f, e)
    if not (is_bound(e.buffer) and is_packed(e.dtype)):
        return f"{f.name(e.buffer)}[{at}]"
    place = _packed_place(f, e.buffer, at)
    word = f"atomicLoad(&{place.word})" if e.buffer in f.written else place.word
    value = f"(({word} >> {place.shift}) & {place.mask}u)"
    if e.dtype.is_bool:
        return f"({value} != 0u)"
    if e.dtype.kind == "int" and not is_half(e.dtype):
        return f"extractBits(i32({value}), 0u, {e.dtype.bits}u)"
    return value


def store(f: KernelWriter, s: Store) -> None:
    """Writes a store."""
    if s.mask is not None or s.value.dtype.lanes > 1:
        raise f.error(f"{f.dialect.name} stores no vectors", hint="do not vectorize loops")
    at, value = _place(f, s), f.scalar(s.value)
    if not (is_bound(s.buffer) and is_packed(s.buffer.dtype)):
        f.line(f"{f.name(s.buffer)}[{at}] = {value};")
        return
    place = _packed_place(f, s.buffer, at)
    bits = f"select(0u, 1u, {value})" if s.buffer.dtype.is_bool else f"u32({value})"
    changed = f"((atomicLoad(&{place.word}) >> {place.shift}) ^ {bits}) & {place.mask}u"
    f.line(f"atomicXor(&{place.word}, ({changed}) << {place.shift});")
