"""Stores of every kind of index: contiguous or scattered, in the lanes that the mask allows."""

from __future__ import annotations

from weft.codegen.llvm.core.affine_operands import Affine, Lanes
from weft.codegen.llvm.core.emitter import Emitter, Memory
from weft.codegen.llvm.core.ir_types import is_true, memory_type, vector
from weft.codegen.llvm.memory.addresses import (
    element_of,
    flat_index,
    lane_pointers,
    load_text,
    memory_of,
    pointer,
    remember,
    step_of,
    suffix,
    to_memory,
)
from weft.codegen.llvm.memory.loads import is_in_registers, load_at
from weft.loop import Store
from weft.support.dtypes import DType, bool_


def store(f: Emitter, s: Store) -> None:
    """Emits a store, contiguous or scattered, in the lanes that the mask allows."""
    if s.buffer in f.registers.kinds:
        return _set_register(f, s)
    memory, index = memory_of(f, s.buffer), flat_index(f, s.buffer, s.indices)
    value = to_memory(f, f.text(s.value), s.value.dtype)
    mask = None if s.mask is None else f.text(s.mask)
    mask = None if mask is None or is_true(mask) else mask
    if mask is not None and is_in_registers(s.buffer, index):
        value, mask = _blended(f, s, memory, index, value, mask), None
    f.build.forget_loads(memory.root)
    return store_at(f, memory, s.value.dtype, index, value, mask)


def _set_register(f: Emitter, s: Store) -> None:
    """Gives an element of a register buffer a value; lanes that are masked off keep theirs."""
    element, value = element_of(f, s.buffer, s.indices), to_memory(f, f.text(s.value), s.value.dtype)
    mask = None if s.mask is None else f.text(s.mask)
    if mask is not None and not is_true(mask):
        value = _chosen(f, s, mask, value, f.registers.load(s.buffer, element))
    f.registers.store(s.buffer, element, value)


def _blended(f: Emitter, s: Store, memory: Memory, index: Affine | Lanes, value: str, mask: str) -> str:
    """Returns *value* blended, where the mask is off, with a register buffer's contents, so that the store needs no mask."""
    return _chosen(f, s, mask, value, to_memory(f, load_at(f, memory, s.buffer.dtype, index, None), s.value.dtype))


def _chosen(f: Emitter, s: Store, mask: str, value: str, before: str) -> str:
    kind, flags = memory_type(s.value.dtype), f"<{s.value.dtype.lanes} x i1>"
    return f.build.pure(f"select {flags} {mask}, {kind} {value}, {kind} {before}", mask, value, before)


def store_at(f: Emitter, memory: Memory, dtype: DType, index: Affine | Lanes, value: str, mask: str | None) -> None:
    """Writes *value*, in its memory form, to *memory* at *index*."""
    element = dtype.element.bytes * (dtype.lanes // (index.lanes if isinstance(index, Lanes) else 1))
    if isinstance(index, Lanes) and step_of(index) != 1:
        return scatter(f, memory, dtype, index, value, mask)
    begin = index.base if isinstance(index, Lanes) else index
    where, align = pointer(f, memory, begin.times(element))
    kind, least = memory_type(dtype), max(dtype.element.bytes, align)
    if mask is None:
        f.build.do(f"store {kind} {value}, ptr {where}, align {least}")
        remember(f, memory, load_text(kind, where, least), value)
        return None
    if not isinstance(index, Lanes):
        raise f.error("a scalar store has a mask", hint="guard it with If")
    count = _constant_prefix(f, mask, dtype.lanes)
    if count:
        return _store_first(f, memory, dtype, begin, value, count)
    symbol, flags = f"@llvm.masked.store.{suffix(dtype)}.p0", f"<{dtype.lanes} x i1>"
    f.globals[symbol] = f"declare void {symbol}({kind}, ptr, {flags})"
    return f.build.do(f"call void {symbol}({kind} {value}, ptr align {least} {where}, {flags} {mask})")


def _constant_prefix(f: Emitter, mask: str, lanes: int) -> int:
    """Returns how many lanes at the front a constant *mask* allows, if those are all, and masks have no registers of their own.

    Without such registers a store under a mask takes long: 4.6 ns on a Zen 4 held to AVX2 (2026-11-28); of 6 lanes, as one of 4
    and one of 2, it takes 0.7 ns.
    """
    if f.target.isa.mask_registers:
        return 0
    count = mask.count("true")
    return count if mask == vector(["true"] * count + ["false"] * (lanes - count), bool_.with_lanes(lanes)) else 0


def _store_first(f: Emitter, memory: Memory, dtype: DType, begin: Affine, value: str, count: int) -> None:
    """Writes the first *count* lanes of *value* by stores of powers of two of lanes, of whole registers at most."""
    kind, done, lanes = memory_type(dtype), 0, f.target.lanes(dtype.bits)
    while done < count:
        part = min(lanes, 1 << ((count - done).bit_length() - 1))
        made = dtype.element.with_lanes(part)
        where, align = pointer(f, memory, begin.plus(Affine(done)).times(dtype.element.bytes))
        picks = ", ".join([f"i32 {n}" for n in range(done, done + part)])
        taken = (
            f.build.pure(f"extractelement {kind} {value}, i32 {done}", value)
            if part == 1
            else f.build.pure(f"shufflevector {kind} {value}, {kind} poison, <{part} x i32> <{picks}>", value)
        )
        f.build.do(f"store {memory_type(made)} {taken}, ptr {where}, align {max(dtype.element.bytes, align)}")
        done += part


def scatter(f: Emitter, memory: Memory, dtype: DType, index: Lanes, value: str, mask: str | None) -> None:
    """Writes the lanes of *value* to any indices, the first lane first."""
    pointers, align = lane_pointers(f, memory, dtype, index)
    kind, flags, where = memory_type(dtype), f"<{dtype.lanes} x i1>", f"<{dtype.lanes} x ptr>"
    symbol = f"@llvm.masked.scatter.{suffix(dtype)}.v{dtype.lanes}p0"
    f.globals[symbol] = f"declare void {symbol}({kind}, {where}, {flags})"
    f.build.do(
        f"call void {symbol}({kind} {value}, {where} align {align} {pointers}, {flags} {mask or 'splat (i1 true)'})"
    )
