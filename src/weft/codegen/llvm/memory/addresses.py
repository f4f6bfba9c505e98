"""Addresses of buffers' elements, and helpers of loads and stores: memory forms of values, cached loads."""

from __future__ import annotations

from math import gcd

from weft.codegen.llvm.core.affine_operands import Affine, Lanes, Operand
from weft.codegen.llvm.core.emitter import Emitter, Memory, emits
from weft.codegen.llvm.core.ir_types import memory_type, register_type
from weft.codegen.llvm.core.symbolic_indices import as_affine, as_lanes
from weft.ir import Expr
from weft.loop import Address, Buffer
from weft.support.dtypes import DType


def pointer(f: Emitter, memory: Memory, offset: Affine) -> tuple[str, int]:
    """Returns the address *offset* bytes into *memory*, and its known alignment.

    The constant comes last and folds into the instruction's operand.
    """
    total = memory.offset.plus(offset)
    address, step = f.build.address(memory.base, total)
    if total.constant:
        address = f.build.pure_at(f.build.level, f"getelementptr i8, ptr {address}, i64 {total.constant}")
    return address, gcd(memory.align, total.constant, step)


def memory_of(f: Emitter, buffer: Buffer) -> Memory:
    """Returns the location of *buffer*; raises `LoweringError` if it has no memory here."""
    known = f.buffers.get(buffer)
    if known is None:
        raise f.error(f"the buffer {buffer.name} is neither a parameter nor allocated here")
    return known


def flat_index(f: Emitter, buffer: Buffer, indices: tuple[Expr, ...]) -> Affine | Lanes:
    """Returns the one index of a flat buffer's access."""
    if len(indices) != 1:
        raise f.error(f"{buffer.name} is accessed with {len(indices)} indices", hint="flatten buffers before this")
    value, lanes = f.access_index(indices[0]), indices[0].dtype.lanes
    return as_affine(value) if lanes == 1 else as_lanes(value, lanes)


def element_of(f: Emitter, buffer: Buffer, indices: tuple[Expr, ...]) -> int:
    """Returns the first element of an access to a register buffer whose elements are values."""
    index = flat_index(f, buffer, indices)
    base = index if isinstance(index, Affine) else index.base
    if not base.is_constant:
        raise f.error(f"{buffer.name} is in registers, which have no index", hint="this is a bug in Weft")
    return base.constant


def step_of(index: Lanes) -> int | None:
    """Returns the constant distance between lanes, or None where there is none."""
    return index.step.constant if index.rest is None and index.step.is_constant else None


@emits(Address)
def address(f: Emitter, e: Address, *_: Operand) -> Operand:
    """Emits the address of an element."""
    index = flat_index(f, e.buffer, e.indices)
    if isinstance(index, Lanes):
        raise f.error(f"the address of {e.buffer.name} is taken at a vector index")
    return pointer(f, memory_of(f, e.buffer), index.times(e.buffer.dtype.bytes))[0]


def contiguous(f: Emitter, memory: Memory, dtype: DType, offset: Affine, mask: str | None) -> str:
    """Returns the value of *dtype* at *offset* bytes; one that was loaded before and not overwritten since is reused."""
    where, align = pointer(f, memory, offset)
    kind = memory_type(dtype)
    least = max(dtype.element.bytes, align)
    if mask is None:
        text = load_text(kind, where, least)
    else:
        symbol = f"@llvm.masked.load.{suffix(dtype)}.p0"
        f.globals[symbol] = f"declare {kind} {symbol}(ptr, <{dtype.lanes} x i1>, {kind})"
        text = f"call {kind} {symbol}(ptr align {least} {where}, <{dtype.lanes} x i1> {mask}, {kind} zeroinitializer)"
    return from_memory(f, remembered_load(f, memory, text), dtype)


def load_text(kind: str, where: str, align: int) -> str:
    """Returns the instruction that loads a value of LLVM type *kind*; it is also the key of the cached value."""
    return f"load {kind}, ptr {where}, align {align}"


def remembered_load(f: Emitter, memory: Memory, text: str) -> str:
    """Returns the value of the load *text*, from before if nothing was stored to the same memory since."""
    made = f.build.regions[-1].loads.get(memory.root, {}).get(text)
    return made if made is not None else remember(f, memory, text, f.build.here(text))


def remember(f: Emitter, memory: Memory, text: str, value: str) -> str:
    """Keeps the value of the load *text* until something is stored to the same memory, or control moves on."""
    f.build.regions[-1].loads.setdefault(memory.root, {})[text] = value
    return value


def from_memory(f: Emitter, x: str, dtype: DType) -> str:
    """Returns a loaded value in its register form: a bool's byte as a bit."""
    if not dtype.is_bool:
        return x
    return f.build.pure(f"trunc {memory_type(dtype)} {x} to {register_type(dtype)}", x)


def to_memory(f: Emitter, x: str, dtype: DType) -> str:
    """Returns a value in its memory form: a bool as a byte."""
    if not dtype.is_bool:
        return x
    return f.build.pure(f"zext {register_type(dtype)} {x} to {memory_type(dtype)}", x)


def suffix(dtype: DType) -> str:
    """Returns the suffix of LLVM's memory intrinsics for vectors of *dtype* as they are in memory."""
    element = memory_type(dtype.element)
    short = {"float": "f32", "double": "f64"}.get(element, element)
    return f"v{dtype.lanes}{short}"


def lane_pointers(f: Emitter, memory: Memory, dtype: DType, index: Lanes) -> tuple[str, int]:
    """Returns the address of each lane: a common base plus the lanes' distances from it."""
    size = dtype.element.bytes
    base, _ = pointer(f, memory, index.base.times(size))
    distances = f.build.lanes(Lanes(Affine(0), index.step, index.lanes, index.rest))
    element = memory_type(dtype.element)
    text = f"getelementptr {element}, ptr {base}, <{index.lanes} x i64> {distances}"
    return f.build.pure(text, base, distances), size
