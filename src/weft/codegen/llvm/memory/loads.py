"""Loads of every kind of index: plain, contiguous, broadcast, reversed, strided, transposed, gathered, and guarded."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.llvm.core.affine_operands import Affine, Lanes, Operand
from weft.codegen.llvm.core.emitter import Emitter, Memory, emits
from weft.codegen.llvm.core.ir_types import memory_type, register_type
from weft.codegen.llvm.expressions.shuffles import shuffle
from weft.codegen.llvm.memory.addresses import (
    contiguous,
    element_of,
    flat_index,
    from_memory,
    lane_pointers,
    memory_of,
    pointer,
    remembered_load,
    step_of,
    suffix,
)
from weft.cost import SHUFFLED_STRIDE
from weft.ir import INDEX, Const
from weft.loop import Buffer, Load
from weft.support.dtypes import DType


@emits(Load, lazy=True)
def load(f: Emitter, e: Load) -> Operand:
    """Emits a load: plain, contiguous, broadcast, shuffled or gathered, and only in the lanes that the mask allows."""
    if e.buffer in f.registers.kinds:
        return from_memory(f, f.registers.load(e.buffer, element_of(f, e.buffer, e.indices)), e.dtype)
    memory, index = memory_of(f, e.buffer), flat_index(f, e.buffer, e.indices)
    made = load_at(f, memory, e.buffer.dtype, index, None if is_in_registers(e.buffer, index) else f.mask)
    return Affine(0, {made: 1}) if e.dtype is INDEX else made


def is_in_registers(buffer: Buffer, index: Affine | Lanes) -> bool:
    """Tells whether all lanes lie in a buffer of registers, which LLVM keeps in registers only if no access to it is masked."""
    if not buffer.in_registers or not isinstance(index, Lanes) or step_of(index) != 1 or not index.base.is_constant:
        return False
    [size] = buffer.shape
    return isinstance(size, Const) and 0 <= index.base.constant <= int(size.value) - index.lanes


def is_zero_where_masked(f: Emitter, e: Load) -> bool:
    """Tells whether a masked load gives zero in masked-off lanes; a broadcast load, say, has one element in all lanes."""
    index = flat_index(f, e.buffer, e.indices)
    return (
        isinstance(index, Lanes)
        and step_of(index) != 0
        and e.dtype is not INDEX
        and not is_in_registers(e.buffer, index)
    )


def load_at(f: Emitter, memory: Memory, element: DType, index: Affine | Lanes, mask: str | None) -> str:
    """Returns the elements of *memory* at *index*."""
    size = element.bytes
    if isinstance(index, Affine):
        return single(f, memory, element, index.times(size), mask)
    dtype, step = element.with_lanes(element.lanes * index.lanes), step_of(index)
    if step == 1:
        return contiguous(f, memory, dtype, index.base.times(size), mask)
    if element.lanes != 1:
        raise f.error(f"a vector index that is not contiguous reads elements of type {element}")
    if step == 0:
        one = single(f, memory, element, index.base.times(size), mask)
        return f.build.broadcast(one, register_type(element), index.lanes)
    if mask is None and step == -1:
        last = index.base.plus(Affine(1 - index.lanes)).times(size)
        return shuffle(f, dtype, contiguous(f, memory, dtype, last, None), None, list(range(index.lanes))[::-1])
    if step is not None and 1 < step <= SHUFFLED_STRIDE:
        return strided(f, memory, dtype, index, step, mask)
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


def strided(f: Emitter, memory: Memory, dtype: DType, index: Lanes, step: int, mask: str | None) -> str:
    """Returns every *step*-th element, from contiguous loads that end with the last element wanted.

    Under a *mask* the loads read only the elements that it wants, and zeros.
    """
    lanes, size = dtype.lanes, dtype.element.bytes
    span = (lanes - 1) * step + 1
    starts = [min(begin, span - lanes) for begin in range(0, span, lanes)]
    made, have = "poison", 0
    for begin in starts:
        wanted = None if mask is None else _spread(f, mask, lanes, [divmod(begin + i, step) for i in range(lanes)])
        piece = contiguous(f, memory, dtype, index.base.plus(Affine(begin)).times(size), wanted)
        upto = max(i for i in range(lanes) if i * step < begin + lanes)
        fresh = {i: lanes + i * step - begin for i in range(have, upto + 1)}
        made = shuffle(f, dtype, made, piece, [fresh.get(i, i if i < have else -1) for i in range(lanes)])
        have = upto + 1
    return made


def _spread(f: Emitter, mask: str, lanes: int, places: Sequence[tuple[int, int]]) -> str:
    """Returns the mask of elements that lie at *places*: the number of a lane, and how far behind it."""
    chosen = ", ".join([f"i32 {lane if behind == 0 and lane < lanes else lanes}" for lane, behind in places])
    flags = f"<{lanes} x i1>"
    return f.build.pure(f"shufflevector {flags} {mask}, {flags} zeroinitializer, <{lanes} x i32> <{chosen}>", mask)


def gather(f: Emitter, memory: Memory, dtype: DType, index: Lanes, mask: str | None) -> str:
    """Returns the elements at any indices."""
    pointers, align = lane_pointers(f, memory, dtype, index)
    kind, flags = memory_type(dtype), f"<{dtype.lanes} x i1>"
    symbol = f"@llvm.masked.gather.{suffix(dtype)}.v{dtype.lanes}p0"
    f.globals[symbol] = f"declare {kind} {symbol}(<{dtype.lanes} x ptr>, {flags}, {kind})"
    where = f"<{dtype.lanes} x ptr> align {align} {pointers}"
    made = f.build.here(f"call {kind} {symbol}({where}, {flags} {mask or 'splat (i1 true)'}, {kind} zeroinitializer)")
    return from_memory(f, made, dtype)
