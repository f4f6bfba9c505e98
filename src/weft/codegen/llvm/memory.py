"""Loads, stores and addresses: what kind of access an index makes, and the instructions for each kind."""

from __future__ import annotations

from math import gcd

from weft.codegen.llvm.affine import Affine, Lanes, Operand
from weft.codegen.llvm.emitter import Emitter, Memory, emits
from weft.codegen.llvm.symbolic import as_affine, as_lanes
from weft.codegen.llvm.types import is_true, memory_type, register_type
from weft.ir.expr import INDEX, Expr
from weft.loop.nodes import Address, Buffer, Load, Store
from weft.support.dtypes import DType

MAX_STRIDE = 4
"""Vector loads with a stride up to this are made of contiguous loads and shuffles; beyond it, of a gather."""


def pointer(f: Emitter, memory: Memory, offset: Affine) -> tuple[str, int]:
    """Returns the address *offset* bytes into *memory*, and its known alignment.

    The part that each loop adds is computed in that loop; the constant comes last and folds into the instruction's operand.
    """
    total = memory.offset.plus(offset)
    build, address = f.build, memory.base
    for name in build.outermost_first(total):
        step = build.scaled(name, total.terms[name])
        address = build.pure(f"getelementptr i8, ptr {address}, i64 {step}", address, step)
    if total.constant:
        address = build.pure_at(build.level, f"getelementptr i8, ptr {address}, i64 {total.constant}")
    return address, gcd(memory.align, total.constant, *total.terms.values())


def memory_of(f: Emitter, buffer: Buffer) -> Memory:
    """Returns where *buffer* lives; raises `LoweringError` if it has no memory here."""
    known = f.buffers.get(buffer)
    if known is None:
        raise f.error(f"the buffer {buffer.name} is neither a parameter nor allocated here")
    return known


def flat_index(f: Emitter, buffer: Buffer, indices: tuple[Expr, ...]) -> Affine | Lanes:
    """Returns the one index of a flat buffer's access."""
    if len(indices) != 1:
        raise f.error(f"{buffer.name} is accessed with {len(indices)} indices", hint="flatten buffers before this")
    value, lanes = f.value(indices[0]), indices[0].dtype.lanes
    return as_affine(value) if lanes == 1 else as_lanes(value, lanes)


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


@emits(Load, lazy=True)
def load(f: Emitter, e: Load) -> Operand:
    """Emits a load: plain, contiguous, broadcast, shuffled or gathered, and only in the lanes that the mask allows."""
    memory, index = memory_of(f, e.buffer), flat_index(f, e.buffer, e.indices)
    made = load_at(f, memory, e.buffer.dtype, index, f.mask)
    return Affine(0, {made: 1}) if e.dtype is INDEX else made


def load_at(f: Emitter, memory: Memory, element: DType, index: Affine | Lanes, mask: str | None) -> str:
    """Returns the elements of *memory* at *index*."""
    size = element.bytes
    if isinstance(index, Affine):
        return single(f, memory, element, index.times(size), mask)
    dtype, step = element.with_lanes(element.lanes * index.count), step_of(index)
    if step == 1:
        return contiguous(f, memory, dtype, index.base.times(size), mask)
    if element.lanes != 1:
        raise f.error(f"a vector index that is not contiguous reads elements of type {element}")
    if step == 0:
        one = single(f, memory, element, index.base.times(size), mask)
        return f.build.broadcast(one, register_type(element), index.count)
    if mask is None and step == -1:
        last = index.base.plus(Affine(1 - index.count)).times(size)
        return shuffle(f, dtype, contiguous(f, memory, dtype, last, None), None, list(range(index.count))[::-1])
    if mask is None and step is not None and 1 < step <= MAX_STRIDE:
        return strided(f, memory, dtype, index, step)
    return gather(f, memory, dtype, index, mask)


def single(f: Emitter, memory: Memory, dtype: DType, offset: Affine, mask: str | None) -> str:
    """Returns one element; under a vector mask it is read only if any lane is on, and is zero otherwise."""
    if mask is None:
        return contiguous(f, memory, dtype, offset, None)
    lanes, kind = f.mask_lanes, f"<1 x {memory_type(dtype)}>"
    where, align = pointer(f, memory, offset)
    bits = f.build.pure(f"bitcast <{lanes} x i1> {mask} to i{lanes}", mask)
    some = f.build.pure(f"icmp ne i{lanes} {bits}, 0", bits)
    flag = f.build.pure(f"insertelement <1 x i1> poison, i1 {some}, i64 0", some)
    symbol = f"@llvm.masked.load.{suffix(dtype)}.p0"
    f.globals[symbol] = f"declare {kind} {symbol}(ptr, <1 x i1>, {kind})"
    call = f"call {kind} {symbol}(ptr align {max(dtype.bytes, align)} {where}, <1 x i1> {flag}, {kind} zeroinitializer)"
    one = remembered_load(f, memory, call)
    return from_memory(f, f.build.pure(f"extractelement {kind} {one}, i64 0", one), dtype)


def contiguous(f: Emitter, memory: Memory, dtype: DType, offset: Affine, mask: str | None) -> str:
    """Returns the value of *dtype* at *offset* bytes; one that was loaded before and not overwritten since is reused."""
    where, align = pointer(f, memory, offset)
    kind = memory_type(dtype)
    least = max(dtype.element.bytes, align)
    if mask is None:
        text = f"load {kind}, ptr {where}, align {least}"
    else:
        symbol = f"@llvm.masked.load.{suffix(dtype)}.p0"
        f.globals[symbol] = f"declare {kind} {symbol}(ptr, <{dtype.lanes} x i1>, {kind})"
        text = f"call {kind} {symbol}(ptr align {least} {where}, <{dtype.lanes} x i1> {mask}, {kind} zeroinitializer)"
    return from_memory(f, remembered_load(f, memory, text), dtype)


def remembered_load(f: Emitter, memory: Memory, text: str) -> str:
    """Returns the value of the load *text*, from before if nothing was stored to the same memory since."""
    loads = f.build.regions[-1].loads.setdefault(memory.root, {})
    made = loads.get(text)
    if made is None:
        made = loads[text] = f.build.here(text)
    return made


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


def shuffle(f: Emitter, dtype: DType, a: str, b: str | None, picks: list[int]) -> str:
    """Returns the lanes *picks* of *a* followed by *b*; -1 leaves a lane undefined."""
    kind = register_type(dtype)
    mask = ", ".join(["i32 poison" if p < 0 else f"i32 {p}" for p in picks])
    second = "poison" if b is None else b
    return f.build.pure(f"shufflevector {kind} {a}, {kind} {second}, <{len(picks)} x i32> <{mask}>", a, second)


def strided(f: Emitter, memory: Memory, dtype: DType, index: Lanes, step: int) -> str:
    """Returns every *step*-th element, from contiguous loads that end with the last element wanted."""
    lanes, size = dtype.lanes, dtype.element.bytes
    span = (lanes - 1) * step + 1
    starts = [min(begin, span - lanes) for begin in range(0, span, lanes)]
    made, have = "poison", 0
    for begin in starts:
        piece = contiguous(f, memory, dtype, index.base.plus(Affine(begin)).times(size), None)
        upto = max(i for i in range(lanes) if i * step < begin + lanes)
        fresh = {i: lanes + i * step - begin for i in range(have, upto + 1)}
        made = shuffle(f, dtype, made, piece, [fresh.get(i, i if i < have else -1) for i in range(lanes)])
        have = upto + 1
    return made


def gather(f: Emitter, memory: Memory, dtype: DType, index: Lanes, mask: str | None) -> str:
    """Returns the elements at any indices."""
    pointers, align = lane_pointers(f, memory, dtype, index)
    kind, flags = memory_type(dtype), f"<{dtype.lanes} x i1>"
    symbol = f"@llvm.masked.gather.{suffix(dtype)}.v{dtype.lanes}p0"
    f.globals[symbol] = f"declare {kind} {symbol}(<{dtype.lanes} x ptr>, {flags}, {kind})"
    allowed = mask or "splat (i1 true)"
    call = f"call {kind} {symbol}(<{dtype.lanes} x ptr> align {align} {pointers}, {flags} {allowed}, {kind} zeroinitializer)"
    return from_memory(f, remembered_load(f, memory, call), dtype)


def lane_pointers(f: Emitter, memory: Memory, dtype: DType, index: Lanes) -> tuple[str, int]:
    """Returns the address of each lane: a common base plus the lanes' distances from it."""
    size = dtype.element.bytes
    base, _ = pointer(f, memory, index.base.times(size))
    distances = f.build.lanes(Lanes(Affine(0), index.step, index.count, index.rest))
    element = memory_type(dtype.element)
    text = f"getelementptr {element}, ptr {base}, <{index.count} x i64> {distances}"
    return f.build.pure(text, base, distances), size


def store(f: Emitter, s: Store) -> None:
    """Emits a store, contiguous or scattered, in the lanes that the mask allows."""
    memory, index = memory_of(f, s.buffer), flat_index(f, s.buffer, s.indices)
    value = to_memory(f, f.text(s.value), s.value.dtype)
    mask = None if s.mask is None else f.text(s.mask)
    store_at(f, memory, s.value.dtype, index, value, None if mask is None or is_true(mask) else mask)
    f.build.forget_loads(memory.root)


def store_at(f: Emitter, memory: Memory, dtype: DType, index: Affine | Lanes, value: str, mask: str | None) -> None:
    """Writes *value*, in its memory form, to *memory* at *index*."""
    element = dtype.element.bytes * (dtype.lanes // (index.count if isinstance(index, Lanes) else 1))
    if isinstance(index, Lanes) and step_of(index) != 1:
        return scatter(f, memory, dtype, index, value, mask)
    begin = index.base if isinstance(index, Lanes) else index
    where, align = pointer(f, memory, begin.times(element))
    kind, least = memory_type(dtype), max(dtype.element.bytes, align)
    if mask is None:
        return f.build.do(f"store {kind} {value}, ptr {where}, align {least}")
    if not isinstance(index, Lanes):
        raise f.error("a scalar store has a mask", hint="guard it with If")
    symbol, flags = f"@llvm.masked.store.{suffix(dtype)}.p0", f"<{dtype.lanes} x i1>"
    f.globals[symbol] = f"declare void {symbol}({kind}, ptr, {flags})"
    return f.build.do(f"call void {symbol}({kind} {value}, ptr align {least} {where}, {flags} {mask})")


def scatter(f: Emitter, memory: Memory, dtype: DType, index: Lanes, value: str, mask: str | None) -> None:
    """Writes the lanes of *value* to any indices, the first lane first."""
    pointers, align = lane_pointers(f, memory, dtype, index)
    kind, flags, where = memory_type(dtype), f"<{dtype.lanes} x i1>", f"<{dtype.lanes} x ptr>"
    symbol = f"@llvm.masked.scatter.{suffix(dtype)}.v{dtype.lanes}p0"
    f.globals[symbol] = f"declare void {symbol}({kind}, {where}, {flags})"
    f.build.do(
        f"call void {symbol}({kind} {value}, {where} align {align} {pointers}, {flags} {mask or 'splat (i1 true)'})"
    )
