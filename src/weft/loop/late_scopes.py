"""Memory of host programs whose size is known only when they run: outputs that are asked of the caller, and memory that is kept.

    n = let(count[0])
    out0 = alloc("output@0", f32[n, 3])      asks the caller for the memory of output 0, and tells its shape
    rows = alloc("kept@2", f32[m * 64])      has at least so many elements, with what earlier allocations of `kept@2` left there

Neither is given back where its body ends: an output is the caller's, and kept memory is the context's. A buffer of the first kind
has as many dimensions as the output; a flat view of it is what kernels are given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from weft.loop.buffer import Buffer

_SCOPE: Final = re.compile(r"(output|kept)@(\d{1,4})", re.ASCII)


@dataclass(frozen=True)
class LateMemory:
    """The memory of output *number*, or, if it `is_kept`, the context's memory of that number."""

    is_kept: bool
    number: int

    @property
    def scope(self) -> str:
        """The scope of buffers in this memory."""
        return f"{'kept' if self.is_kept else 'output'}@{self.number}"


def late_memory(buffer: Buffer) -> LateMemory | None:
    """Returns the late memory that *buffer* is in; None for buffers in any other."""
    found = _SCOPE.fullmatch(buffer.scope) if "@" in buffer.scope else None
    return None if found is None else LateMemory(found[1] == "kept", int(found[2]))


def is_late_output(buffer: Buffer) -> bool:
    """Tells whether *buffer* is an output that is asked of the caller, which has the output's shape."""
    found = late_memory(buffer)
    return found is not None and not found.is_kept
