"""Statements as C: loops, branches, bindings, memory, assertions, calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.codegen import abi
from weft.codegen.c import scalars
from weft.codegen.c.accesses import store
from weft.codegen.c.c_types import identifier, memory_type, scalar_type
from weft.codegen.c.expressions import lanes
from weft.codegen.c.writer import Writer
from weft.ir import INDEX, Const, Expr, mentions, post_order
from weft.loop import (
    HOST_OPERATORS,
    Alloc,
    Assert,
    Call,
    Eval,
    For,
    Function,
    If,
    LateMemory,
    Let,
    Load,
    LoopKind,
    Seq,
    Stmt,
    Store,
    Task,
    View,
    While,
    find_note,
    is_hint,
    late_memory,
)
from weft.support.dtypes import handle

FRAME_BYTES: Final = 16 << 10
"""Bytes of buffers of constant size that may live in a function's frame; the context allocates all beyond."""

MOST_UNROLLED: Final = 64
"""Iterations of a loop over registers that the C compiler is told to unroll, so that arrays become registers."""


def pointer_type(f: Writer, dtype: Any) -> str:
    """Returns the type of a pointer to elements of *dtype*, with the space before its name."""
    alias = " WEFT_MAY_ALIAS" if f.has_puns else ""
    return f"{memory_type(dtype)}{alias} *"


def write(f: Writer, s: Stmt) -> None:
    """Writes a statement; raises `LoweringError` for one that had to be lowered before."""
    handler = _STATEMENTS.get(type(s))
    if handler is None:
        raise f.error(f"{type(s).__name__} has no translation to C")
    handler(f, s)


def _seq(f: Writer, s: Seq) -> None:
    for part in s.body:
        write(f, part)


def _store(f: Writer, s: Store) -> None:
    with f.scope():
        store(f, s)


def _eval(f: Writer, s: Eval) -> None:
    with f.scope():
        for x in lanes(f, s.value):
            f.line(f"(void){x};")


def _let(f: Writer, s: Let) -> None:
    """Writes a binding, and those directly inside it; a vector is bound to the values of its lanes."""
    body: Stmt = s
    with f.scope():
        while isinstance(body, Let):
            with f.scope():
                value = f.value(body.value)
            if isinstance(value, str):
                name = f.declare(body.var)
                f.note_index(body.var, body.value)
                f.local(name, f"const {scalar_type(body.var.dtype)} {name} = {value};")
            elif isinstance(value, tuple):
                f.known[-1][body.var] = tuple([f.temporary(body.var.dtype.element, x) for x in value])
            else:
                f.known[-1][body.var] = f.named(body.var.dtype, value)
            body = body.body
        write(f, body)


def _for(f: Writer, s: For) -> None:
    if s.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED):
        raise f.error(f"the loop over {s.var.name} is still {s.kind}", hint="lower it first")
    with f.scope():
        begin, extent = f.scalar(s.begin), f.scalar(s.extent)
        end = extent if begin == "0" else f.temporary(INDEX, f"{begin} + {extent}")
    if isinstance(s.extent, Const) and 1 < int(s.extent.value) <= MOST_UNROLLED and _is_unrolled(s):
        f.line(f"WEFT_UNROLL({s.extent.value})")
    name = f.declare(s.var)
    f.note_index(s.var, s.begin)
    with f.suite(f"for (int64_t {name} = {begin}; {name} < {end}; {name}++)"):
        write(f, s.body)


def _is_unrolled(s: For) -> bool:
    """Tells whether a loop is marked so, or numbers registers: they can only be named."""
    return s.kind is LoopKind.UNROLLED or any(
        isinstance(n, (Load, Store)) and n.buffer.in_registers and any(mentions(i, s.var) for i in n.indices)
        for n in post_order(s.body)
    )


def _if(f: Writer, s: If) -> None:
    with f.scope():
        cond = f.scalar(s.cond)
    with f.suite(f"if ({cond})"):
        write(f, s.then)
    if s.other is not None:
        with f.suite("else"):
            write(f, s.other)


def _while(f: Writer, s: While) -> None:
    with f.suite("for (;;)"):
        with f.scope():
            f.line(f"if (!{f.scalar(s.cond)}) break;")
        write(f, s.body)


def _ask(f: Writer, s: Alloc, late: LateMemory) -> None:
    """Writes the binding of a buffer of late memory, which the context is asked for."""
    name, kind = f.declare(s.buffer), pointer_type(f, s.buffer.dtype)
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
        f.line(f"{pointer_type(f, s.buffer.dtype)}const {name} = ctx->alloc(ctx, {bytes_of} * {item});")
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


def _view(f: Writer, s: View) -> None:
    with f.scope():
        offset = f.scalar(s.offset)
    source, kind = f.name(s.source), pointer_type(f, s.buffer.dtype)
    scale = s.source.dtype.lanes
    at = source if offset == "0" else f"({source} + {offset if scale == 1 else f'{scale} * {offset}'})"
    name = f.declare(s.buffer)
    with f.suite(""):
        f.local(name, f"{kind}const {name} = ({kind})(void *){at};")
        write(f, s.body)


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


_STATEMENTS: Final[dict[type[Stmt], Callable[[Writer, Any], None]]] = {
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
    Call: _call,
}
