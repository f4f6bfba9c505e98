"""Requests to the context for memory of a size that only a run knows: an output's, or memory kept across calls."""

from __future__ import annotations

from weft.codegen import abi
from weft.codegen.llvm.core.emitter import Emitter
from weft.codegen.llvm.statements.exits import context_function, leave, unless
from weft.loop import Buffer, late_memory


def ask(f: Emitter, buffer: Buffer) -> str:
    """Emits the call that gives a buffer of late memory its address; leaves where there is no memory."""
    found = late_memory(buffer)
    assert found is not None
    with f.scope():
        sizes = [f.build.scalar(f.index(s)) for s in buffer.shape]
        if found.is_kept:
            given = f"i64 {f.build.scalar(f.index(buffer.shape[0]).times(buffer.dtype.bytes))}"
        else:
            given = f"ptr {_stored(f, sizes)}"
    function = context_function(f, abi.KEEP if found.is_kept else abi.OUTPUT)
    got = f.build.here(f"call ptr {function}(ptr %ctx, i64 {found.number}, {given})")
    with unless(f, f.build.here(f"icmp ne ptr {got}, null")):
        leave(f, str(abi.OUT_OF_MEMORY))
    return got


def _stored(f: Emitter, sizes: list[str]) -> str:
    """Emits an array of the sizes in the function's frame; returns its address."""
    made = f.build.alloca(f"[{max(1, len(sizes))} x i64], align 8")
    for n, size in enumerate(sizes):
        slot = f.build.pure(f"getelementptr i8, ptr {made}, i64 {8 * n}", made)
        f.build.do(f"store i64 {size}, ptr {slot}, align 8")
    return made
