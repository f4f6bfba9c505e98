"""Programmatic dependent launch: a kernel starts while the one before it ends, and waits for its results itself.

From sm_90 on, a kernel's blocks may be placed once all blocks of its predecessor have ended, before their stores are seen
("CUDA C++ Programming Guide", section "Programmatic Dependent Launch and Synchronization"); `griddepcontrol.wait` waits for
that. Every kernel begins with it, so that nothing is read or written before its turn, and its launch takes less. It lets the next
kernel start no earlier (`griddepcontrol.launch_dependents`): blocks that wait take up multiprocessors, which are then shared
unevenly, and ResNet-18 of one image took 1.2 to 1.6 times as long (H200, 2026-11-27).

Compilers move loads of `__restrict__` memory that is only read over any statement, since nothing changes it while
the kernel runs; so the wait returns a zero that they do not know, and such buffers begin behind so many elements.

A kernel is launched so only where it waits: a number beside it in the module tells the runtime.
"""

from __future__ import annotations

from typing import Final

from weft.codegen.c_family.writer import Writer
from weft.loop import Buffer, Function, stores
from weft.runtime.devices import dependent_symbol

_FEATURE: Final = "dependent_launch"

LAUNCH_HELPERS: Final = {
    "wait_for_grids": """static inline uint32_t weft_wait_for_grids() {
  uint32_t zero;
  asm volatile("{ .reg .u32 t; griddepcontrol.wait; mov.u32 t, %%clock; popc.b32 t, t; shr.u32 %0, t, 6; }"
               : "=r"(zero) :: "memory");
  return zero;
}""",
}
"""The instructions, as a helper."""


def write_wait(f: Writer, fn: Function, symbol: str) -> str:
    """Has a kernel, called *symbol* in the code, wait for those before it where the target can.

    Returns the definition of the number that tells of it.
    """
    if not f.target.has(_FEATURE):
        return ""
    zero = f.fresh("waited")
    f.line(f"const uint32_t {zero} = {f.helper('wait_for_grids')}();")
    changed = {s.buffer for s in stores(fn.body)}
    for b in [p for p in fn.params if isinstance(p, Buffer) and p not in changed]:
        f.line(f"{f.name(b)} += {zero};")
    return f'extern "C" __device__ unsigned int {dependent_symbol(symbol)} = 1;\n'
