"""Calls: of functions of the program, of functions in other modules, and of tasks that run in parallel.

A *task* is a function with the note `Task` whose first two parameters are the range [begin, end) it works on.
Calling it packs the other arguments into slots of 8 bytes, or as many as a vector takes, in the caller's frame and hands them,
with a wrapper that unpacks them, to the context's `parallel_for`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from weft.codegen import abi
from weft.codegen.llvm.core.emitter import Emitter, Signature
from weft.codegen.llvm.core.ir_types import memory_type, register_type
from weft.codegen.llvm.memory.addresses import from_memory, to_memory
from weft.codegen.llvm.statements.exits import context_function, leave, unless
from weft.codegen.llvm.statements.tile_calls import is_tile_call, tile_call
from weft.ir import Const
from weft.loop import HOST_OPERATORS, PREFETCH, Buffer, Call, Function, Param, Task, find_note
from weft.support.dtypes import DType, handle


def param_type(p: Param) -> str:
    """Returns the LLVM type of a parameter; a buffer is its address."""
    return "ptr" if isinstance(p, Buffer) else register_type(p.dtype)


def signature(function: Function) -> Signature:
    """Returns the signature of *function*."""
    return Signature(function.name, tuple([param_type(p) for p in function.params]), task=is_task(function))


def is_task(function: Function) -> bool:
    """Tells whether *function* is run in parallel over a range."""
    return find_note(function.notes, Task) is not None


def wrapper_name(symbol: str) -> str:
    """Returns the symbol of the wrapper that unpacks a task's arguments."""
    return f"{symbol}.task"


def call(f: Emitter, s: Call) -> None:
    """Emits a call, and leaves with the callee's status unless it is zero."""
    if s.callee == PREFETCH:
        _prefetch(f, s)
        return
    if is_tile_call(s):
        tile_call(f, s)
        return
    with f.scope():
        args = [(register_type(a.dtype), f.text(a)) for a in s.args]
    if s.callee in HOST_OPERATORS:
        _on_host(f, s)
        return
    known = f.signatures.get(s.callee)
    if known is None:
        known = Signature(s.callee, tuple([t for t, _ in args]), task=False)
        symbol = f"@{quoted(s.callee)}"
        f.globals[symbol] = f"declare hidden i32 {symbol}({', '.join(['ptr', *known.types])})"
    if known.types != tuple([t for t, _ in args]):
        raise f.error(f"{s.callee} takes {', '.join(known.types)}, not {', '.join([t for t, _ in args])}")
    status = parallel(f, known, [x for _, x in args], s) if known.task else direct(f, known, args)
    with unless(f, f.build.here(f"icmp eq i32 {status}, 0")):
        leave(f, status)


def _on_host(f: Emitter, s: Call) -> None:
    """Emits the call of a host operator through the context, which takes its arguments as an array."""
    with f.scope():
        given = [(register_type(a.dtype), f.text(a)) for a in s.args]
    pack = f.build.alloca(f"[{len(given)} x i64], align 8")
    for n, (kind, x) in enumerate(given):
        slot = f.build.pure(f"getelementptr i8, ptr {pack}, i64 {8 * n}", pack)
        f.build.do(f"store {kind} {x}, ptr {slot}, align 8")
    function, number = context_function(f, abi.HOST), HOST_OPERATORS[s.callee].number
    status = f.build.here(f"call i32 {function}(ptr %ctx, i32 {number}, ptr {pack})")
    with unless(f, f.build.here(f"icmp eq i32 {status}, 0")):
        leave(f, status)


def _prefetch(f: Emitter, s: Call) -> None:
    """Emits a prefetch for reading, into the level of the data cache that the call gives and those beyond it."""
    symbol = "@llvm.prefetch.p0"
    f.globals[symbol] = f"declare void {symbol}(ptr, i32, i32, i32)"
    with f.scope():
        level = s.args[1]
        locality = 4 - int(level.value) if isinstance(level, Const) else 3
        f.build.do(f"call void {symbol}(ptr {f.text(s.args[0])}, i32 0, i32 {locality}, i32 1)")


def quoted(symbol: str) -> str:
    """Returns *symbol* as LLVM spells it after `@`."""
    return f'"{symbol}"'


def direct(f: Emitter, callee: Signature, args: list[tuple[str, str]]) -> str:
    """Emits an ordinary call; returns its status."""
    given = ", ".join(["ptr %ctx", *[f"{t} {x}" for t, x in args]])
    return f.build.here(f"call i32 @{quoted(callee.symbol)}({given})")


def parallel(f: Emitter, callee: Signature, args: list[str], s: Call) -> str:
    """Emits the launch of a task over its range; returns the status of the first piece that failed."""
    captured = list(zip(callee.types[2:], args[2:], s.args[2:], strict=True))
    *slots, size = _slots([e.dtype for _, _, e in captured])
    pack = f.build.alloca(f"[{max(1, size // 8)} x i64], align 8")
    for at, (_, x, e) in zip(slots, captured, strict=True):
        slot = f.build.pure(f"getelementptr i8, ptr {pack}, i64 {at}", pack)
        f.build.do(f"store {memory_type(e.dtype)} {to_memory(f, x, e.dtype)}, ptr {slot}, align 8")
    launch = context_function(f, abi.PARALLEL_FOR)
    wrapper = quoted(wrapper_name(callee.symbol))
    return f.build.here(f"call i32 {launch}(ptr %ctx, ptr @{wrapper}, ptr {pack}, i64 {args[1]})")


def _slots(dtypes: Sequence[DType]) -> list[int]:
    """Returns the offset of each value in the memory of a task's arguments, and its size in bytes."""
    return list(accumulate([8 * -(-t.bytes // 8) for t in dtypes], initial=0))


def task_wrapper(f: Emitter, task: Function) -> str:
    """Returns the function `i32 (ctx, args, begin, end)` that unpacks the arguments of *task* and calls it."""
    given = ["ptr %ctx", "i64 %begin", "i64 %end"]
    captured = task.params[2:]
    *slots, _ = _slots([handle if isinstance(p, Buffer) else p.dtype for p in captured])
    for at, p in zip(slots, captured, strict=True):
        slot = f.build.pure(f"getelementptr i8, ptr %args, i64 {at}")
        kind = "ptr" if isinstance(p, Buffer) else memory_type(p.dtype)
        x = f.build.here(f"load {kind}, ptr {slot}, align 8")
        given.append(f"{param_type(p)} {x if isinstance(p, Buffer) else from_memory(f, x, p.dtype)}")
    status = f.build.here(f"call i32 @{quoted(task.name)}({', '.join(given)})")
    f.build.block.end = f"ret i32 {status}"
    name = quoted(wrapper_name(task.name))
    return f"define internal i32 @{name}(ptr %ctx, ptr %args, i64 %begin, i64 %end) #0 {{\n{f.build.body()}\n}}"
