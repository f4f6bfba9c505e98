"""Statements: loops, branches, bindings, memory, assertions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.codegen import abi
from weft.codegen.llvm.core.affine_operands import Affine
from weft.codegen.llvm.core.emitter import Emitter, Memory
from weft.codegen.llvm.core.ir_types import memory_type
from weft.codegen.llvm.core.register_values import Written
from weft.codegen.llvm.expressions.conversions import convert
from weft.codegen.llvm.memory.addresses import memory_of
from weft.codegen.llvm.memory.promotable import MAX_REGISTERS
from weft.codegen.llvm.memory.stores import store
from weft.codegen.llvm.statements.asked_memory import ask
from weft.codegen.llvm.statements.calls import call
from weft.codegen.llvm.statements.exits import context_field, context_function, leave, release, unless
from weft.codegen.llvm.statements.loop_counters import is_large, move_pointers, uncounted
from weft.ir import INDEX, mentions
from weft.loop import (
    Alloc,
    Assert,
    Buffer,
    Call,
    Eval,
    For,
    If,
    Let,
    Load,
    LoopKind,
    Seq,
    Stmt,
    Store,
    View,
    While,
    late_memory,
    loads,
    statements,
    stores,
)
from weft.targets import TILE

FRAME_BYTES: Final = 64 << 10
"""Bytes of buffers of constant size that may live in a function's frame; the context allocates all beyond."""


def emit(f: Emitter, s: Stmt) -> None:
    """Emits a statement at the end of the current block."""
    handler = _STATEMENTS.get(type(s))
    if handler is None:
        raise f.error(f"{type(s).__name__} has no translation to LLVM", hint="lower it first")
    handler(f, s)


def _seq(f: Emitter, s: Seq) -> None:
    for part in s.body:
        emit(f, part)


def _store(f: Emitter, s: Store) -> None:
    with f.scope():
        store(f, s)


def _eval(f: Emitter, s: Eval) -> None:
    with f.scope():
        f.text(s.value)


def _let(f: Emitter, s: Let) -> None:
    """Emits a binding, and those directly inside it: there may be more of them than calls can nest."""
    with f.scope():
        body: Stmt = s
        while isinstance(body, Let):
            with f.scope():
                value = f.value(body.value)
            f.bind(body.var, value)
            body = body.body
        emit(f, body)


def _for(f: Emitter, s: For) -> None:
    if s.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED):
        raise f.error(f"the loop over {s.var.name} is still {s.kind}", hint="lower it first")
    with f.scope():
        begin, extent = f.index(s.begin), f.index(s.extent)
    if extent.is_constant and extent.constant <= 0:
        return
    if s.kind is LoopKind.UNROLLED:
        if not extent.is_constant:
            raise f.error(f"the extent of the unrolled loop over {s.var.name} is not a constant")
        _unrolled(f, s, begin, extent.constant)
    elif extent.is_constant and (extent.constant == 1 or _indexes_registers(f, s, extent.constant)):
        _unrolled(f, s, begin, extent.constant)
    elif extent.is_constant:
        _loop(f, s, begin, extent)
    else:
        positive = f.build.pure(f"icmp sgt i64 {f.build.scalar(extent)}, 0", f.build.scalar(extent))
        when(f, positive, lambda: _loop(f, s, begin, extent))


def _indexes_registers(f: Emitter, s: For, extent: int) -> bool:
    """Tells whether a short loop numbers registers: they can only be named, so the loop has to be unrolled."""
    if extent > MAX_REGISTERS:
        return False
    known = f.numbers_registers.get(s)
    if known is None:
        places: list[Load | Store] = [*loads(s.body), *stores(s.body)]
        known = f.numbers_registers[s] = any(
            n.buffer.in_registers and any(mentions(i, s.var) for i in n.indices) for n in places
        )
    return known


def _unrolled(f: Emitter, s: For, begin: Affine, extent: int) -> None:
    """Emits the iterations one after another, with the loop's variable as a constant in each."""
    for i in range(extent):
        _iteration(f, s, begin.plus(Affine(i)))


def _iteration(f: Emitter, s: For, value: Affine) -> None:
    with f.scope():
        f.bind(s.var, value)
        emit(f, s.body)


def _loop(f: Emitter, s: For, begin: Affine, extent: Affine) -> None:
    """Emits a loop that runs at least once: the test is at its end, and its preheader takes invariant instructions."""
    build = f.build
    first, end = build.scalar(begin), build.scalar(begin.plus(extent))
    top, after = build.label(f"loop.{identifier(s.var.name)}"), build.label("after")
    before, inside = build.block, len(build.blocks)
    before.end = f"br label %{top}"
    with build.region(top) as header:
        counter = build.fresh(build.level)
        build.moving[counter] = {}
        if build.is_nonnegative(begin):
            build.nonnegative.add(counter)
        header.lines.append("")
        f.registers.begin_loop(header, before.label, _stored_registers(f, s))
        _iteration(f, s, Affine(0, {counter: 1}))
        large = is_large(build.blocks[inside:], f.registers.used)
        moved = move_pointers(f, counter, before, build.blocks[inside:]) if large and first == "0" else []
        following = build.here(f"add nsw i64 {counter}, 1")
        following = uncounted(f, following) if large else following
        again = build.here(f"icmp slt i64 {following}, {end}")
        values = f"[ {first}, %{before.label} ], [ {following}, %{build.block.label} ]"
        header.lines[0:1] = [f"  {counter} = phi i64 {values}", *moved]
        f.registers.end_loop()
        del build.moving[counter]
        build.block.end = f"br i1 {again}, label %{top}, label %{after}"
    build.start(after)


def _stored_registers(f: Emitter, s: For) -> frozenset[Buffer]:
    """Returns the buffers whose elements are values that *s* stores to."""
    known = f.stored.get(s)
    if known is None:
        stored = [n.buffer for n in statements(s.body) if isinstance(n, Store)] if f.registers.kinds else []
        known = f.stored[s] = frozenset([b for b in stored if b in f.registers.kinds])
    return known


def identifier(name: str) -> str:
    """Returns *name* with characters that are invalid in LLVM labels replaced."""
    return "".join([c if c.isalnum() or c == "_" else "." for c in name])


def when(f: Emitter, cond: str, body: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
    """Emits *body* under the scalar condition *cond*, and *otherwise* where it does not hold."""
    then, other, after = f.build.label("then"), f.build.label("else"), f.build.label("after")
    missed = after if otherwise is None else other
    paths: list[tuple[Written, str]] = [({}, f.build.block.label)] if otherwise is None else []
    f.build.block.end = f"br i1 {cond}, label %{then}, label %{missed}"
    for label, part in ((then, body), (other, otherwise)):
        if part is not None:
            with f.build.region(label), f.scope():
                f.registers.begin_branch()
                part()
                f.build.block.end = f"br label %{after}"
                paths.append((f.registers.end_branch(), f.build.block.label))
    f.build.start(after)
    f.registers.join(paths)


def _if(f: Emitter, s: If) -> None:
    with f.scope():
        cond = f.text(s.cond)
    other = s.other
    if cond in ("true", "false"):
        chosen = s.then if cond == "true" else other
        if chosen is not None:
            emit(f, chosen)
        return
    when(f, cond, lambda: emit(f, s.then), None if other is None else lambda: emit(f, other))


def _while(f: Emitter, s: While) -> None:
    build = f.build
    top, inside, after = build.label("while"), build.label("do"), build.label("after")
    build.block.end = f"br label %{top}"
    with build.region(top), f.scope():
        with f.scope():
            cond = f.text(s.cond)
        build.block.end = f"br i1 {cond}, label %{inside}, label %{after}"
        build.start(inside)
        emit(f, s.body)
        build.block.end = f"br label %{top}"
    build.start(after)


def _alloc(f: Emitter, s: Alloc) -> None:
    if late_memory(s.buffer) is not None:
        f.buffers[s.buffer] = Memory(ask(f, s.buffer), f.new_root(), Affine(0), abi.ALIGNMENT)
        emit(f, s.body)
        del f.buffers[s.buffer]
        return
    if s.buffer.rank != 1:
        raise f.error(f"{s.buffer.name} has {s.buffer.rank} dimensions", hint="flatten buffers before this")
    if s.buffer.scope == TILE.name:
        emit(f, s.body)  # its places are numbers of registers
        return
    with f.scope():
        size = f.index(s.buffer.shape[0])
    total = size.times(s.buffer.dtype.bytes)
    if s.buffer in f.registers.kinds:
        f.frame_bytes += total.constant  # values that are too many for the registers are spilled there
        emit(f, s.body)
        f.registers.forget(s.buffer)
    elif s.buffer in f.buffers or _fits_frame(f, s, total):
        if s.buffer not in f.buffers:
            f.buffers[s.buffer] = _frame_memory(f, size.constant, memory_type(s.buffer.dtype))
        emit(f, s.body)
    else:
        _scratch(f, s, total)


def _fits_frame(f: Emitter, s: Alloc, total: Affine) -> bool:
    """Tells whether memory goes to the function's frame, and counts it there."""
    if not total.is_constant or (not s.buffer.in_registers and total.constant > FRAME_BYTES - f.frame_bytes):
        return False
    f.frame_bytes += total.constant
    return True


def _frame_memory(f: Emitter, count: int, kind: str) -> Memory:
    made = f.build.alloca(f"[{max(1, count)} x {kind}], align {abi.ALIGNMENT}")
    return Memory(made, f.new_root(), Affine(0), abi.ALIGNMENT)


def _scratch(f: Emitter, s: Alloc, total: Affine) -> None:
    build = f.build
    function = context_function(f, abi.ALLOC)
    got = build.here(f"call noalias align {abi.ALIGNMENT} ptr {function}(ptr %ctx, i64 {build.scalar(total)})")
    with unless(f, build.here(f"icmp ne ptr {got}, null")):
        leave(f, str(abi.OUT_OF_MEMORY))
    f.open_allocs.append(got)
    f.buffers[s.buffer] = Memory(got, f.new_root(), Affine(0), abi.ALIGNMENT)
    emit(f, s.body)
    del f.buffers[s.buffer]
    f.open_allocs.pop()
    release(f, got)


def _view(f: Emitter, s: View) -> None:
    source = memory_of(f, s.source)
    with f.scope():
        offset = f.index(s.offset).times(s.source.dtype.bytes)
    f.buffers[s.buffer] = Memory(source.base, source.root, source.offset.plus(offset), source.align)
    emit(f, s.body)
    del f.buffers[s.buffer]


def _assert(f: Emitter, s: Assert) -> None:
    with f.scope():
        cond = f.text(s.cond)
    if cond == "true":
        return
    number = abi.assert_id(s.message)
    f.asserts.add((number, s.message))

    with unless(f, cond):
        for i, v in enumerate(s.values[: abi.DETAILS]):
            detail = convert(f, f.text(v), v.dtype, INDEX)
            f.build.do(f"store i64 {detail}, ptr {context_field(f, abi.DETAIL + 8 * i)}, align 8")
        f.build.do(f"store i32 {number}, ptr {context_field(f, abi.FAILED_ASSERT)}, align 4")
        leave(f, str(abi.ASSERT_FAILED))


_STATEMENTS: Final[dict[type[Stmt], Callable[[Emitter, Any], None]]] = {
    Seq: _seq,
    Store: _store,
    Eval: _eval,
    Let: _let,
    For: _for,
    If: _if,
    While: _while,
    Alloc: _alloc,
    View: _view,
    Assert: _assert,
    Call: call,
}
