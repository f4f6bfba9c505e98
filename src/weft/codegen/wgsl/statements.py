"""The statements of WGSL that are its own: loops, bindings, threads and their memories, barriers.

for b in bound(0, n, thread="blockIdx.x"):           let b = i32(block % ...);
    S = alloc("shared", f32[256])                    var<workgroup> S: array<f32, 256>;      // outside of the kernel
    for t in bound(0, 256, thread="threadIdx.x"):    let t = i32(thread.x);
        S[t] = ...                             ->    S[t] = ...;
        call("weft.barrier")                         storageBarrier(); workgroupBarrier();

A loop whose bounds are i32 counts in i32, others in two words.
"""

from __future__ import annotations

from typing import Final

from weft.codegen.c_family.dialect import Dialect
from weft.codegen.c_family.expressions import lanes
from weft.codegen.c_family.statements import COMMON, write
from weft.codegen.wgsl import packed_accesses
from weft.codegen.wgsl.atomic_words import write_update
from weft.codegen.wgsl.expressions import EXPRESSIONS, narrow_form
from weft.codegen.wgsl.kernel_writer import KernelWriter
from weft.codegen.wgsl.packed_accesses import QUAD, QUAD_TYPE
from weft.codegen.wgsl.wgsl_keywords import KEYWORDS
from weft.codegen.wgsl.wgsl_types import WIDE, value_type
from weft.ir import INDEX, ZERO, Const
from weft.loop import (
    ATOMICS,
    BARRIER,
    Alloc,
    Call,
    Eval,
    For,
    Let,
    LoopKind,
    Stmt,
    Store,
    Thread,
    While,
    find_note,
    is_hint,
)
from weft.targets import Sight, sight_of


def _for(f: KernelWriter, s: For) -> None:
    """Writes a loop over blocks or threads as this thread's number, any other as a loop."""
    thread = find_note(s.notes, Thread)
    if thread is not None:
        _bound_loop(f, s, thread.axis)
        return
    if s.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED):
        raise f.error(f"the loop over {s.var.name} is still {s.kind}", hint="lower it first")
    with f.scope():
        bounds = narrow_form(f, s.begin), narrow_form(f, s.extent)
        begin, extent = (f.scalar(e) if n is None else n for e, n in zip((s.begin, s.extent), bounds, strict=True))
    name = f.declare(s.var)
    if None not in bounds:
        f.narrow.add(s.var)
        end = extent if begin == "0i" else f"{begin} + {extent}"
        head = f"for (var {name}: i32 = {begin}; {name} < {end}; {name}++)"
    else:
        begin, extent = (f.scalar(e) for e in (s.begin, s.extent))
        add, less = f.helper("add_i64"), f.helper("lt_i64")
        end = f"{add}({begin}, {extent})"
        step = f"{name} = {add}({name}, {WIDE}(1u, 0u))"
        head = f"for (var {name}: {WIDE} = {begin}; {less}({name}, {end}); {step})"
    with f.suite(head):
        write(f, s.body)


def _bound_loop(f: KernelWriter, s: For, axis: str) -> None:
    """Writes a loop over a grid as the number of this thread, or of its block: that is its place among all blocks."""
    kind, _, letter = axis.partition(".")
    if kind not in ("blockIdx", "threadIdx") or s.begin is not ZERO:
        raise f.error(f"the loop {s.var.name} over {axis} is not one over a grid from zero on")
    name = f.declare(s.var)
    f.narrow.add(s.var)
    number = f.block_numbers[letter] if kind == "blockIdx" else f"thread.{letter}"
    f.local(name, f"let {name} = i32({number});")
    write(f, s.body)


def _let(f: KernelWriter, s: Let) -> None:
    """Writes a binding, and those directly inside it; one of an i32 that is made wider stays an i32."""
    body: Stmt = s
    with f.scope():
        while isinstance(body, Let):
            if body.var.dtype.lanes > 1:
                f.known[-1][body.var] = tuple([f.temporary_of(x) for x in lanes(f, body.value)])
                body = body.body
                continue
            with f.scope():
                value = narrow_form(f, body.value) if body.var.dtype is INDEX else None
                kept = f.scalar(body.value) if value is None else value
            if value is not None:
                f.narrow.add(body.var)
            name = f.declare(body.var)
            f.local(name, f"let {name} = {kept};")
            body = body.body
        write(f, body)


def _store(f: KernelWriter, s: Store) -> None:
    with f.scope():
        packed_accesses.store(f, s)


def _eval(f: KernelWriter, s: Eval) -> None:
    with f.scope():
        f.line(f"_ = {f.scalar(s.value)};")


def _while(f: KernelWriter, s: While) -> None:
    with f.suite("loop"):
        with f.scope():
            f.line(f"if (!{f.scalar(s.cond)}) {{ break; }}")
        write(f, s.body)


def _alloc(f: KernelWriter, s: Alloc) -> None:
    """Writes memory of a thread, or of a block, which is declared outside of the kernel."""
    size, b = s.buffer.shape[0], s.buffer
    if b.rank != 1 or not isinstance(size, Const):
        raise f.error(
            f"the size of {b.name} is not one constant", hint="kernels have no memory whose size a call tells"
        )
    if b.dtype.lanes > 1:
        raise f.error(f"{b.name} has vectors of {b.dtype.lanes} elements", hint="do not vectorize loops")
    count = max(1, int(size.value))
    kind = f"array<{value_type(b.dtype)}, {count}>"
    if b in f.quads:
        kind = f"array<{QUAD_TYPE[b.dtype.kind]}, {-(-count // len(QUAD))}>"
    name = f.declare(b)
    if sight_of(b.scope) is Sight.THREAD:
        f.local(name, f"var {name}: {kind};")
    else:
        f.outside.append(f"var<workgroup> {name}: {kind};")
    write(f, s.body)


def _call(f: KernelWriter, s: Call) -> None:
    if is_hint(s):
        return
    if s.callee in ATOMICS:
        write_update(f, s)
        return
    if s.callee != BARRIER:
        raise f.error(f"WGSL has no {s.callee}", hint="lower for a target without the memory of warps")
    f.line("storageBarrier();")
    f.line("workgroupBarrier();")


WGSL: Final = Dialect(
    name="WGSL",
    statements={**COMMON, For: _for, Let: _let, Store: _store, Eval: _eval, While: _while, Alloc: _alloc, Call: _call},
    address_space=lambda scope: "",
    square_roots={32: "sqrt"},
    expressions=EXPRESSIONS,
    constant=lambda kind, name, value: f"let {name} = {value};",
    keywords=KEYWORDS,
)
"""WGSL as of 2025."""
