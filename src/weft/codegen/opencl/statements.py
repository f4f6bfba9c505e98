"""The statements of OpenCL C that deal with threads: their numbers, their memories, and barriers.

for b in bound(0, n, thread="blockIdx.x"):           const int64_t b = get_group_id(0);
    S = alloc("shared", f32[256])                    local float S[256];
    for t in bound(0, 256, thread="threadIdx.x"):    const int64_t t = get_local_id(0);
        S[t] = ...                             ->    S[t] = ...;
        call("weft.barrier")                         barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
"""

from __future__ import annotations

from typing import Final

from weft.codegen.c_family.c_types import memory_type
from weft.codegen.c_family.dialect import Dialect
from weft.codegen.c_family.statements import COMMON, write
from weft.codegen.c_family.writer import Writer
from weft.ir import ZERO, Const
from weft.loop import BARRIER, Alloc, Call, For, Thread, find_note, is_hint
from weft.targets import Sight, sight_of

_SPACES: Final = {Sight.GRID: "global ", Sight.BLOCK: "local ", Sight.THREAD: ""}
_NUMBERS: Final = {"blockIdx": "get_group_id", "threadIdx": "get_local_id"}


def address_space(scope: str) -> str:
    """Returns the words for the memory of a scope, such as `global `."""
    return _SPACES[sight_of(scope)]


def _for(f: Writer, s: For) -> None:
    """Writes a loop over blocks or threads as this thread's number, any other as a loop."""
    thread = find_note(s.notes, Thread)
    if thread is None:
        COMMON[For](f, s)
        return
    kind, _, axis = thread.axis.partition(".")
    if kind not in _NUMBERS or s.begin is not ZERO:
        raise f.error(f"the loop {s.var.name} over {thread.axis} is not one over a grid from zero on")
    name = f.declare(s.var)
    f.note_index(s.var, s.begin)
    f.local(name, f"const int64_t {name} = (int64_t){_NUMBERS[kind]}({'xyz'.index(axis)});")
    write(f, s.body)


def _alloc(f: Writer, s: Alloc) -> None:
    """Writes memory of a block or of a thread; the language has that of a block in the outermost scope of a kernel alone."""
    size, b = s.buffer.shape[0], s.buffer
    if b.rank != 1 or not isinstance(size, Const):
        raise f.error(
            f"the size of {b.name} is not one constant", hint="kernels have no memory whose size a call tells"
        )
    space, name = address_space(b.scope), f.declare(b)
    if space and f.depth > 1:
        raise f.error(f"{b.name}, which a block shares, is in a loop or a branch", hint="hoist allocations before this")
    f.local(name, f"{space}{memory_type(b.dtype)} {name}[{max(1, int(size.value) * b.dtype.lanes)}];")
    write(f, s.body)


def _call(f: Writer, s: Call) -> None:
    if is_hint(s):
        return
    if s.callee != BARRIER:
        raise f.error(f"OpenCL C has no {s.callee}", hint="lower for a target without the memory of warps")
    f.line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")


OPENCL: Final = Dialect(
    name="OpenCL C",
    statements={**COMMON, For: _for, Alloc: _alloc, Call: _call},
    address_space=address_space,
    square_roots={32: "sqrt", 64: "sqrt"},
)
"""OpenCL C 1.2."""
