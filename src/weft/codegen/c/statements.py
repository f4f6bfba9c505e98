"""The statements of C that deal with the runtime's context: memory, assertions, calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen import abi
from weft.codegen.c_family import scalars
from weft.codegen.c_family.c_types import identifier, memory_type
from weft.codegen.c_family.dialect import Dialect
from weft.codegen.c_family.expressions import lanes
from weft.codegen.c_family.statements import COMMON, pointer_type, write
from weft.codegen.c_family.vector_words import GCC_VECTORS
from weft.codegen.c_family.writer import Writer
from weft.ir import INDEX, Const, Expr
from weft.loop import HOST_OPERATORS, Alloc, Assert, Call, Function, LateMemory, Task, find_note, is_hint, late_memory
from weft.support.dtypes import handle

FRAME_BYTES: Final = 16 << 10
"""Bytes of buffers of constant size that may live in a function's frame; the context allocates all beyond."""


def _ask(f: Writer, s: Alloc, late: LateMemory) -> None:
    """Writes the binding of a buffer of late memory, which the context is asked for."""
    name, kind = f.declare(s.buffer), pointer_type(f, s.buffer)
    with f.suite(""):
        with f.scope():
            sizes = [f.scalar(size) for size in s.buffer.shape]
        if late.is_kept:
            asked = f"ctx->keep(ctx, {late.number}, {sizes[0]} * {s.buffer.dtype.bytes})"
        else:
            f.line(f"const int64_t {name}_shape[] = {{{', '.join(sizes) or '0'}}};")
            asked = f"ctx->output(ctx, {late.number}, {name}_shape)"
        f.line(f"{kind}const {name} = {asked};")
        f.line(f"if ({name} == 0) {{")
        leave(f, str(abi.OUT_OF_MEMORY))
        f.line("}")
        write(f, s.body)


def _alloc(f: Writer, s: Alloc) -> None:
    if (late := late_memory(s.buffer)) is not None:
        _ask(f, s, late)
        return
    if s.buffer.rank != 1:
        raise f.error(f"{s.buffer.name} has {s.buffer.rank} dimensions", hint="flatten buffers before this")
    size, item = s.buffer.shape[0], s.buffer.dtype.bytes
    kind, name = memory_type(s.buffer.dtype), f.declare(s.buffer)
    whole = int(size.value) * item if isinstance(size, Const) else None
    if whole is not None and (s.buffer.in_registers or whole <= FRAME_BYTES - f.frame_bytes):
        f.frame_bytes += whole
        with f.suite(""):
            f.local(name, f"{kind} {name}[{max(1, whole // (item // s.buffer.dtype.lanes))}];")
            write(f, s.body)
        return
    with f.suite(""):
        with f.scope():
            bytes_of = f.scalar(size)
        f.line(f"{pointer_type(f, s.buffer)}const {name} = ctx->alloc(ctx, {bytes_of} * {item});")
        f.line(f"if ({name} == 0) {{")
        leave(f, str(abi.OUT_OF_MEMORY))
        f.line("}")
        f.open_allocs.append(name)
        write(f, s.body)
        f.open_allocs.pop()
        f.line(f"ctx->release(ctx, {name});")


def leave(f: Writer, status: str) -> None:
    """Writes the return of *status*, before which scratch memory is given back."""
    for memory in reversed(f.open_allocs):
        f.line(f"  ctx->release(ctx, {memory});")
    f.line(f"  return {status};")


def _assert(f: Writer, s: Assert) -> None:
    number = abi.assert_id(s.message)
    f.asserts.add((number, s.message))
    with f.scope():
        cond = f.scalar(s.cond)
    with f.suite(f"if (!{cond})"):
        for n, v in enumerate(s.values[: abi.DETAILS]):
            f.line(f"ctx->detail[{n}] = {scalars.convert(f, f.scalar(v), v.dtype, INDEX)};")
        f.line(f"ctx->failed_assert = {number};")
        leave(f, str(abi.ASSERT_FAILED))


def _call(f: Writer, s: Call) -> None:
    if is_hint(s):
        return
    with f.scope():
        given = [x for a in s.args for x in _argument(f, a)]
    if s.callee in HOST_OPERATORS:
        _on_host(f, s, given)
        return
    task = f.tasks.get(s.callee)
    called = f"fn_{identifier(s.callee)}"
    with f.suite(""):
        if task is None:
            f.calls.add(s.callee)
            f.line(f"const int32_t status = {called}({', '.join(['ctx', *given])});")
        else:
            f.line(f"struct {called}__args args = {{{', '.join(given[2:]) or '0'}}};")
            f.line(f"const int32_t status = ctx->parallel_for(ctx, {called}__task, &args, {given[1]});")
        f.line("if (status != 0) {")
        leave(f, "status")
        f.line("}")


def _on_host(f: Writer, s: Call, given: Sequence[str]) -> None:
    """Writes the call of a host operator through the context, which takes its arguments as an array."""
    values = [f"(int64_t)(intptr_t)({x})" for x in given]
    with f.suite(""):
        f.line(f"const int64_t args[] = {{{', '.join(values)}}};")
        f.line(f"const int32_t status = ctx->host(ctx, {HOST_OPERATORS[s.callee].number}, args);")
        f.line("if (status != 0) {")
        leave(f, "status")
        f.line("}")


def _argument(f: Writer, e: Expr) -> tuple[str, ...]:
    """Returns the arguments to be passed for *e*: an address, or each lane of a value."""
    return (f"(void *){f.scalar(e)}",) if e.dtype is handle else lanes(f, e)


def is_task(function: Function) -> bool:
    """Tells whether *function* is run in parallel over a range."""
    return find_note(function.notes, Task) is not None


C: Final = Dialect(
    name="C",
    statements={**COMMON, Alloc: _alloc, Assert: _assert, Call: _call},
    address_space=lambda scope: "",
    square_roots={32: "sqrtf", 64: "sqrt"},
    header="math.h",
    watched_argument="ctx",
    vectors=GCC_VECTORS,
)
"""C99, over the context of the runtime."""
