"""Asynchronous copies (`cp.async`) and dynamic shared memory in CUDA C++.

Swizzled memory has the layout that `wgmma` expects: bits 4 to 6 of an address, the number of a 16-byte piece, are xored with
bits 7 to 9, the number of the row ("Parallel Thread Execution ISA" 8.0, section 9.7.15.5.1).
"""

from __future__ import annotations

from typing import Final

from weft.codegen.c_family.c_types import memory_type
from weft.codegen.c_family.writer import Writer
from weft.ir import Const
from weft.loop import ASYNC_COMMIT, ASYNC_COPY, ASYNC_WAIT, Address, Buffer, Call

DYNAMIC_SCOPE: Final = "dynamic"
SWIZZLED_SCOPE: Final = "swizzled"
ALIGNMENT: Final = 1024
"""The period of the swizzle, in bytes."""

COPY_MACROS: Final = f"""#define WEFT_DYNAMIC(name) extern __shared__ __align__({ALIGNMENT}) unsigned char name[];
#define WEFT_SHARED(p) ((uint32_t)__cvta_generic_to_shared(p))
#define WEFT_COPY(kind, n, to, from, size) \\
  asm volatile("cp.async." kind ".shared.global [%0], [%1], " #n ", %2;" \\
               :: "r"(WEFT_SHARED(to)), "l"(from), "r"(size) : "memory")
#define WEFT_COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WEFT_WAIT(n) asm volatile("cp.async.wait_group %0;" :: "n"(n) : "memory")
#define WEFT_SHOW asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
"""
"""The instructions, for the head of a source."""

COPY_HELPERS: Final = {
    **{
        f"copy_{n}": f"""static inline void weft_copy_{n}(void *to, const void *from, bool holds) {{
  WEFT_COPY("{kind}", {n}, to, from, holds ? {n} : 0);
}}"""
        for n, kind in ((4, "ca"), (8, "ca"), (16, "cg"))
    },
    "swizzled": """static inline void *weft_swizzled(void *base, int64_t at) {
  return (unsigned char *)base + (at ^ (at >> 3 & 112));
}""",
}
"""The helpers of copies, by name."""


def piece(f: Writer, b: Buffer, at: str) -> str:
    """Returns the address of the vector that begins at an index, which swizzled memory has elsewhere."""
    name = f.name(b)
    return (
        f"{f.helper('swizzled')}({name}, {b.dtype.bytes} * ({at}))" if b.scope == SWIZZLED_SCOPE else f"{name} + {at}"
    )


def write_copy(f: Writer, s: Call) -> None:
    """Writes an asynchronous copy; where its condition does not hold, nothing is read, and zeros are written."""
    to, source, count, holds = s.args
    assert isinstance(to, Address)
    assert isinstance(count, Const)
    size = to.buffer.dtype.bytes
    with f.scope():
        buffer, index = f.name(to.buffer), f.scalar(to.indices[0])  # a long address would be named as of constants
        at = f"({buffer} + {index})"
        if to.buffer.scope == SWIZZLED_SCOPE:
            at = f"{f.helper('swizzled')}({buffer}, {size} * ({index}))"
        f.line(f"{f.helper(f'copy_{int(count.value) * size}')}({at}, {f.scalar(source)}, {f.scalar(holds)});")


def write_commit(f: Writer, s: Call) -> None:
    """Writes the end of a group of copies."""
    f.line("WEFT_COMMIT;")


def write_wait(f: Writer, s: Call) -> None:
    """Writes the wait for groups of copies, with a fence for `wgmma`, which reads shared memory through the async proxy."""
    count, *places = s.args
    assert isinstance(count, Const)
    f.line(f"WEFT_WAIT({int(count.value)});")
    if any(isinstance(a, Address) and a.buffer.scope == SWIZZLED_SCOPE for a in places) and f.target.has("wgmma"):
        f.line("WEFT_SHOW;")


COPIES: Final = {ASYNC_COPY: write_copy, ASYNC_COMMIT: write_commit, ASYNC_WAIT: write_wait}
"""The writers by the intrinsic."""


def write_dynamic(f: Writer, b: Buffer, name: str, elements: int) -> None:
    """Declares a buffer in dynamic shared memory, behind the buffers before it."""
    kind, first = memory_type(b.dtype), f.dynamic_bytes
    f.dynamic_bytes += -(-elements * b.dtype.bytes // ALIGNMENT) * ALIGNMENT
    f.local(name, f"{kind} *const {name} = ({kind} *)(weft_dynamic + {first});")
