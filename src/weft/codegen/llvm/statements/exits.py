"""The context that every function is given, and leaving a function early with a status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from weft.codegen import abi
from weft.codegen.llvm.core.emitter import Emitter


def context_field(f: Emitter, offset: int) -> str:
    """Returns the address of a field of the context."""
    return f.build.pure(f"getelementptr i8, ptr %ctx, i64 {offset}") if offset else "%ctx"


def context_function(f: Emitter, offset: int) -> str:
    """Returns a function of the context's table."""
    field = context_field(f, offset)
    return f.build.pure(f"load ptr, ptr {field}, align 8, !invariant.load !0", field)


def release(f: Emitter, memory: str) -> None:
    """Gives scratch memory back to the context."""
    f.build.do(f"call void {context_function(f, abi.FREE)}(ptr %ctx, ptr {memory})")


def leave(f: Emitter, status: str) -> None:
    """Returns *status* from the function, giving back the scratch memory that it holds."""
    for memory in reversed(f.open_allocs):
        release(f, memory)
    f.build.block.end = f"ret i32 {status}"


@contextmanager
def unless(f: Emitter, cond: str) -> Iterator[None]:
    """Opens the path taken where *cond* does not hold; the body must `leave`."""
    good, bad = f.build.label("good"), f.build.label("bad")
    f.build.block.end = f"br i1 {cond}, label %{good}, label %{bad}, !prof !1"
    with f.build.region(bad), f.scope():
        yield
    f.build.start(good)
